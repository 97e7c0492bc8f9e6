//! What is being done, while it is being done: a line that changes on a terminal, a line per step elsewhere.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows the steps of a start on standard error.
pub struct Progress {
    /// None where the output is no terminal.
    bar: Option<ProgressBar>,
    step: &'static str,
    plain: bool,
}

impl Progress {
    /// On a terminal as a line that changes, else as plain lines.
    pub fn shown() -> Self {
        let plain = !std::io::stderr().is_terminal();
        let bar = (!plain).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Self { bar, step: "", plain }
    }

    /// Not at all: for tests.
    pub fn hidden() -> Self {
        Self { bar: None, step: "", plain: false }
    }

    /// A step begins; the one before is done.
    pub fn step(&mut self, step: &'static str) {
        self.finish();
        self.step = step;
        if let Some(bar) = &self.bar {
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar.set_message(step);
        }
    }

    /// So many of so many are done.
    pub fn count(&self, done: usize, of: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {done}/{of}", self.step));
        }
    }

    /// The last step is done.
    pub fn finish(&mut self) {
        let step = std::mem::take(&mut self.step);
        if step.is_empty() {
            return;
        }
        match &self.bar {
            Some(bar) => bar.println(format!("✓ {step}")),
            None if self.plain => drop(writeln!(std::io::stderr(), "✓ {step}")),
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
