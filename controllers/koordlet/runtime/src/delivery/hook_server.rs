//! Serves hooks to the runtime proxy, and names the server in the proxy's configuration.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use koord_koordlet_hooks::{PROXY_CONFIGURATION_FILE, proxy_configuration};
use koord_koordlet_protocols::{
    hookserver::{HookOptions, HookServer},
    listen::ListenError,
};
use tokio_util::sync::CancellationToken;

use super::{Shared, call::failure_policy, report::Report};

pub(super) const FEATURE: &str = "hook server";
pub(super) const CONFIGURATION_FEATURE: &str = "runtime proxy configuration";
/// How soon what is not there is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(10);
/// How soon pods are looked for again.
const PODS_RETRY: Duration = Duration::from_secs(1);
/// The proxy waits no longer for an answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
const CALLS_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Serves until the end; an address that cannot be had is tried again.
pub(super) async fn run(shared: Arc<Shared>, end: CancellationToken) {
    let mut report = Report::of(FEATURE, &shared.inputs);
    let mut configuration = Report::of(CONFIGURATION_FEATURE, &shared.inputs);
    if shared.only_observes {
        report.off();
        return configuration.off();
    }
    let options = HookOptions {
        call_timeout: CALL_TIMEOUT,
        calls_max: CALLS_MAX,
        request_bytes_max: REQUEST_BYTES_MAX,
        failure_policy: failure_policy(shared.hooks.failure_policy),
    };
    while !end.is_cancelled() {
        match HookServer::bind(&shared.settings.hook_server, options).await {
            Ok(server) => {
                report.active();
                let served = server.serve(Arc::clone(&shared.calls) as Arc<_>, end.clone().cancelled_owned());
                let served = tokio::select! {
                    served = served => served,
                    () = configure(&shared, &mut configuration) => Ok(()),
                };
                if let Err(error) = served {
                    report.degraded(error, "none: it is served again");
                }
            }
            Err(error) => {
                let remedy = remedy(&error);
                report.degraded(error, remedy);
                configuration.degraded("the hook server does not listen yet", "see the hook server");
            }
        }
        tokio::select! {
            () = end.cancelled() => {}
            () = shared.clock.sleep(RETRY) => {}
        }
    }
}

fn remedy(error: &ListenError) -> &'static str {
    match error {
        ListenError::FolderMissing { .. } => {
            "mount the folder, or set --runtime-hooks-addr; nothing is missing where no koord-runtime-proxy runs"
        }
        ListenError::NotASocket(_) | ListenError::Remove { .. } => "remove the file",
        ListenError::Socket { .. } | ListenError::Port { .. } => "choose another address with --runtime-hooks-addr",
    }
}

/// Writes the configuration of the proxy as soon as the pods of the node are known, and again when it was removed or changed. Does not end.
async fn configure(shared: &Shared, report: &mut Report) {
    let folder = &shared.settings.proxy_configuration;
    let text = proxy_configuration(&shared.hooks, &shared.settings.host_endpoint);
    while (shared.pods)().is_empty() {
        report.degraded("the pods of the node are not known yet", "see the kubelet");
        shared.clock.sleep(PODS_RETRY).await;
    }
    loop {
        match write_configuration(folder, &text) {
            Ok(()) => report.active(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let reason = format!("the folder {} does not exist", folder.display());
                report
                    .degraded(reason, "none, where no koord-runtime-proxy runs; else set --runtime-hooks-config-path");
            }
            Err(error) => {
                let reason = format!("{}/{PROXY_CONFIGURATION_FILE}: {error}", folder.display());
                report.degraded(reason, "let the agent write there");
            }
        }
        shared.clock.sleep(RETRY).await;
    }
}

/// Writes the configuration unless it is there. The proxy never sees a part of it.
fn write_configuration(folder: &Path, text: &str) -> io::Result<()> {
    let path = folder.join(PROXY_CONFIGURATION_FILE);
    if fs::read_to_string(&path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    // The proxy reads every file of the folder whose name ends in `json`.
    let written = folder.join(format!(".{PROXY_CONFIGURATION_FILE}.new"));
    fs::write(&written, text)?;
    fs::rename(&written, &path)
}

#[cfg(test)]
mod tests {
    use super::{super::testing, *};

    #[tokio::test(start_paused = true)]
    async fn folders_that_come_later_are_found() {
        let root = tempfile::tempdir().unwrap();
        let (shared, mut taken) = testing::shared(root.path());
        let end = CancellationToken::new();
        let task = tokio::spawn(run(shared, end.clone()));
        let missing = testing::report(&mut taken, FEATURE).await;
        assert!(missing.contains("koordlet.sock cannot be opened: its folder "), "{missing}");
        fs::create_dir(root.path().join("koordlet")).unwrap();
        assert_eq!(testing::report(&mut taken, FEATURE).await, "active");
        let missing = testing::report(&mut taken, CONFIGURATION_FEATURE).await;
        assert!(missing.ends_with("hookserver.d does not exist"), "{missing}");
        fs::create_dir(root.path().join("hookserver.d")).unwrap();
        assert_eq!(testing::report(&mut taken, CONFIGURATION_FEATURE).await, "active");
        let text = fs::read_to_string(root.path().join("hookserver.d/koordlet.json")).unwrap();
        assert!(text.contains("\"remote-endpoint\": \"/run/koordlet.sock\""), "{text}");
        end.cancel();
        task.await.unwrap();
    }

    #[test]
    fn the_configuration_is_written_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write_configuration(&folder.path().join("none"), "{}").unwrap_err().kind(), io::ErrorKind::NotFound);
        for text in ["{}", "{}", "{\"a\": 1}"] {
            write_configuration(folder.path(), text).unwrap();
            assert_eq!(fs::read_to_string(folder.path().join("koordlet.json")).unwrap(), text);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
