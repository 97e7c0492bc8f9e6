//! The operator on koord: `koord-operator manifests | kubectl apply -f -`, then `koord-operator`.
extern crate koord as koord_resource;

mod cache;
mod controller;

use std::process::ExitCode;

use cache::CacheCluster;
use controller::Caches;
use koord::{
    declare::Profile,
    document::{Declared, custom_resource_definition},
    program::{Build, print_manifests, run_controllers},
    runtime::metrics::Description,
};

const BUILD: Build = Build {
    program: "koord-operator",
    version: env!("CARGO_PKG_VERSION"),
    field_manager: "cache-operator",
    namespace: "default",
    gates: &[],
    info: Description::gauge("cache_operator_build_info", &["version", "language"], "Always 1."),
};

fn main() -> ExitCode {
    let manifests = || vec![custom_resource_definition(&[Declared::of::<CacheCluster>()], Profile::Compatible)];
    if let Some(code) = print_manifests(BUILD.program, manifests) {
        return code;
    }
    run_controllers(BUILD, |program| {
        program.core().add(Caches::SPEC, BUILD.program, Caches::wire)?;
        Ok(())
    })
}
