//! The descheduler of Koordinator.

use std::process::ExitCode;

use koord_descheduler::{NAME, Options, run};
use koord_program::logs;

fn main() -> ExitCode {
    let read = |arguments| {
        let checked = Options::from_arguments(arguments)?.check()?;
        logs::init(&checked.options.log_filter());
        Ok(checked)
    };
    koord_program::run(NAME, read, run)
}
