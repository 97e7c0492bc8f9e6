//! The controller of name cards as a program of its own: `koordctl plan --program target/debug/examples/name_cards_operator`.

#[path = "../../../controllers/runtime/examples/name_cards/controller.rs"]
mod controller;

use std::process::ExitCode;

use controller::{COMPONENT, NameCards};
use koord_program::{Build, run_controllers};
use koord_runtime::metrics::Description;

const BUILD: Build = Build {
    program: "name_cards",
    version: env!("CARGO_PKG_VERSION"),
    field_manager: "name-cards",
    namespace: controller::NAMESPACE,
    gates: &[],
    info: Description::gauge(
        "name_cards_build_info",
        &["version", "language"],
        "Always 1; the labels show the version.",
    ),
};

fn main() -> ExitCode {
    run_controllers(BUILD, |setup| {
        setup.core().add(NameCards::SPEC, COMPONENT, NameCards::wire)?;
        Ok(())
    })
}
