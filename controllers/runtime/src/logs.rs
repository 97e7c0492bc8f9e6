//! Structured logs, made more or less talkative by klog's `--v`.

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The level that a verbosity stands for: up to 3 information, 4 and 5 debugging, from 6 on everything.
pub fn level(verbosity: u8) -> &'static str {
    match verbosity {
        0..=3 => "info",
        4..=5 => "debug",
        _ => "trace",
    }
}

/// Sends logs to the standard error. Dependencies stay at warnings below verbosity 8.
/// Does nothing when logs already go somewhere, as in a program that runs several parts.
pub fn init(verbosity: u8, format: Format) {
    let others = if verbosity >= 8 { level(verbosity) } else { "warn" };
    let own = level(verbosity);
    let own = ["koord_runtime", "koord_manager", "koord_manager_controllers", "koord_webhook", "koord_webhooks"]
        .map(|target| format!("{target}={own}"));
    let filter = EnvFilter::new(format!("{others},{}", own.join(",")));
    let registry = tracing_subscriber::registry().with(filter);
    let done = match format {
        Format::Text => registry.with(fmt::layer().with_writer(std::io::stderr).with_ansi(false)).try_init(),
        Format::Json => registry.with(fmt::layer().json().with_writer(std::io::stderr)).try_init(),
    };
    if done.is_err() {
        tracing::debug!("logs already go somewhere");
    }
}
