//! Taints of devices: of themselves, and by rules.

use std::sync::Arc;

use k8s_openapi::{ClusterResourceScope, Resource};
use serde::Deserialize;

use super::Selector;

/// What keeps a device from being given to requests that do not tolerate it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceTaint {
    pub key: String,
    pub value: String,
    /// `NoSchedule` or `NoExecute`.
    pub effect: String,
}

/// A taint that does not matter to a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceToleration {
    /// The key; empty for all.
    pub key: String,
    /// `Equal` or `Exists`; empty is the first.
    pub operator: String,
    pub value: String,
    /// The effect; empty for all.
    pub effect: String,
}

/// A DeviceTaintRule: a taint of devices of several slices.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceTaintRule {
    /// Which devices, and the taint.
    pub spec: TaintRuleSpec,
}

/// The taint of a rule, and the devices that have it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TaintRuleSpec {
    /// The devices; none for all.
    pub device_selector: Option<TaintedDevices>,
    pub taint: DeviceTaint,
}

/// The devices of a rule: all of this must hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TaintedDevices {
    /// The class to which they belong.
    pub device_class_name: Option<String>,
    pub driver: Option<Arc<str>>,
    pub pool: Option<Arc<str>>,
    pub device: Option<Arc<str>>,
    pub selectors: Vec<Selector>,
}

impl Resource for DeviceTaintRule {
    const API_VERSION: &'static str = "resource.k8s.io/v1alpha3";
    const GROUP: &'static str = "resource.k8s.io";
    const KIND: &'static str = "DeviceTaintRule";
    const VERSION: &'static str = "v1alpha3";
    const URL_PATH_SEGMENT: &'static str = "devicetaintrules";
    type Scope = ClusterResourceScope;
}
