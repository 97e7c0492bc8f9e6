//! The three kinds of patches that an API server takes, and the difference that produces a merge patch.
//!
//! | media type | here |
//! |---|---|
//! | `application/json-patch+json` (RFC 6902) | [`json::apply`] |
//! | `application/merge-patch+json` (RFC 7386) | [`merge::apply`], [`merge::diff`] |
//! | `application/strategic-merge-patch+json` | [`strategic::apply`] |

pub mod json;
pub mod merge;
pub mod strategic;

/// A patch that cannot be carried out; the text is what the API server says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is not of its format (HTTP 400).
    #[error("{0}")]
    Malformed(String),
    /// The patch has more operations than a server is willing to run (HTTP 413).
    #[error("The allowed maximum operations in a JSON patch is {max}, got {found}")]
    TooManyOperations {
        /// The limit.
        max: usize,
        /// What the patch has.
        found: usize,
    },
    /// The patch is well-formed but does not fit the object (HTTP 422).
    #[error("{0}")]
    DoesNotApply(String),
    /// The patch names a directive or a merge key wrongly; the API server answers these with HTTP 500.
    #[error("{0}")]
    Unmergeable(String),
}
