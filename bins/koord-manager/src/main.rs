//! Controllers and admission webhooks of Koordinator.

use std::process::ExitCode;

use koord_manager::{Options, run};
use koord_program::logs;

fn main() -> ExitCode {
    let read = |arguments| {
        let checked = Options::from_arguments(arguments)?.check()?;
        logs::init(&checked.options.program.log_filter(&[]));
        Ok(checked)
    };
    koord_program::run("koord-manager", read, run)
}
