//! An admission webhook server.
//!
//! It listens with TLS, keeps its certificate and both webhook configurations right, reads AdmissionReviews (v1 and
//! v1beta1) and calls the [`Handler`](koord_resource::admission::Handler) of the path, and converts objects between the
//! versions of their kinds. It knows nothing of Koordinator:
//! handlers are pure functions of a request and a snapshot, registered by the program.
//!
//! Read first: [`review`] (what is exchanged), [`ServiceBuilder`] (the routing table), [`Server`] (the whole).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod certificates;
pub mod configuration;
mod controller;
mod environment;
mod metrics;
pub mod review;
mod server;
mod service;
mod tls;
mod traced;
mod triggers;

pub use controller::{Served, WebhookController, WebhookControllerError};
pub use environment::{CertWriter, DEFAULT_PORT, Defaults, Environment, EnvironmentError};
pub use metrics::{METRICS, Metrics};
pub use server::{ServeError, Server};
pub use service::{BODY_BYTES_MAX, CACHE_WAIT_MAX, Page, Service, ServiceBuilder, SideEffect};
pub use tls::{TlsPolicy, tls};
