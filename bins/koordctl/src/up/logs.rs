//! How much a cluster tells about itself: by default only what somebody should act on.

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Sends logs to the standard error: errors alone, warnings and what the parts do with `-v`, everything of ours with `-vv`.
pub fn init(verbosity: u8) {
    let filter = match verbosity {
        0 => "error",
        1 => {
            "warn,koordctl=info,koord_runtime=info,koord_manager=info,koord_manager_controllers=info,koord_webhook=info,koord_webhooks=info"
        }
        _ => {
            "info,koordctl=debug,envtest=debug,koord_runtime=debug,koord_manager=debug,koord_manager_controllers=debug,koord_webhook=debug,koord_webhooks=debug"
        }
    };
    let registry = tracing_subscriber::registry().with(EnvFilter::new(filter));
    // Only the first call counts: tests start several clusters in one process.
    let _ = registry.with(fmt::layer().with_writer(std::io::stderr)).try_init();
}
