//! The node agent of Koordinator.

use std::process::ExitCode;

use koord_program::logs;
use koordlet::{NAME, Options, run};

fn main() -> ExitCode {
    let read = |arguments| {
        let checked = Options::from_arguments(arguments)?.check()?;
        logs::init(&checked.options.log_filter());
        Ok(checked)
    };
    koord_program::run(NAME, read, run)
}
