//! A small operator for PostgreSQL: one kind in two versions, one controller, both webhooks and the conversion.
//!
//! It depends on the facade `koord` and on `serde`, and knows no other crate of the library. `docs/library.md` builds it up step by
//! step.
//!
//! Read first: [`database::Database`] (the kind), [`controller::DatabaseController`] (what is decided), [`operator`] (the wiring).

pub mod backups;
pub mod configuration;
pub mod controller;
pub mod database;
pub mod operator;

use koord::{
    admission::Handler, controller::ControllerSpec, controllers, convert::Conversion, document::Declared, handlers,
};
pub use operator::manifests;

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
