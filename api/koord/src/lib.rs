//! Declarative reconciliation for Kubernetes: annotated Rust types become CRDs, validation, defaulting, admission
//! webhooks, conversion and controllers.
//!
//! This crate is a facade: everything of `koord-resource`, and behind features the runtime of controllers (`runtime`), what a program is
//! made of around them (`program`), the webhook server (`webhook`), an API server inside a test (`envtest`) and a cluster for the tests of an
//! operator (`testing`). Derived code finds
//! this crate by the name that `Cargo.toml` has for it, or `koord-resource` where that is a dependency of its own.
//!
//! # Where to begin
//!
//! To write an operator: `docs/library.md` leads from an empty crate to a tested operator, and `examples/greeter` is one in
//! a file. To read the code, in this order; each page says what its crate is, what it does not know, and which types to
//! read first:
//!
//! | crate | what it is |
//! |---|---|
//! | [`koord_schema`](../koord_schema/index.html) | structural schemas, CEL, JSON, merge and strategic-merge patches: pure functions of JSON |
//! | [`koord_resource`](../koord_resource/index.html) | what a declared type is: identity, schema, validation, mutation, conversion, handlers, roles |
//! | [`koord_macros`](../koord_macros/index.html) | the derives and attributes that implement it |
//! | [`koord_core`](../koord_core/index.html) | caches, the protocol of list and watch, work queues, leader election, plans: state machines without I/O |
//! | [`koord_client`](../koord_client/index.html) | requests to the API server, with their rate limit |
//! | [`koord_metrics`](../koord_metrics/index.html) | metrics as data, and their registries |
//! | [`koord_runtime`](../koord_runtime/index.html) | the tasks: watches, workers, leader election, events, and the manager around them |
//! | [`koord_listen`](../koord_listen/index.html) | sockets, with limits of connections and bodies |
//! | [`koord_program`](../koord_program/index.html) | what a program is made of: flags, gates, kubeconfig, logs, signals, exit codes, wiring |
//! | [`koord_webhook`](../koord_webhook/index.html) | the webhook server: TLS, certificates, AdmissionReview, conversion |
//! | [`envtest`](../envtest/index.html) | a Kubernetes API server that runs in a test |
//! | [`koord_testing`](../koord_testing/index.html) | an operator on that server, and what its tests wait for |
//! | [`koord_simulation`](../koord_simulation/index.html) | an operator in virtual time, and faults that follow from a seed |
//!
//! Koordinator, made with them:
//!
//! | crate | what it is |
//! |---|---|
//! | [`koord_api`](../koord_api/index.html) | the 13 kinds, and the protocol of labels, annotations and configuration |
//! | [`koord_scheduling`](../koord_scheduling/index.html) | selectors, taints, pod requests, QoS classes, CPU sets and NUMA nodes, as scheduler, webhooks and node agent share them |
//! | [`koord_quota`](../koord_quota/index.html) | the tree of quotas: its rules, its snapshot and the runtime quota |
//! | [`koord_config`](../koord_config/index.html) | the configurations of scheduler and descheduler as declared types |
//! | [`koord_profile`](../koord_profile/index.html) | which profiles apply to a pod, and what they change |
//! | [`koord_manager_controllers`](../koord_manager_controllers/index.html) | the controllers of koord-manager |
//! | [`koord_webhooks`](../koord_webhooks/index.html) | the admission handlers of koord-manager |
//! | [`koord_manager`](../koord_manager/index.html), [`koordctl`](../koordctl/index.html), [`crdgen`](../crdgen/index.html) | the programs |
//! | [`hollow`](../hollow/index.html) | nodes without machines, for tests and `koordctl up` |
//!
//! `docs/architecture.md` shows which crate may depend on which, and the invariants that hold between them.

pub use koord_resource::*;
pub use koord_resource::{k8s_openapi, serde, serde_json};

#[cfg(feature = "program")]
pub use koord_program as program;
#[cfg(feature = "simulation")]
pub use koord_simulation as simulation;
#[cfg(feature = "testing")]
pub use koord_testing as testing;
#[cfg(feature = "webhook")]
pub use koord_webhook as webhook;
#[cfg(feature = "schemars")]
pub use schemars;
#[cfg(feature = "envtest")]
pub use {envtest, koord_schema::cel};
#[cfg(feature = "runtime")]
pub use {http, jiff, koord_runtime as runtime, kube, tokio, tokio_util};
