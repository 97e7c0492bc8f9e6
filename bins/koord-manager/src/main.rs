//! Controllers and admission webhooks of Koordinator.

use std::process::ExitCode;

use koord_manager::{Options, run};
use koord_runtime::{error::in_one_line, logs};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let options = match Options::from_arguments(std::env::args()) {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    logs::init(options.logs.verbosity, logs::Format::Text);
    koord_listen::raise_open_files();
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("koord-manager: {}", in_one_line(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn serve(options: Options) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        tokio::select! { biased; _ = terminate.recv() => {}, _ = tokio::signal::ctrl_c() => {} }
        on_signal.cancel();
    });
    run(options, stop).await
}
