//! What can go wrong in a store: the kernel refused, or the medium failed.

use aop_kernel::{ErrorCode, Refusal};

/// Why a store call did not happen. Nothing was written in any of these cases.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A rule said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The medium cannot be opened, read or written right now.
    #[error("{place}: {cause}")]
    Unavailable {
        /// The file or address.
        place: String,
        /// What the medium said.
        cause: String,
        /// The next step.
        hint: String,
    },
    /// Something is there and cannot be understood.
    #[error("{place}: {cause}")]
    Damaged {
        /// The row or file.
        place: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::Refused(refusal) => refusal,
            StoreError::Unavailable { place, hint, .. } => {
                Refusal::new(ErrorCode::StoreUnavailable, message).hint(hint).fact("store", place)
            }
            StoreError::Damaged { place, .. } => Refusal::new(ErrorCode::StoreUnavailable, message)
                .hint("run `aop doctor`; it says what is damaged and what can be rebuilt")
                .fact("store", place),
        }
    }
}
