//! A ConfigMap with all its data.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    projection::{Metadata, Projection, Unreadable, WireMetadata},
};
use serde::Deserialize;

/// A ConfigMap with all its data.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigMapView {
    /// What users wrote.
    pub data: BTreeMap<String, String>,
    /// For events.
    pub uid: Arc<str>,
}

/// What is read of a ConfigMap.
#[derive(Deserialize)]
pub struct Wire<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl<'a> Metadata<'a> for Wire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for ConfigMapView {
    const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
    type Wire<'a> = Wire<'a>;
    type Index = ();

    fn project(wire: Wire<'_>, _: &mut Interner) -> Result<Self, Unreadable> {
        Ok(Self { data: wire.data.unwrap_or_default(), uid: wire.metadata.uid.as_ref().into() })
    }
}
