//! HTTP endpoints of plugins.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::Cluster;

/// Serves what the plugin knows, in the shape that the original gives it.
pub trait ServiceEndpoint: Send + Sync + 'static {
    /// The paths that [`ServiceEndpoint::serve`] answers, below `/apis/v1/plugins/NAME`; `:name` is a variable segment.
    fn paths(&self) -> &'static [&'static str];

    /// The answer at a path.
    fn serve(&self, path: &[&str], query: &Query, cluster: &Cluster) -> Result<Value, ServiceError>;
}

/// The query of a URL: each parameter with its value.
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

/// Why a path cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The plugin does not serve this path.
    #[error("no such path")]
    UnknownPath,
    /// What the path names is not known.
    #[error("{0}")]
    NotFound(String),
    /// What the path names cannot be shown.
    #[error("{0}")]
    Failed(String),
}
