//! How far a benchmark is: a bar on a terminal, nothing elsewhere.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error; gone when it is dropped.
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    /// The bar of something that is done so many times.
    pub(crate) fn shown(what: &str, of: usize) -> Self {
        Self(std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(u64::try_from(of).ok(), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {elapsed}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(what.to_owned());
            bar
        }))
    }

    /// So many are done.
    pub(crate) fn show(&self, done: usize) {
        if let Some(bar) = &self.0 {
            bar.set_position(u64::try_from(done).unwrap_or_default());
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
