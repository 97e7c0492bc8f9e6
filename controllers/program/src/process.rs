//! From `main` to the work of a program and back to an exit code.

use std::process::ExitCode;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use crate::{in_one_line, termination::leave_message};

/// Runs a program: reads its command line (the program's name first), then does its work on a runtime of all cores.
///
/// SIGTERM and ctrl-C cancel the token. The limit on open files is raised before the work begins. The exit code is 0 when
/// the work ends well, 2 for a wrong command line, and 1 for any other error. An error is printed on the standard error,
/// the work's in one line, and left as the container's termination message.
///
/// ```no_run
/// use clap::Parser as _;
///
/// #[derive(clap::Parser)]
/// struct Arguments {}
///
/// fn main() -> std::process::ExitCode {
///     koord_program::run("waiter", Arguments::try_parse_from, async |_arguments: Arguments, stop| {
///         stop.cancelled().await;
///         Ok(())
///     })
/// }
/// ```
pub fn run<C, F>(
    name: &str,
    read: impl FnOnce(Vec<String>) -> Result<C, clap::Error>,
    work: impl FnOnce(C, CancellationToken) -> F,
) -> ExitCode
where
    F: Future<Output = anyhow::Result<()>>,
{
    run_to_code(name, read, async |command_line, stop| work(command_line, stop).await.map(|()| ExitCode::SUCCESS))
}

/// As [`run`], for work that ends well with several exit codes.
pub(crate) fn run_to_code<C, F>(
    name: &str,
    read: impl FnOnce(Vec<String>) -> Result<C, clap::Error>,
    work: impl FnOnce(C, CancellationToken) -> F,
) -> ExitCode
where
    F: Future<Output = anyhow::Result<ExitCode>>,
{
    let command_line = match arguments().and_then(read) {
        Ok(command_line) => command_line,
        Err(error) => return refuse(&error),
    };
    koord_listen::raise_open_files();
    match until_done(|stop| work(command_line, stop)) {
        Ok(code) => code,
        Err(error) => {
            let message = format!("{name}: {}", in_one_line(error.as_ref()));
            eprintln!("{message}");
            leave_message(&message);
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Vec<String>, clap::Error> {
    let argument = |argument: std::ffi::OsString| {
        argument.into_string().map_err(|argument| {
            let message = format!("the argument {} is not UTF-8\n", argument.display());
            clap::Error::raw(clap::error::ErrorKind::InvalidUtf8, message)
        })
    };
    std::env::args_os().map(argument).collect()
}

/// Reports a wrong command line; `--help` and `--version` end here, too, and with success.
fn refuse(error: &clap::Error) -> ExitCode {
    // Nobody reads the streams any more where this fails.
    let _ = error.print();
    if error.use_stderr() {
        leave_message(&error.render().to_string());
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn until_done<T, F>(work: impl FnOnce(CancellationToken) -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let mut signals = TerminationSignals::listen()?;
        let stopped = stop.clone();
        tokio::spawn(async move {
            signals.received().await;
            stopped.cancel();
        });
        work(stop).await
    })
}

/// SIGTERM, which the kubelet sends, and ctrl-C.
pub struct TerminationSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

// === impl TerminationSignals ===

impl TerminationSignals {
    /// Handles the signals from now on. Must be called within a tokio runtime.
    pub fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .context("cannot handle signals")?,
        })
    }

    /// Waits for one of them.
    pub async fn received(&mut self) {
        #[cfg(unix)]
        tokio::select! { biased; _ = self.terminate.recv() => {}, _ = tokio::signal::ctrl_c() => {} }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}
