//! koordlet in the process of `up`, on the files of a machine that is played: [`hollow::machine`].

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use hollow::{
    HollowNode,
    machine::{Machine, MachinePod, pod_list},
    orders::Orders,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use koord_koordlet_runtime::KubeletClient;
use koord_koordlet_system::Version;
use koord_listen::{Limits, Server};
use koord_program::Dependencies;
use koord_runtime::{clock::SharedClock, random::Random};
use koordlet::{Options, run_with};
use kube::{
    Api, Client, Config,
    api::{ListParams, Patch, PatchParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// How often the machine goes on, in the cluster's time.
const TICK: Duration = Duration::from_millis(200);
/// The address of the node at which the kubelet of the machine answers.
const ADDRESS_TYPE: &str = "InternalDNS";

/// The gates that the chart turns on, as far as a machine without devices has a use for them.
const GATES: &str = "BECPUEvict=true,BEMemoryEvict=true,CgroupReconcile=true";

/// What is wrong with the folder of a machine; asked before anything starts.
pub fn check(folder: &Path) -> Result<()> {
    match folder.read_dir().map(|mut files| files.next().is_some()) {
        Ok(true) => {
            bail!("--node-agent {}: the folder is not empty; name another one, or remove it", folder.display())
        }
        Ok(false) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("--node-agent {}", folder.display())),
    }
}

/// Makes the machine of a node, and runs its kernel, its kubelet's port and koordlet, until one of them ends by itself. Gives the address at which koordlet answers, too.
pub async fn start(
    node: &HollowNode,
    folder: &Path,
    client: &Client,
    clock: &SharedClock,
    seed: u64,
) -> Result<(JoinHandle<Result<()>>, SocketAddr)> {
    let folder = std::path::absolute(folder)?;
    let machine = Machine::create(node, &folder).with_context(|| format!("--node-agent {}", folder.display()))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port of 127.0.0.1 is free")?;
    let port = listener.local_addr()?.port();
    let address = free_address()?;
    let pods = Arc::new(Mutex::new(pod_list(&[])));
    let router = kubelet(Arc::clone(&pods));
    say_address(client, &node.name).await?;
    let world = World { machine, node: node.clone(), client: client.clone(), clock: Arc::clone(clock), pods };
    let agent = agent(&folder, &node.name, (port, address), client, clock, seed)?;
    let running = tokio::spawn(async move {
        let server = Server::new(Limits::small());
        tokio::select! {
            ended = agent => ended,
            ended = world.run() => ended.with_context(|| format!("--node-agent {}", folder.display())),
            () = server.serve(listener, None, router, std::future::pending()) => Ok(()),
        }
    });
    Ok((running, address))
}

/// An address of this machine that no program uses.
fn free_address() -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port of 127.0.0.1 is free")?;
    Ok(listener.local_addr()?)
}

/// The node says where its kubelet answers, beside the address that it has as a hollow node.
async fn say_address(client: &Client, name: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let known = nodes.get(name).await?.status.and_then(|status| status.addresses).unwrap_or_default();
    let mut addresses: Vec<Value> = known
        .iter()
        .filter(|address| address.type_ != ADDRESS_TYPE)
        .map(|address| json!({"type": address.type_, "address": address.address}))
        .collect();
    addresses.push(json!({"type": ADDRESS_TYPE, "address": Ipv4Addr::LOCALHOST.to_string()}));
    let patch = json!({"status": {"addresses": addresses}});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// What the agent asks its kubelet for.
fn kubelet(pods: Arc<Mutex<Value>>) -> Router {
    let as_json = |value: &Value| ([(CONTENT_TYPE, "application/json")], value.to_string());
    let configuration = json!({"kubeletconfig": {
        "cpuManagerPolicy": "none", "topologyManagerPolicy": "none", "topologyManagerScope": "container", "cgroupDriver": "systemd",
    }});
    Router::new()
        .route("/pods/", get(move || std::future::ready(as_json(&pods.lock()))))
        .route("/configz", get(move || std::future::ready(as_json(&configuration))))
}

fn agent(
    folder: &Path,
    node: &str,
    (kubelet_port, address): (u16, SocketAddr),
    client: &Client,
    clock: &SharedClock,
    seed: u64,
) -> Result<impl Future<Output = Result<()>> + use<>> {
    let at = |name: &str| folder.join(name).display().to_string();
    let folders = [
        ("cgroup-root-dir", "cgroup/"),
        ("proc-root-dir", "proc/"),
        ("sys-root-dir", "sys/"),
        ("sys-fs-root-dir", "sysfs/"),
        ("var-run-root-dir", "var-run/"),
        ("run-root-dir", "run/"),
        ("var-lib-kubelet-dir", "kubelet/"),
        ("runtime-hooks-addr", "hookserver/koordlet.sock"),
        ("runtime-hooks-config-path", "hookserver/"),
        ("prediction-checkpoint-filepath", "prediction-checkpoints/"),
        ("xpu-device-infos-dir", "xpu/"),
    ];
    let mut arguments: Vec<String> = folders.into_iter().map(|(name, path)| format!("--{name}={}", at(path))).collect();
    arguments.extend([
        format!("--addr={address}"),
        "--kubelet-insecure-tls=true".to_owned(),
        format!("--kubelet-read-only-port={kubelet_port}"),
        format!("--kubelet-preferred-address-type={ADDRESS_TYPE}"),
        "--kubelet-sync-interval=2s".to_owned(),
        // The machine has no container runtime that could stop a container.
        "--only-evict-by-api=true".to_owned(),
        "--enable-nri-runtime-hook=false".to_owned(),
        format!("--feature-gates={GATES}"),
    ]);
    let environment = BTreeMap::from([("NODE_NAME".to_owned(), node.to_owned())]);
    let options = Options::from_arguments(["koordlet".to_owned()].into_iter().chain(arguments))?;
    let checked = options.check_in(&environment)?;
    let mut settings = checked.settings();
    settings.cgroup_version = Some(Version::V2);
    let program = checked.program_settings();
    let kubelet = KubeletClient::new(settings.kubelet.clone(), Config::new(http::Uri::from_static("http://127.0.0.1")));
    let (runtimes, exposition) = (checked.runtimes(), checked.exposition);
    let dependencies = Dependencies {
        client: client.clone(),
        api_host: "in-process".to_owned(),
        clock: Arc::clone(clock),
        random: Random::seeded(seed),
    };
    Ok(run_with(settings, program, exposition, kubelet, runtimes, dependencies, CancellationToken::new()))
}

/// The machine, and the API server that says what runs on it.
struct World {
    machine: Machine,
    node: HollowNode,
    client: Client,
    clock: SharedClock,
    pods: Arc<Mutex<Value>>,
}

impl World {
    async fn run(mut self) -> Result<()> {
        let mut last = self.clock.moment();
        loop {
            self.clock.sleep(TICK).await;
            let now = self.clock.moment();
            self.go_on(now.since(last)).await?;
            last = now;
        }
    }

    async fn go_on(&mut self, passed: Duration) -> Result<()> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let bound = ListParams::default().fields(&format!("spec.nodeName={}", self.node.name));
        let mut pods = pods.list(&bound).await?.items;
        pods.retain(|pod| MachinePod::of(pod).is_some());
        let running = pods.iter().filter_map(MachinePod::of).collect();
        self.machine.set_pods(running)?;
        *self.pods.lock() = pod_list(&pods);
        let share = match orders(&self.client, &self.node.name).await.load {
            Some(share) => share,
            None => self.node.usage.measured(self.node.seed, self.clock.now()),
        };
        Ok(self.machine.advance(passed, share)?)
    }
}

/// What the annotations of a NodeMetric order; nothing while there is none.
async fn orders(client: &Client, node: &str) -> Orders {
    let path = format!("/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{node}");
    let Ok(request) = http::Request::get(path).body(Vec::new()) else { return Orders::default() };
    let answer: kube::Result<Value> = client.request(request).await;
    answer.map_or_else(|_| Orders::default(), |metric| Orders::read(&metric))
}

/// Where the best-effort pods of a machine have their limits.
pub fn best_effort_folder(folder: &Path) -> PathBuf {
    folder.join("cgroup/kubepods.slice/kubepods-besteffort.slice")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_files_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("koord-node-agent-{}", std::process::id()));
        check(&folder).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        check(&folder).unwrap();
        std::fs::write(folder.join("mine"), "").unwrap();
        let error = check(&folder).unwrap_err().to_string();
        assert!(error.ends_with("the folder is not empty; name another one, or remove it"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
