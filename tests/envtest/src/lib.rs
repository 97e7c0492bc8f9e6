//! A Kubernetes API server that lives inside a test, or inside `koordctl up`.
//!
//! The core ([`server::ApiServer`]) is a synchronous state machine over a [`store`] of bytes: no socket, no task, no
//! clock of its own, so that a simulation can drive it step by step. Around it stands the [`shell`]: an axum router
//! that serves `kube::Client` in process and any other client over a socket.
//!
//! Read first: [`server::ApiServer`], [`registry::ResourceDef`], [`strategy::Strategy`].
// A shelf is not oneself.
#![allow(clippy::similar_names)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod admission;
pub mod auth;
pub mod bootstrap;
pub mod builtins;
pub mod cluster;
pub mod conversion;
pub mod custom;
pub mod decode;
pub mod discovery;
pub mod encode;
pub mod environment;
pub mod faults;
pub mod filter;
pub mod journal;
pub mod kinds;
pub mod metadata;
pub mod names;
pub mod negotiate;
pub mod openapi;
pub mod options;
pub mod pages;
pub mod present;
pub mod protobuf;
pub mod registry;
pub mod request;
pub mod selector;
pub mod serve;
pub mod server;
pub mod shell;
pub mod status;
pub mod store;
pub mod strategy;
pub mod tables;
pub mod yaml;
