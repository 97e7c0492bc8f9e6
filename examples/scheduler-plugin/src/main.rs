//! koord-scheduler with a plugin of its own: spot nodes are for pods that may be interrupted.

mod spot_nodes;

use std::process::ExitCode;

use koord_scheduler::Scheduler;

use crate::spot_nodes::SpotNodes;

fn main() -> ExitCode {
    Scheduler::new().with_plugin(SpotNodes).main()
}
