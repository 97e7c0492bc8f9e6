//! Structured logs on the standard error; klog's `--v` sets their verbosity.

use std::sync::OnceLock;

use tracing_subscriber::{EnvFilter, Registry, fmt, layer::SubscriberExt, reload, util::SubscriberInitExt};

/// The filter of the logs of this process, while they are ours.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// The level that a verbosity stands for: up to 3 information, 4 and 5 debugging, from 6 on everything.
fn level(verbosity: u8) -> &'static str {
    match verbosity {
        0..=3 => "info",
        4..=5 => "debug",
        _ => "trace",
    }
}

/// The filter of a verbosity. It sets the level of this library, whose crates all begin with `koord`, and of the crates that
/// begin with one of these prefixes; others stay at warnings below verbosity 8, where the client logs no request that got no
/// answer, and HTTP/2 no client that resets its requests: what that means is said once, by whoever sends it and by the listener.
pub fn filter(verbosity: u8, prefixes: &[&str]) -> String {
    let own = level(verbosity);
    let others = if verbosity >= 8 { own } else { "warn,h2=error,kube_client::client::builder=off" };
    let crates = std::iter::once(&"koord").chain(prefixes);
    crates.fold(others.to_owned(), |filter, prefix| format!("{filter},{prefix}={own}"))
}

/// Sends logs that pass the filter to the standard error. Only the first call counts: a process may run several programs.
pub fn init(filter: &str) {
    let (filter, handle) = reload::Layer::new(EnvFilter::new(filter));
    let registry = tracing_subscriber::registry().with(filter);
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    if registry.with(layer).try_init().is_ok() {
        // Only the first call comes here.
        let _ = FILTER.set(handle);
    } else {
        tracing::debug!("logs are set up already");
    }
}

/// Sets another filter. Says no where the logs are not those of [`init`].
pub fn set(filter: &str) -> bool {
    FILTER.get().is_some_and(|handle| handle.reload(EnvFilter::new(filter)).is_ok())
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn verbosity_raises_the_programs_own_crates_first() {
        assert_eq!(filter(0, &[]), "warn,h2=error,kube_client::client::builder=off,koord=info");
        assert_eq!(filter(5, &["greeter"]), "warn,h2=error,kube_client::client::builder=off,koord=debug,greeter=debug");
        assert_eq!(filter(8, &[]), "trace,koord=trace");
    }

    #[test]
    fn a_prefix_stands_for_all_crates_that_begin_with_it() {
        let subscriber = tracing_subscriber::registry().with(EnvFilter::new(filter(4, &[])));
        tracing::subscriber::with_default(subscriber, || {
            assert!(tracing::enabled!(target: "koord_runtime::queue", Level::DEBUG));
            assert!(!tracing::enabled!(target: "koord_runtime::queue", Level::TRACE));
            assert!(tracing::enabled!(target: "hyper::client", Level::WARN));
            assert!(!tracing::enabled!(target: "hyper::client", Level::INFO));
        });
    }
}
