//! The port without TLS, where it shows something else than the manager would.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use axum::Router;
use koord_listen::{Limits, Server, bind};
use koord_runtime::manager::{ListenAddress, Manager};

/// Takes the port, and serves it while the manager runs.
pub(crate) fn run_in(at: ListenAddress, router: Router, manager: &mut Manager) -> Result<()> {
    let ListenAddress { address, set_by } = at;
    let listener = bind(address).map_err(|error| anyhow!("{error}; choose another address with {set_by}"))?;
    let (server, listener) = (Server::new(Limits::small()), Arc::new(listener));
    manager.on_every_replica("metrics server", move |_, stop| {
        let (server, listener, router) = (server.clone(), Arc::clone(&listener), router.clone());
        async move { server.serve(listener, None, router, stop.cancelled_owned()).await }
    });
    Ok(())
}
