//! The operator of the README: `greeter manifests | kubectl apply -f -`, then `greeter`.
//!
//! It depends on the facade `koord` and on `serde`, and knows no other crate of the library. Read first: `greeting` (the kind
//! and its controller).

mod greeting;

use std::process::ExitCode;

use greeting::{Greeting, Greetings};
use koord::{
    document::{Declared, Installation, install},
    program::{Build, print_manifests, run_controllers},
    runtime::metrics::Description,
    serde_json::Value,
};

const BUILD: Build = Build {
    program: "greeter",
    version: env!("CARGO_PKG_VERSION"),
    field_manager: "greeter",
    namespace: "greeter",
    gates: &[],
    info: Description::gauge("greeter_build_info", &["version", "language"], "Always 1; the labels show the version."),
};

const KINDS: &[&[Declared]] = &[&[Declared::of::<Greeting>()]];

fn main() -> ExitCode {
    if let Some(code) = print_manifests(BUILD.program, manifests) {
        return code;
    }
    run_controllers(BUILD, |program| {
        program.core().add(Greetings::SPEC, "greeter", Greetings::wire)?;
        Ok(())
    })
}

fn manifests() -> Vec<Value> {
    install(&Installation {
        kinds: KINDS,
        controllers: &[Greetings::SPEC],
        ..Installation::new(BUILD.program, BUILD.namespace, concat!("greeter:v", env!("CARGO_PKG_VERSION")))
    })
}
