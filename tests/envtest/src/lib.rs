//! A Kubernetes API server that lives inside a test, or inside `koordctl up`.
//!
//! The core ([`server::ApiServer`]) is a synchronous state machine over a [`store`] of bytes: no socket, no task, no
//! clock of its own, so that a simulation can drive it step by step. Around it stands [`shell::Server`]: an axum router
//! that serves `kube::Client` in process and any other client over a socket. The crate knows nothing of
//! Koordinator.
//!
//! Read first: [`server::ApiServer`], [`registry::ResourceDef`], [`strategy::Strategy`].
//!
//! # Rooms
//!
//! The modules below stand in groups. A module uses its own group and the groups above it, never one below, and no two
//! modules use each other; a test reads the sources for that.
//!
//! 1. texts and plain data: requests, statuses, names, stored bytes, the types of built-in kinds
//! 2. what a resource is: definitions, strategies, selection, and the ways between bodies, values and records
//! 3. the core: routes, admission, storage, watches, garbage collection
//! 4. the built-in kinds, and the objects of a new server
//! 5. HTTP and streams around the core
//! 6. what stands around it: webhooks, authentication, documents, TLS
//! 7. a whole server, as programs start it
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub use koord_resource::yaml;

pub mod addresses;
pub mod builtins;
pub mod environment;
pub mod metadata;
pub mod names;
pub mod negotiate;
pub mod protobuf;
pub mod request;
pub mod selector;
pub mod status;
pub mod store;
pub mod x509;

pub mod conversion;
pub mod custom;
pub mod decode;
pub mod discovery;
pub mod encode;
pub mod faults;
pub mod filter;
pub mod journal;
pub mod options;
pub mod present;
pub mod registry;
pub mod strategy;
pub mod tables;

pub mod server;

pub mod bootstrap;
pub mod kinds;

pub mod shell;

pub mod admission;
pub mod auth;
pub mod openapi;
pub mod pages;
pub mod serve;

pub mod cluster;
