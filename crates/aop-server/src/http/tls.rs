//! Encryption of the connections themselves, with a certificate and a key that the user gives.

use aop_kernel::{ErrorCode, Refusal};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Where certificate and key are, as PEM files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, with those above it after it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Reads both. A file that cannot be used is named, and nothing is served.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, Refusal> {
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable("certificate", "tls-cert", &files.certificate, &error))?;
    if chain.is_empty() {
        let message = "it holds no certificate in PEM form";
        return Err(unusable("certificate", "tls-cert", &files.certificate, &message));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unusable("key", "tls-key", &files.key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| unusable("key", "tls-key", &files.key, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unusable(what: &str, argument: &str, path: &Path, cause: &impl Display) -> Refusal {
    Refusal::new(ErrorCode::InvalidArgument, format!("the {what} {} cannot be used: {cause}", path.display()))
        .hint("give PEM files that belong together: --tls-cert CHAIN.pem --tls-key KEY.pem")
        .fact("argument", argument)
}
