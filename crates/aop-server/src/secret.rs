//! Random secrets and the comparison of their digests. Whatever is compared is a SHA-256, in a time that does not
//! depend on where two digests differ.

use aop_kernel::hex::hexadecimal;
use aop_kernel::{ErrorCode, Refusal};
use sha2::{Digest, Sha256};

/// The digest of a secret: what is kept in its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sealed([u8; 32]);

/// 256 random bits as 64 hexadecimal digits.
pub(crate) fn random() -> Result<String, Refusal> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(hexadecimal(bytes))
}

impl Sealed {
    /// The digest of this text.
    pub(crate) fn of(secret: &str) -> Self {
        Sealed(Sha256::digest(secret.as_bytes()).into())
    }

    /// As it stands in the store.
    pub(crate) fn to_hex(&self) -> String {
        hexadecimal(self.0)
    }

    /// Whether this text is the secret.
    pub(crate) fn opens_with(&self, secret: &str) -> bool {
        self.same(&Sealed::of(secret).0)
    }

    /// The same for a digest that came from the store.
    pub(crate) fn is_hex(&self, kept: &str) -> bool {
        let kept = kept.as_bytes();
        let own = self.to_hex();
        kept.len() == own.len() && differences(own.as_bytes(), kept) == 0
    }

    fn same(&self, other: &[u8; 32]) -> bool {
        differences(&self.0, other) == 0
    }
}

/// Looks at every byte whatever it finds.
fn differences(one: &[u8], other: &[u8]) -> u8 {
    one.iter().zip(other).fold(0, |found, (a, b)| found | std::hint::black_box(a ^ b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_opens_with_its_secret_and_no_other() {
        let secret = random().unwrap();
        assert_eq!(secret.len(), 64);
        assert_ne!(secret, random().unwrap());
        let sealed = Sealed::of(&secret);
        assert!(sealed.opens_with(&secret) && sealed.is_hex(&Sealed::of(&secret).to_hex()));
        assert!(!sealed.opens_with(&secret[1..]) && !sealed.is_hex("") && !sealed.is_hex(&secret));
    }
}
