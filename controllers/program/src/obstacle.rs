//! What a check could not read, and why.

use crate::{
    error_text::{in_words, innermost},
    permission::Missing,
};

/// Something that could not be read.
#[derive(Debug)]
pub struct Obstacle {
    /// The path of the API.
    pub path: String,
    /// Why not.
    pub message: String,
    /// Whether it is for others to read.
    pub forbidden: bool,
    /// The rules that would let this user read it.
    pub missing: Option<String>,
}

// === impl Obstacle ===

impl Obstacle {
    /// A request that could not be sent.
    pub fn new(path: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { path: path.to_owned(), message: innermost(error), forbidden: false, missing: None }
    }

    /// A request that failed.
    pub fn refused(path: &str, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self {
                path: path.to_owned(),
                message: status.message.clone(),
                forbidden: matches!(status.code, 401 | 403),
                missing: Missing::of(error).map(|missing| missing.rules()),
            },
            error => Self::new(path, error),
        }
    }

    /// A list that failed.
    pub fn unlisted(path: &str, error: &anyhow::Error) -> Self {
        match error.downcast_ref::<kube::Error>() {
            Some(error) => Self::refused(path, error),
            None => Self { path: path.to_owned(), message: in_words(error), forbidden: false, missing: None },
        }
    }
}
