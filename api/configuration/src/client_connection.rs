//! How a component reaches the API server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a component reaches the API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClientConnection {
    /// The kubeconfig; empty in a cluster.
    pub kubeconfig: String,
    /// Accepted without an effect: requests are JSON. Default application/vnd.kubernetes.protobuf.
    pub content_type: String,
    /// Accepted without an effect: answers are JSON.
    pub accept_content_types: String,
    /// Requests per second. 0 is the default of 50.
    pub qps: f64,
    /// Requests that may come at once. 0 is the default of 100.
    #[schemars(range(min = 0))]
    pub burst: i32,
}

impl ClientConnection {
    /// Sets what is not set.
    pub fn complete(&mut self) {
        if self.content_type.is_empty() {
            "application/vnd.kubernetes.protobuf".clone_into(&mut self.content_type);
        }
        if self.qps == 0.0 {
            self.qps = 50.0;
        }
        if self.burst == 0 {
            self.burst = 100;
        }
    }
}
