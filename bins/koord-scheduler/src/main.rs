//! The scheduler of Koordinator.

use std::process::ExitCode;

use koord_scheduler::Scheduler;

fn main() -> ExitCode {
    Scheduler::new().main()
}
