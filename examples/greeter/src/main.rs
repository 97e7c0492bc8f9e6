//! The operator of the README: `greeter manifests | kubectl apply -f -`, then `greeter`.
extern crate koord as koord_resource;

mod greeting;

use std::process::ExitCode;

use greeting::{Greeting, Greetings};
use koord::{
    declare::Profile,
    document::{Declared, custom_resource_definition, roles},
    program::{Build, permissions, print_manifests, run_controllers},
    runtime::metrics::Description,
    serde_json::Value,
};

const BUILD: Build = Build {
    program: "greeter",
    version: env!("CARGO_PKG_VERSION"),
    field_manager: "greeter",
    namespace: "default",
    gates: &[],
    info: Description::gauge("greeter_build_info", &["version", "language"], "Always 1; the labels show the version."),
};

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
    let mut manifests = vec![custom_resource_definition(&[Declared::of::<Greeting>()], Profile::Compatible)];
    manifests.extend(roles("greeter", &permissions([&Greetings::SPEC]), BUILD.namespace));
    manifests
}
