//! The runtime of a test.

use anyhow::Result;
use tokio::runtime;

/// Runs a test in one thread on paused time: while everything waits, the clock goes to the next moment for which something
/// waits. What waits for a socket or a process does not stop the clock, so such a test needs a runtime of its own.
pub fn run(test: impl Future<Output = Result<()>>) -> Result<()> {
    runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(test)
}
