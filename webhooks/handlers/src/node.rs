//! Nodes: their labels and their amplified amounts.

pub mod mutate_status;
pub mod validate;

use std::collections::BTreeMap;

use koord_resource::{Projection, controller::ResourceKind};
use koord_runtime::store::Store;

use crate::settings::ObjectName;

/// What decisions about nodes see: the configuration of the node controllers.
#[derive(Clone, Copy)]
pub struct NodeView<'c> {
    pub(crate) slo_config: &'c Store<ConfigMapData>,
    /// The name of the configuration.
    pub(crate) name: &'c ObjectName,
}

/// The data of a ConfigMap.
#[derive(Debug, PartialEq, Eq, Projection)]
#[koord(kind = ResourceKind::CONFIG_MAP)]
pub(crate) struct ConfigMapData {
    pub(crate) data: Option<BTreeMap<String, String>>,
}
