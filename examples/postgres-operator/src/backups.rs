//! Where backups go: a bucket for each database in a store outside of the cluster, reached over HTTP.
//!
//! The store makes a bucket some time after it was asked to, and refuses callers that ask too often.

use std::time::Duration;

use koord::{
    http::{Method, Request},
    kube::{self, Client, Config},
    runtime::effect::{EffectError, EffectLimits},
    serde_json,
};
use serde::{Deserialize, Serialize};

/// The store allows so much.
pub(crate) const LIMITS: EffectLimits = EffectLimits {
    concurrency: 2,
    per_second: 20.0,
    timeout: Duration::from_secs(10),
    backoff_min: Duration::from_millis(200),
    ..EffectLimits::DEFAULT
};

/// What shall become of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Bucket {
    /// It shall be there.
    Present(String),
    /// It shall be gone.
    Absent(String),
}

/// The store; cheap to clone.
#[derive(Clone)]
pub struct BackupStore {
    client: Client,
}

/// What the store says of a bucket.
#[derive(Deserialize)]
struct State {
    state: String,
    url: Option<String>,
}

impl BackupStore {
    /// The store at a URL, such as `http://backups.example.com`.
    pub fn at(url: &str) -> Result<Self, String> {
        let url = url.parse().map_err(|error| format!("{url:?} is no URL of a backup store: {error}"))?;
        Ok(Self { client: Client::try_from(Config::new(url)).map_err(|error| error.to_string())? })
    }

    /// Brings a bucket about. Gives its URL; none for a bucket that is gone. Doing it twice is the same as doing it once.
    pub(crate) async fn bring_about(self, bucket: Bucket) -> Result<Option<String>, EffectError> {
        let (method, name) = match &bucket {
            Bucket::Present(name) => (Method::PUT, name),
            Bucket::Absent(name) => (Method::DELETE, name),
        };
        let request = Request::builder().method(method).uri(format!("/buckets/{name}")).body(Vec::new())?;
        let answer = match self.client.request_text(request).await {
            Ok(answer) => answer,
            Err(kube::Error::Api(status)) if status.code == 404 && matches!(bucket, Bucket::Absent(_)) => {
                return Ok(None);
            }
            Err(kube::Error::Api(status)) if status.code == 429 => {
                return Err(EffectError::new("the backup store is asked too often").after(Duration::from_millis(300)));
            }
            Err(error) => return Err(EffectError::new(format_args!("the backup store: {error}"))),
        };
        let State { state, url } = serde_json::from_str(&answer)?;
        match (bucket, state.as_str()) {
            (Bucket::Present(_), "Ready") => Ok(url),
            (_, state) => {
                Err(EffectError::new(format_args!("the bucket is {state}")).after(Duration::from_millis(100)))
            }
        }
    }
}
