//! The history of evictions in a ConfigMap, so that it is known after a restart, to another replica, and to `koordctl deschedule history`.

use koord_descheduler_framework::History;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Api,
    key::ObjectKey,
    write::{Action, Write},
};
use serde_json::{Value, json};

/// The name of the ConfigMap. It is in the namespace of the Lease.
pub const HISTORY: &str = "koord-descheduler-history";
/// Its only entry: the evictions as JSON, the latest first.
pub const HISTORY_KEY: &str = "evictions.json";

/// Where the history is kept.
pub(crate) struct HistoryStore {
    namespace: String,
    /// Whether the ConfigMap exists, as far as is known.
    exists: bool,
    /// Whether the history has changed since it was written.
    is_due: bool,
    /// Whether it was reported that the history cannot be kept.
    has_failed: bool,
}

impl HistoryStore {
    pub(crate) fn new(namespace: String) -> Self {
        Self { namespace, exists: false, is_due: false, has_failed: false }
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, HISTORY)
    }

    /// The history that was kept, with those evictions that are known already.
    pub(crate) async fn load(&mut self, api: &Api, known: &mut History) {
        let uri = format!("/api/v1/namespaces/{}/configmaps/{HISTORY}", self.namespace);
        let kept = match api.get(uri).await {
            Ok(answer) if answer.code == 200 => {
                self.exists = true;
                serde_json::from_str(&answer.body)
                    .map_err(|error| error.to_string())
                    .and_then(|object| history_of(&object))
            }
            Ok(answer) if answer.code == 404 => {
                self.exists = false;
                return;
            }
            Ok(answer) => Err(format!("HTTP status {}", answer.code)),
            Err(error) => Err(error.message),
        };
        match kept {
            Ok(kept) => {
                let latest = kept.evictions().next_back().map(|past| past.at);
                let newer = known.evictions().filter(|past| latest.is_none_or(|latest| past.at > latest));
                *known = History::of(kept.evictions().chain(newer).cloned().collect());
            }
            Err(error) => tracing::warn!(
                namespace = self.namespace,
                configmap = HISTORY,
                error,
                "the history of evictions cannot be read, and begins anew; permit `get` of the ConfigMap, or delete it"
            ),
        }
    }

    /// The history has changed.
    pub(crate) fn changed(&mut self) {
        self.is_due = true;
    }

    /// Writes the history where it has changed. What cannot be written is written with the next change.
    pub(crate) async fn save(&mut self, api: &Api, history: &History) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        let data = json!({HISTORY_KEY: history.to_json().to_string()});
        let mut result = api.write(&self.write(&data)).await;
        if result.is_err() {
            // Another has created or deleted it meanwhile.
            self.exists = !self.exists;
            result = api.write(&self.write(&data)).await;
        }
        match result {
            Ok(_) => (self.exists, self.has_failed) = (true, false),
            Err(error) => {
                self.is_due = true;
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!(%error, "the history of evictions cannot be kept; after a restart pods may be evicted again for the same reason");
                }
            }
        }
    }

    fn write(&self, data: &Value) -> Write {
        let action = if self.exists {
            Action::Patch { subresource: "", patch: json!({"data": data}) }
        } else {
            let metadata = json!({"name": HISTORY, "namespace": self.namespace});
            Action::Create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        };
        Write { kind: ResourceKind::typed::<k8s_openapi::api::core::v1::ConfigMap>(), key: self.key(), action }
    }
}

/// The history that a ConfigMap keeps; one without the entry has no evictions.
///
/// # Errors
///
/// The entry is no history.
pub fn history_of(config_map: &Value) -> Result<History, String> {
    let text = config_map["data"][HISTORY_KEY].as_str().unwrap_or("[]");
    History::from_json(text).map_err(|error| format!("{HISTORY_KEY}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_history_says_where() {
        let read = |text: &str| history_of(&json!({"data": {HISTORY_KEY: text}}));
        assert_eq!(read("[]"), Ok(History::default()));
        assert_eq!(history_of(&json!({})), Ok(History::default()));
        assert!(read("[{}]").unwrap_err().starts_with("evictions.json: missing field"));
        assert!(read("no").is_err());
    }
}
