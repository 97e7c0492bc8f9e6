//! The parameters of a question to a plugin.

use std::collections::BTreeMap;

/// What follows `?` in the path of a question: each name with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// The value of a parameter; none where it is not there or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a parameter is `true`.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }
}

/// Of a name that is there twice the last value counts.
impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Query {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Why there is no answer to a question about a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing is answered at this path.
    #[error("no such path")]
    UnknownPath,
    /// What the path names is not known.
    #[error("{0}")]
    NotFound(String),
    /// What the path names cannot be shown.
    #[error("{0}")]
    Failed(String),
}
