//! The protocols against other ends that are written here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cri;
mod exchange;
mod fake_grpc;
mod fake_runtime;
mod hookserver;
mod nri;
mod nri_reconnect;
mod podresources;
mod recorder;
