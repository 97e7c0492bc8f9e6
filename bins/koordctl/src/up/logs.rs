//! What a cluster logs: by default only what its user should act on.

use koord_program::logs;

/// Sends logs to the standard error: errors alone, warnings and what the parts do with `-v`, everything of ours with `-vv`.
pub fn init(verbosity: u8) {
    logs::init(match verbosity {
        0 => "error",
        1 => "warn,koord=info",
        _ => "info,koord=debug,envtest=debug",
    });
}
