//! The configuration file of a program: the ConfigMap that holds it, and how the program finds it.

use serde_json::{Map, Value, json};

use super::Installation;
use crate::convert::fingerprint;

/// The annotation of the pods that changes with the file, as charts write it.
pub(super) const CHECKSUM: &str = "checksum/config";

/// The volume with the file.
const VOLUME: &str = "configuration";

/// The configuration file of an operator, which its flag `--config` names.
///
/// The file is a key of a ConfigMap, and the pods mount the ConfigMap to be read. They have an annotation with a checksum of the file, so
/// that a changed file replaces them.
///
/// ```
/// use koord_resource::document::ConfigurationFile;
///
/// let file = ConfigurationFile::of("waiter", "apiVersion: config.example.com/v1\nkind: WaiterConfiguration\n");
/// assert_eq!((file.config_map.as_str(), file.path().as_str()), ("waiter-config", "/etc/waiter/config.yaml"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationFile {
    /// Name of the ConfigMap.
    pub config_map: String,
    /// Key of the ConfigMap; name of the file.
    pub key: String,
    /// Folder of the pods where the ConfigMap is mounted.
    pub folder: String,
    /// Content of the file. An API server takes at most 1 MiB.
    pub text: String,
}

impl ConfigurationFile {
    /// A file with this text: `config.yaml` of the ConfigMap `NAME-config`, at `/etc/NAME/config.yaml`.
    pub fn of(name: &str, text: &str) -> Self {
        Self {
            config_map: format!("{name}-config"),
            key: "config.yaml".to_owned(),
            folder: format!("/etc/{name}"),
            text: text.to_owned(),
        }
    }

    /// Path of the file in the pods.
    pub fn path(&self) -> String {
        format!("{}/{}", self.folder, self.key)
    }

    /// The ConfigMap in the namespace of the installation.
    pub(super) fn object(&self, installation: &Installation) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": installation.in_namespace(&self.config_map),
            "data": self.data(),
        })
    }

    /// The volume, and its place in the container.
    pub(super) fn volume(&self) -> (Value, Value) {
        let volume = json!({"name": VOLUME, "configMap": {"name": self.config_map}});
        (volume, json!({"name": VOLUME, "mountPath": self.folder, "readOnly": true}))
    }

    /// A number that changes with what is mounted.
    pub(super) fn checksum(&self) -> String {
        format!("{:016x}", fingerprint(&self.data()))
    }

    fn data(&self) -> Value {
        Value::Object(Map::from_iter([(self.key.clone(), json!(self.text))]))
    }
}
