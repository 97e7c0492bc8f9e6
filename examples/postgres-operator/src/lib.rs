//! A small operator for PostgreSQL: one kind in two versions, one controller, both webhooks.
//!
//! It depends on the facade `koord` alone. `docs/library.md` builds it up step by step.

extern crate koord as koord_resource;

pub mod controller;
pub mod database;

use koord::{
    admission::{Handler, WebhookKind},
    controller::ControllerSpec,
    controllers,
    convert::Conversion,
    declare::Profile,
    document::{Declared, WebhookService, custom_resource_definition, roles, webhook_configuration},
    handlers,
    serde_json::Value,
};

use crate::{controller::Databases, database::Database};

/// The kind in all of its versions, newest first.
pub const DATABASE: &[Declared] = &[Declared::of::<Database>(), Declared::of::<Database>().older("v1alpha1")];

/// The way between them.
pub const CONVERSIONS: &[Conversion] = &[Conversion::of::<Database>(&["v1alpha1"])];

/// What the webhook server serves.
pub const HANDLERS: &[Handler<()>] = handlers![Database::mutating_handler(), Database::validating_handler()];

/// What the manager runs.
pub const CONTROLLERS: &[ControllerSpec] = controllers![Databases];

/// Everything that a cluster must be told.
pub fn manifests() -> Vec<Value> {
    let service = WebhookService { namespace: "postgres", name: "postgres-operator", ca_bundle: "Cg==" };
    let rules: Vec<_> = CONTROLLERS.iter().flat_map(ControllerSpec::rbac_rules).collect();
    let mut manifests = vec![custom_resource_definition(DATABASE, Profile::Compatible)];
    manifests.extend(roles("postgres-operator", &rules, service.namespace));
    manifests.push(webhook_configuration(WebhookKind::Mutating, "postgres-operator", HANDLERS, &service));
    manifests.push(webhook_configuration(WebhookKind::Validating, "postgres-operator", HANDLERS, &service));
    manifests
}
