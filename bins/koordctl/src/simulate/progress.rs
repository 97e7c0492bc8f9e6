//! How far a simulation is: a bar on a terminal, nothing elsewhere.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use koord_scheduler_simulator::Progress;

/// A bar on standard error; gone when it is dropped.
pub(super) struct Bar(Option<ProgressBar>);

impl Bar {
    /// The bar of a configuration, for so many pods.
    pub(super) fn shown(config: &str, pods: usize) -> Self {
        Self(std::io::stderr().is_terminal().then(|| {
            let length = u64::try_from(pods).ok();
            let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} pods, {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(config.to_owned());
            bar
        }))
    }

    /// So far it is.
    pub(super) fn show(&self, progress: Progress) {
        if let Some(bar) = &self.0 {
            bar.set_position(u64::try_from(progress.arrived).unwrap_or_default());
            bar.set_message(format!("{} waiting", progress.waiting));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
