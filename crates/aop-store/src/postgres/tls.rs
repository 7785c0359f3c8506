//! Encryption on the way to the server: used exactly when the address says `sslmode=require`, and then the server
//! has to prove who it is. Built in with the feature `postgres-tls`.

#[cfg(not(feature = "postgres-tls"))]
pub(super) use without::connector;

#[cfg(feature = "postgres-tls")]
pub(super) use with::connector;

#[cfg(not(feature = "postgres-tls"))]
type Maker = tokio_postgres::NoTls;

#[cfg(feature = "postgres-tls")]
type Maker = tokio_postgres_rustls::MakeRustlsConnect;

/// What makes connections that demand encryption.
#[derive(Clone)]
pub(super) struct Tls(Maker);

impl Tls {
    /// For one more connection.
    pub(super) fn maker(&self) -> Maker {
        self.clone().0
    }
}

#[cfg(not(feature = "postgres-tls"))]
mod without {
    use super::Tls;

    /// There is none in this build.
    pub(in crate::postgres) fn connector(_roots: Option<&str>) -> Result<Tls, String> {
        Err("the address demands TLS, and this aop was built without it (cargo feature postgres-tls)".into())
    }
}

#[cfg(feature = "postgres-tls")]
mod with {
    use super::Tls;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, RootCertStore, crypto};
    use std::sync::Arc;

    /// Where systems keep the certificates they trust.
    const SYSTEM: &[&str] =
        &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

    /// Trusts the certificates of this file, or those of the system.
    pub(in crate::postgres) fn connector(roots: Option<&str>) -> Result<Tls, String> {
        let file = match roots {
            Some(file) => file,
            None => SYSTEM
                .iter()
                .find(|file| std::path::Path::new(file).exists())
                .ok_or("no trusted certificates were found; name a file with sslrootcert=")?,
        };
        let mut trusted = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| format!("{file}: {error}"))?;
        // A bundle may hold one that cannot be read; the others count all the same.
        trusted.add_parsable_certificates(certificates.flatten());
        if trusted.is_empty() {
            return Err(format!("{file} holds no certificate"));
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(Tls(tokio_postgres_rustls::MakeRustlsConnect::new(config)))
    }
}
