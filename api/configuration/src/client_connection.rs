//! How a component reaches the API server.

use serde::{Deserialize, Serialize};

use crate::Configuration;

/// How a component reaches the API server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClientConnection {
    /// The kubeconfig; empty in a cluster.
    pub kubeconfig: String,
    /// The form of requests.
    #[koord(default = "application/vnd.kubernetes.protobuf", zero_is_unset, no_effect = "requests are JSON")]
    pub content_type: String,
    /// The form of answers.
    #[koord(no_effect = "answers are JSON")]
    pub accept_content_types: String,
    /// Requests per second. 0 is the default.
    #[koord(default = 50, zero_is_unset)]
    pub qps: f64,
    /// Requests that may come at once. 0 is the default.
    #[koord(default = 100, zero_is_unset, minimum = 0)]
    pub burst: i32,
}
