//! The command `PROGRAM manifests`: what an installation of the program consists of.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use koord_resource::{document::yaml, serde_json::Value};

use crate::run;

/// Whether the program answers `PROGRAM manifests`: it has looked for that command before it reads its flags.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// What `--help` says of it; none where the program has no such command.
#[cfg(feature = "controllers")]
pub(crate) fn help(program: &str) -> Option<String> {
    let line = || format!("{program} manifests  prints what is applied to a cluster, for kubectl apply -f -");
    IS_ANSWERED.load(Ordering::Relaxed).then(line)
}

/// Prints the documents of `manifests` as YAML for `kubectl apply -f -` when the first argument of the command line is `manifests`, and gives the
/// exit code; gives none for any other command line, and does nothing.
///
/// ```no_run
/// # fn manifests() -> Vec<koord_resource::serde_json::Value> { Vec::new() }
/// fn main() -> std::process::ExitCode {
///     if let Some(code) = koord_program::print_manifests("waiter", manifests) {
///         return code;
///     }
///     koord_program::run("waiter", |_| Ok(()), async |(), _| Ok(()))
/// }
/// ```
pub fn print_manifests(program: &str, manifests: impl FnOnce() -> Vec<Value>) -> Option<ExitCode> {
    IS_ANSWERED.store(true, Ordering::Relaxed);
    let is_asked = std::env::args_os().nth(1).is_some_and(|argument| argument == "manifests");
    is_asked.then(|| {
        let print = async |(), _| {
            print!("{}", yaml::stream(&manifests())?);
            Ok(())
        };
        run(program, |_| Ok(()), print)
    })
}
