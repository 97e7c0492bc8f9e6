//! Declarative reconciliation for Kubernetes: annotated Rust types become CRDs, validation, defaulting, admission
//! webhooks, conversion and controllers.
//!
//! This crate is a facade: everything of [`koord_resource`] stands at its root, and other crates are modules of it, each
//! behind a feature. It has no code of its own, and knows nothing of Koordinator. Derived code finds this crate by the name
//! that `Cargo.toml` has for it, or `koord-resource` where that is a dependency of its own.
//!
//! Read first: [`trait@Resource`] (a kind), [`trait@Schema`] (its fields), and `runtime::controller::Controller` (what is
//! decided about its objects).
//!
//! | feature | gives |
//! |---|---|
//! | `runtime` | watches, caches, queues, controllers and the manager around them |
//! | `program` | `runtime`, and a program around it: flags, kubeconfig, logs, metrics, health, leader election |
//! | `serving` | `program`, and a port with TLS for users whom the API server permits it, with its flags |
//! | `configuration` | configuration files as declared types; with `program` the flag `--config` |
//! | `webhook` | `runtime`, and the webhook server |
//! | `schemars` | fields whose types implement `schemars::JsonSchema` |
//! | `envtest` | an API server inside a test |
//! | `testing` | `envtest` and `runtime`, and a cluster for the tests of an operator |
//! | `simulation` | `envtest` and `runtime`, and an operator in virtual time with faults that follow from a seed |
//!
//! # Where to begin
//!
//! To write an operator: `docs/library.md` leads from an empty crate to a tested operator, and `examples/greeter` is one
//! in a file. To read the code, in this order; each page says what its crate is, what it does not know, and which types
//! to read first. Crates of features that are off are left out:
//!
//! | crate | what it is |
//! |---|---|
//! | [`koord_schema`] | structural schemas, CEL, JSON, merge and strategic-merge patches: pure functions of JSON |
//! | [`koord_builtins`] | the types of the kinds that every API server has, as data |
//! | [`koord_resource`] | what a declared type is: identity, schema, validation, mutation, conversion, handlers, roles |
//! | [`koord_macros`] | the derives and attributes that implement it |
#![warn(missing_docs)]
#![cfg_attr(feature = "configuration", doc = "| [`koord_configuration`] | configuration files as declared types |")]
#![cfg_attr(feature = "runtime", doc = "| [`koord_core`] | caches, list and watch, queues, elections, plans: no I/O |")]
#![cfg_attr(feature = "runtime", doc = "| [`koord_metrics`] | metrics as data, and their registries |")]
#![cfg_attr(feature = "runtime", doc = "| [`koord_client`] | requests to the API server, with their rate limit |")]
#![cfg_attr(feature = "runtime", doc = "| [`koord_listen`] | sockets, with limits of connections and bodies |")]
#![cfg_attr(feature = "runtime", doc = "| [`koord_runtime`] | the tasks: watches, workers, leader election, events |")]
#![cfg_attr(feature = "program", doc = "| [`koord_scheduling`] | selectors, taints, pod requests, CPU sets, devices |")]
#![cfg_attr(feature = "program", doc = "| [`koord_program`] | flags, gates, kubeconfig, logs, signals, exit codes |")]
#![cfg_attr(feature = "webhook", doc = "| [`koord_webhook_server`] | TLS, certificates, AdmissionReview, conversion |")]
#![cfg_attr(feature = "envtest", doc = "| [`envtest`] | a Kubernetes API server that runs in a test |")]
#![cfg_attr(feature = "testing", doc = "| [`koord_testing`] | an operator on that server, and its webhooks |")]
#![cfg_attr(feature = "simulation", doc = "| [`koord_simulator`] | an operator in virtual time, with seeded faults |")]
//!
// A checkout documents all features, and the crates of Koordinator beside these. An operator has some of them, and where it documents them no page
// of Koordinator's own crates.
#![cfg_attr(
    all(
        feature = "configuration",
        feature = "program",
        feature = "schemars",
        feature = "simulation",
        feature = "testing",
        feature = "webhook",
        not(docsrs)
    ),
    doc = "Koordinator is made with them: [`koord_types`]."
)]
//!
//! `docs/architecture.md` shows which crate may depend on which, and the invariants that hold between them.
//!
// Cargo documents crates without their dependencies in no order, and rustdoc links the path of another crate only where
// its pages are already: the links above name files. On docs.rs each crate is alone, and its paths lead to other pages there.
#![cfg_attr(docsrs, doc = include_str!("links/docs-rs.md"))]
#![cfg_attr(not(docsrs), doc = include_str!("links/checkout.md"))]

// Each by its name, because rustdoc follows `*` into k8s-openapi.
#[doc(inline)]
pub use koord_resource::{
    Column, Convert, Duration, Extras, IntOrString, Mutate, Older, Projection, Quantity, Resource, ResourceInfo,
    ResourceList, Scale, Schema, Scope, Selectable, Served, Time, Validate, Versions, admission, controller,
    controllers, convert, declare, document, duration, field, go_json, handlers, int_or_string, mutate, quantity, rbac,
    rule, schema, strict_json, time, validate, yaml,
};
#[doc(no_inline)]
pub use koord_resource::{k8s_openapi, serde, serde_json};

// Their pages stand here too, where an operator's code names them: rustdoc shows another crate only when it is asked to.
#[cfg(feature = "envtest")]
#[doc(inline)]
pub use envtest;
#[cfg(feature = "configuration")]
#[doc(inline)]
pub use koord_configuration as configuration;
#[cfg(feature = "program")]
#[doc(inline)]
pub use koord_program as program;
#[cfg(feature = "cel")]
pub use koord_resource::schema::cel;
#[cfg(feature = "runtime")]
#[doc(inline)]
pub use koord_runtime as runtime;
#[cfg(feature = "simulation")]
#[doc(inline)]
pub use koord_simulator as simulation;
#[cfg(feature = "testing")]
#[doc(inline)]
pub use koord_testing as testing;
#[cfg(feature = "webhook")]
#[doc(inline)]
pub use koord_webhook_server as webhook;
#[cfg(feature = "schemars")]
pub use schemars;
#[cfg(feature = "runtime")]
pub use {http, jiff, koord_runtime::prometheus, kube, tokio, tokio_util};
