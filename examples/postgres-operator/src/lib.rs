//! A small operator for PostgreSQL: one kind in two versions, one controller, both webhooks and the conversion.
//!
//! It depends on the facade `koord` alone. `docs/library.md` builds it up step by step.

extern crate koord as koord_resource;

pub mod backups;
pub mod controller;
pub mod database;
pub mod operator;

use koord::{
    admission::{Handler, WebhookKind},
    controller::ControllerSpec,
    controllers,
    convert::Conversion,
    declare::Profile,
    document::{Declared, WebhookService, converted_resource_definition, roles, webhook_configuration},
    handlers,
    program::permissions,
    serde_json::Value,
    webhook,
};

use crate::{controller::DatabaseController, database::Database};

/// The kind in all of its versions, newest first.
pub const DATABASE: &[Declared] = &[Declared::of::<Database>(), Declared::of::<Database>().older("v1alpha1")];

/// The way between them.
pub const CONVERSIONS: &[Conversion] = &[Conversion::of::<Database>(&["v1alpha1"])];

/// What the webhook server serves.
pub const HANDLERS: &[Handler<()>] = handlers![Database::mutating_handler(), Database::validating_handler()];

/// What the manager runs.
pub const CONTROLLERS: &[ControllerSpec] = controllers![DatabaseController];

/// The namespace that the operator is installed in.
pub const NAMESPACE: &str = "postgres";

/// The name of the operator, its Service and its webhook configurations.
pub const NAME: &str = "postgres-operator";

/// The Secret with the certificates of the webhooks.
const CERTIFICATES: &str = "postgres-operator-certs";

/// Everything that must be configured for a cluster.
pub fn manifests() -> Vec<Value> {
    let service = WebhookService { namespace: NAMESPACE, name: NAME, ca_bundle: "Cg==" };
    let mut rules = permissions(CONTROLLERS);
    rules.extend(webhook::rbac(&[CERTIFICATES], &[NAME], &[NAME]));
    rules.push(webhook::CONVERSION_RBAC);
    let mut manifests = vec![converted_resource_definition(DATABASE, Profile::Compatible, &service)];
    manifests.extend(roles(NAME, &rules, NAMESPACE));
    manifests.push(webhook_configuration(WebhookKind::Mutating, NAME, HANDLERS, &service));
    manifests.push(webhook_configuration(WebhookKind::Validating, NAME, HANDLERS, &service));
    manifests
}
