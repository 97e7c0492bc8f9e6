//! The values of the chart, declared: fields, types, bounds, defaults and meanings. `values.yaml`, its JSON Schema, the defaults that templates fill
//! in and the reference page are generated from these types.
//!
//! The names are those of the original's chart, so that its values files install. "Added" marks what it lacks.

mod definitions;
mod descheduler;
mod files;
mod forms;
mod image;
mod koordlet;
mod manager;
mod monitoring;
mod pods;
mod scheduler;
mod table;
mod webhooks;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use definitions::Definitions;
use descheduler::Descheduler;
pub(super) use files::documents;
use forms::{Object, PullSecrets};
use koordlet::Koordlet;
use manager::Manager;
use scheduler::Scheduler;
use webhooks::WebhookConfiguration;
pub(super) use webhooks::failure_policy_of;

/// Values of the chart koordinator
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("patternProperties" = {"^x-": {}}))]
struct Values {
    /// Values of a parent chart, without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Object")]
    global: Option<Object>,
    /// Accepted for compatibility, without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    name_override: Option<String>,
    /// Accepted for compatibility, without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    fullname_override: Option<String>,
    /// Host of the registry that images are pulled from.
    image_repository_host: String,
    /// Secrets to pull images with: [{name: SECRET}].
    image_pull_secrets: PullSecrets,
    /// Feature gates of the manager, such as "NodeMutatingWebhook=true,AllBeta=false".
    /// A gate that is off removes its webhook entries.
    feature_gates: String,
    installation: Installation,
    /// The custom resource definitions.
    crds: Definitions,
    /// koord-manager.
    manager: Manager,
    webhook_configuration: WebhookConfiguration,
    service_account: ServiceAccount,
    priority_classes: PriorityClasses,
    /// Added. Keys of the ConfigMap slo-controller-config, each a JSON text. A key that is absent here keeps its value in the cluster.
    slo_controller_config: BTreeMap<String, String>,
    /// koord-scheduler.
    scheduler: Scheduler,
    /// koord-descheduler.
    descheduler: Descheduler,
    /// koordlet, the node agent.
    koordlet: Koordlet,
    /// koord-device-daemon, which this chart does not install: accepted for compatibility, without effect.
    device_daemon: Object,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Installation {
    /// Namespace of all namespaced objects; not necessarily the release's.
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    namespace: String,
    /// Whether the chart creates the namespace; false where it exists already.
    create_namespace: bool,
    /// Accepted for compatibility, without effect: roles name the API groups that they grant.
    role_list_groups: Vec<String>,
    /// Added. When a release of the original's chart is upgraded, what it has beside the manager (scheduler, descheduler, koordlet, device daemon)
    /// stays in the release as it is, unless the chart installs it. False removes it.
    carry_over: bool,
}

impl Default for Installation {
    fn default() -> Self {
        Self {
            namespace: crate::installation::NAMESPACE.to_owned(),
            create_namespace: true,
            role_list_groups: vec!["*".to_owned()],
            carry_over: true,
        }
    }
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ServiceAccount {
    /// Annotations of the ServiceAccounts.
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct PriorityClasses {
    /// Added. Whether the chart creates the PriorityClasses koord-prod, koord-mid, koord-batch and koord-free.
    managed: bool,
}

impl Default for PriorityClasses {
    fn default() -> Self {
        Self { managed: true }
    }
}
