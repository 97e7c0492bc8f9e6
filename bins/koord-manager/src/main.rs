//! Controllers and admission webhooks of Koordinator.

use std::process::ExitCode;

use koord_manager::run;
use koord_manager_assembly::Options;
use koord_program::logs;

fn main() -> ExitCode {
    let read = |arguments| {
        let checked = Options::from_arguments(arguments)?.check()?;
        logs::init(&checked.options.program.log_filter(&[]));
        Ok(checked)
    };
    koord_program::run("koord-manager", read, run)
}
