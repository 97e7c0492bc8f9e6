//! What a case has before the agent starts: folders, flags, objects.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{api_server::ApiServer, case::Case, names::text};

/// A folder in memory where there is one.
pub fn scratch_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn fill_work_folder(case: &Case, root: &Path, work: &Path) {
    let usual = || vec!["checkpoints".to_owned(), "audit".to_owned()];
    fs::create_dir_all(work).unwrap();
    for folder in case.work_dirs.clone().unwrap_or_else(usual) {
        fs::create_dir_all(work.join(folder)).unwrap();
    }
    let write = |path: PathBuf, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (path, text) in &case.work_files {
        write(work.join(path), text);
    }
    // Plain files in the place of sockets: whoever looks whether they are there finds them.
    if case.cri {
        write(work.join("cri.sock"), "");
    }
    if !case.nri.is_empty() {
        write(root.join("var-run/nri/nri.sock"), "");
    }
}

/// The standard flags, with those of the case.
pub(crate) fn flags(case: &Case, root: &Path, work: &Path) -> BTreeMap<String, String> {
    let (root, work) = (root.display(), work.display());
    let mut flags: BTreeMap<String, String> = [
        ("addr", "127.0.0.1:9316".to_owned()),
        ("cgroup-root-dir", format!("{root}/cgroup/")),
        ("sys-root-dir", format!("{root}/sys/")),
        ("sys-fs-root-dir", format!("{root}/sysfs/")),
        ("proc-root-dir", format!("{root}/proc/")),
        ("var-run-root-dir", format!("{root}/var-run/")),
        ("run-root-dir", format!("{root}/run/")),
        ("var-lib-kubelet-dir", format!("{root}/kubelet/")),
        ("runtime-hooks-config-path", format!("{root}/hookserver")),
        ("runtime-hooks-addr", format!("{work}/koordlet.sock")),
        ("tsdb-path", format!("{work}/metric-data/")),
        ("audit-log-dir", format!("{work}/audit")),
        ("prediction-checkpoint-filepath", format!("{work}/checkpoints")),
        ("xpu-device-infos-dir", format!("{root}/xpu/")),
        ("pod-resources-proxy-path", format!("{work}/pod-resources")),
        ("hami-core-library-directory-path", format!("{root}/vgpu/libvgpu.so")),
        ("containerd-endpoint", format!("{work}/no-containerd.sock")),
        ("docker-endpoint", format!("{work}/no-docker.sock")),
        ("pouch-endpoint", format!("{work}/no-pouch.sock")),
        ("kubeconfig", format!("{work}/kubeconfig")),
        ("kubelet-sync-interval", "1s".to_owned()),
        ("node-topology-sync-interval", "1s".to_owned()),
        ("runtime-hooks-reconcile-interval", "1s".to_owned()),
        ("enable-nri-runtime-hook", "false".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if case.kubelet.get("tls").is_none_or(|tls| tls == false) {
        flags.insert("kubelet-insecure-tls".to_owned(), "true".to_owned());
        flags.insert("kubelet-read-only-port".to_owned(), "10255".to_owned());
    }
    if !case.feature_gates.is_empty() {
        flags.insert("feature-gates".to_owned(), case.feature_gates.clone());
    }
    for (name, value) in &case.flags {
        match value {
            None => _ = flags.remove(name),
            Some(value) => {
                let value = value.replace("{root}", &root.to_string()).replace("{work}", &work.to_string());
                flags.insert(name.clone(), value);
            }
        }
    }
    flags
}

pub(crate) fn server(case: &Case) -> ApiServer {
    let mut server = ApiServer::default();
    if case.api_pods {
        for pod in case.all_pods().filter(|pod| !case.no_api_pod.iter().any(|name| name == text(pod, "/metadata/name")))
        {
            server.apply(pod);
        }
    }
    for object in case.node.iter().chain(&case.objects) {
        server.apply(&with_port(object));
    }
    server
}

/// An object with the kubelet's port.
pub(crate) fn with_port(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(port) =
        object.pointer_mut("/status/daemonEndpoints/kubeletEndpoint/Port").filter(|port| port.is_string())
    {
        *port = json!(10255);
    }
    object
}
