//! A ConfigMap with all its data.

use std::collections::BTreeMap;

use koord_resource::{Projection, controller::ResourceKind};

/// A ConfigMap with all its data.
#[derive(Debug, PartialEq, Eq, Projection)]
#[koord(kind = ResourceKind::CONFIG_MAP)]
pub struct ConfigMapView {
    data: Option<BTreeMap<String, String>>,
}

impl ConfigMapView {
    /// The text of a key; none when it is absent.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.data.as_ref()?.get(key).map(String::as_str)
    }

    /// All keys, when there are any.
    pub fn data(&self) -> Option<&BTreeMap<String, String>> {
        self.data.as_ref()
    }
}
