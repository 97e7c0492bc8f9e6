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
                let agent = Arc::clone(&shared.agent);
                let devices = move |name: &PodName| {
                    let pods = Arc::clone(agent.lock().pods());
                    devices(&pods, name)
                };
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
