//! Serves the kubelet's pod resources with the devices that the scheduler gave pods.

use std::{sync::Arc, time::Duration};

use koord_koordlet_devices::allocated_devices;
use koord_koordlet_framework::Pod;
use koord_koordlet_protocols::{
    listen::ListenAddress,
    podresources::{ContainerDevices, PodName, PodResourcesOptions, PodResourcesProxy},
};
use koord_runtime::clock::SharedClock;
use tokio_util::sync::CancellationToken;

use super::{Shared, hook_server::RETRY, report::Report};

pub(super) const FEATURE: &str = "PodResourcesProxy";
const SOCKET: &str = "kubelet.sock";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const MESSAGE_BYTES_MAX: usize = 16 << 20;
const CALLS_MAX: u32 = 32;

/// Serves until the end; a socket that cannot be had is tried again.
pub(super) async fn run(shared: Arc<Shared>, end: CancellationToken) {
    let mut report = Report::of(FEATURE, &shared.inputs);
    let Some(resources) = &shared.settings.pod_resources else { return report.off() };
    let address = ListenAddress::Unix(resources.folder.join(SOCKET));
    while !end.is_cancelled() {
        let options = PodResourcesOptions {
            kubelet: resources.kubelet.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            message_bytes_max: MESSAGE_BYTES_MAX,
            calls_max: CALLS_MAX,
        };
        // The folder above is mounted; where it is not, binding says so.
        _ = std::fs::create_dir(&resources.folder);
        match PodResourcesProxy::bind(&address, options).await {
            Ok(proxy) => {
                let of_pods = Arc::clone(&shared);
                let devices = move |name: &PodName| devices(&(of_pods.pods)(), name);
                let served = tokio::select! {
                    served = proxy.serve(devices, end.clone().cancelled_owned()) => served,
                    () = watch_kubelet(&resources.kubelet, &shared.clock, &mut report) => Ok(()),
                };
                if let Err(error) = served {
                    report.degraded(error, "none: it is served again");
                }
            }
            Err(error) => report.degraded(error, "mount the folder of --pod-resources-proxy-path"),
        }
        tokio::select! {
            () = end.cancelled() => {}
            () = shared.clock.sleep(RETRY) => {}
        }
    }
}

/// Reports whether the kubelet's socket is there. Does not end.
async fn watch_kubelet(kubelet: &std::path::Path, clock: &SharedClock, report: &mut Report) {
    loop {
        if kubelet.exists() {
            report.active();
        } else {
            let reason = format!("the kubelet's socket {} does not exist", kubelet.display());
            report.degraded(reason, "mount the kubelet's folder pod-resources");
        }
        clock.sleep(RETRY).await;
    }
}

/// The devices that are added to a pod; none of one that the agent does not know, or whose annotation cannot be read.
fn devices(pods: &[Arc<Pod>], name: &PodName) -> Vec<ContainerDevices> {
    let is_named = |pod: &&Arc<Pod>| *pod.name == *name.name && *pod.namespace == *name.namespace;
    let Some(pod) = pods.iter().find(is_named) else { return Vec::new() };
    match allocated_devices(&pod.annotations) {
        Ok(devices) => devices
            .into_iter()
            .map(|devices| ContainerDevices { resource_name: devices.resource.to_owned(), device_ids: devices.ids })
            .collect(),
        Err(error) => {
            tracing::debug!(%error, namespace = name.namespace, name = name.name, "devices of a pod cannot be read");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::testing, *};

    #[tokio::test(start_paused = true)]
    async fn a_folder_and_a_kubelet_that_come_later_are_found() {
        let root = tempfile::tempdir().unwrap();
        let (shared, mut taken) = testing::shared(root.path());
        let end = CancellationToken::new();
        let task = tokio::spawn(run(shared, end.clone()));
        let missing = testing::report(&mut taken, FEATURE).await;
        assert!(missing.contains("its folder") && missing.ends_with("does not exist"), "{missing}");
        fs::create_dir(root.path().join("koordlet")).unwrap();
        let missing = testing::report(&mut taken, FEATURE).await;
        assert!(missing.starts_with("the kubelet's socket "), "{missing}");
        fs::write(root.path().join("kubelet.sock"), "").unwrap();
        assert_eq!(testing::report(&mut taken, FEATURE).await, "active");
        assert!(root.path().join("koordlet/pod-resources/kubelet.sock").exists());
        end.cancel();
        task.await.unwrap();
    }
}
