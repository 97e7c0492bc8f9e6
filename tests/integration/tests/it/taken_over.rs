//! A cluster in which the scheduler of an original release has worked changes hands: ours knows from the objects alone what was
//! given out, writes nothing, and gives out what is left.
//!
//! `tests/data/left-by-original.json` has the objects of some recordings as the original left them; `tests/parity/take-over-original`
//! makes that file, and plays every recording.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use envtest::cluster::{Cluster, Options};
use http::{Method, Request};
use integration::installed::repository;
use jiff::Timestamp;
use koord_program::Dependencies;
use koord_runtime::{clock::SystemClock, manager::ListenAddress, random::Random};
use koord_scheduler::{Settings, run_with};
use koord_scheduler_assembly::Configuration;
use kube::Client;
use programs::{answer, free};
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;

/// How long something may take that happens by itself.
const EVENTUALLY_MAX: Duration = Duration::from_secs(30);
/// How long nothing may be written: statuses are written about once a second.
const SILENCE: Duration = Duration::from_secs(2);
const PODS: &str = "/api/v1/namespaces/default/pods";
/// The quotas that every cluster has. A recording has them beside others alone, so that otherwise they are made.
const BASE_QUOTAS: &str = "koordinator-system/koordinator-";

/// The kinds in the file with their API and plural.
const KINDS: [(&str, &str, &str); 8] = [
    ("PriorityClass", "/apis/scheduling.k8s.io/v1", "priorityclasses"),
    ("Node", "/api/v1", "nodes"),
    ("Device", "/apis/scheduling.koordinator.sh/v1alpha1", "devices"),
    ("NodeResourceTopology", "/apis/topology.node.k8s.io/v1alpha1", "noderesourcetopologies"),
    ("ElasticQuota", "/apis/scheduling.sigs.k8s.io/v1alpha1", "elasticquotas"),
    ("PodGroup", "/apis/scheduling.sigs.k8s.io/v1alpha1", "podgroups"),
    ("Reservation", "/apis/scheduling.koordinator.sh/v1alpha1", "reservations"),
    ("Pod", "/api/v1", "pods"),
];

/// A cluster as the original left it.
struct Scene {
    client: Client,
    /// Where our scheduler answers.
    address: SocketAddr,
    _stop: watch::Sender<bool>,
}

impl Scene {
    /// The cluster of a recording.
    async fn of(recording: &str) -> Self {
        let cluster = Cluster::bind(Options::default()).await.unwrap();
        let client = Client::new(cluster.server.router(), "default");
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(cluster.run(stopped));
        let scene = Self { client, address: free(), _stop: stop };
        for entry in fs::read_dir(repository("config/crd/bases")).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            let definition: Value = serde_saphyr::from_str(&text).unwrap();
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            scene.send(Method::POST, path, &definition).await;
        }
        let namespace = json!({"metadata": {"name": "koordinator-system"}});
        scene.send(Method::POST, "/api/v1/namespaces", &namespace).await;
        scene.bring(recording).await;
        scene
    }

    /// Creates the objects of a recording. `$uid(KIND/NAME)` in them is the uid of an object, `$now` the time.
    async fn bring(&self, recording: &str) {
        let file = fs::read_to_string(repository("tests/data/left-by-original.json")).unwrap();
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let clusters: Vec<Value> = serde_json::from_str(&file.replace("$now", &now)).unwrap();
        let cluster = clusters.iter().find(|cluster| cluster["name"] == recording).unwrap();
        let objects = cluster["objects"].as_array().unwrap();
        let mut uids = BTreeMap::new();
        for object in objects {
            let made = self.send(Method::POST, &collection(object), &with_uids(object, &uids)).await;
            let name = format!("$uid({}/{})", text(&object["kind"]), key(object));
            uids.insert(name, text(&made["metadata"]["uid"]).to_owned());
            if object["kind"] == "Node" {
                // Its kubelet is ready.
                self.send(Method::PATCH, &path(object), &json!({"spec": {"taints": null}})).await;
            }
        }
        for object in objects.iter().filter(|object| object["kind"] != "Node" && object["status"].is_object()) {
            // The other two kinds with a status have no subresource for it.
            let subresource = if ["Pod", "Reservation"].contains(&text(&object["kind"])) { "/status" } else { "" };
            let status = json!({"status": with_uids(object, &uids)["status"]});
            self.send(Method::PATCH, &format!("{}{subresource}", path(object)), &status).await;
        }
        for leaving in cluster["leaving"].as_array().unwrap() {
            let (_, name) = text(leaving).split_once('/').unwrap();
            self.send(Method::DELETE, &format!("{PODS}/{name}"), &json!({"gracePeriodSeconds": 600})).await;
        }
    }

    /// Our scheduler starts there and writes to nothing that is there; then the scene is played.
    async fn taken_over(&self, scene: impl AsyncFnOnce(&Self)) {
        let before = self.objects().await;
        let stop = CancellationToken::new();
        let dependencies = Dependencies {
            client: self.client.clone(),
            api_host: "in-process".to_owned(),
            clock: SystemClock::shared(),
            random: Random::seeded(0),
        };
        let listen = Some(ListenAddress { address: self.address, set_by: "this test" });
        let settings = Settings { listen, ..Settings::within(Configuration::shipped_for_all_pods().unwrap()) };
        let played = async {
            self.comes_true("it is ready", async || answer(self.address, "/readyz").await.is_some()).await;
            sleep(SILENCE).await;
            let after = self.objects().await;
            let changed: Vec<_> = before.iter().filter(|(name, object)| after.get(*name) != Some(*object)).collect();
            assert!(changed.is_empty(), "written although it was right: {changed:#?}");
            let made: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).collect();
            assert!(made.iter().all(|name| name.contains(BASE_QUOTAS)), "{made:?}");
            scene(self).await;
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(run_with(settings, dependencies, stop.clone()), played);
        ended.unwrap();
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        let answered = self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await;
        answered.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, &Value::Null).await
    }

    /// Everything that is there, with its revisions.
    async fn objects(&self) -> BTreeMap<String, Value> {
        let mut objects = BTreeMap::new();
        for (kind, api, plural) in KINDS {
            let list = self.get(&format!("{api}/{plural}")).await;
            let items = list["items"].as_array().unwrap();
            objects.extend(items.iter().map(|object| (format!("{kind} {}", key(object)), object.clone())));
        }
        objects
    }

    /// What our scheduler says below `/apis/v1/`.
    async fn says(&self, path: &str) -> Value {
        let answered = answer(self.address, &format!("/apis/v1/{path}")).await.unwrap();
        let (_, body) = answered.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// The members of a gang that are bound.
    async fn bound_of(&self, gang: &str) -> Value {
        self.says("plugins/Coscheduling/gangs").await[gang]["boundChildren"].clone()
    }

    /// What becomes of a new pod: its annotations once it has a node, or why it has none.
    async fn places(&self, pod: &Value) -> Result<Value, String> {
        self.send(Method::POST, PODS, pod).await;
        let begin = Instant::now();
        loop {
            let now = self.get(&path(pod)).await;
            if now["spec"]["nodeName"].is_string() {
                return Ok(now["metadata"]["annotations"].clone());
            }
            if let Some(message) = now["status"]["conditions"][0]["message"].as_str() {
                return Err(message.to_owned());
            }
            assert!(begin.elapsed() < EVENTUALLY_MAX, "nothing becomes of {pod}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A new pod gets no node, for this reason.
    async fn has_nothing_for(&self, pod: &Value, reason: &str) {
        let message = self.places(pod).await.unwrap_err();
        assert!(message.contains(reason), "{message}");
    }

    async fn comes_true(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let begin = Instant::now();
        while !holds().await {
            assert!(begin.elapsed() < EVENTUALLY_MAX, "it does not come true that {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The name of an object, after its namespace where it has one.
fn key(object: &Value) -> String {
    let (namespace, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

fn collection(object: &Value) -> String {
    let (_, api, plural) = KINDS.into_iter().find(|(kind, ..)| object["kind"] == *kind).unwrap();
    match text(&object["metadata"]["namespace"]) {
        "" => format!("{api}/{plural}"),
        namespace => format!("{api}/namespaces/{namespace}/{plural}"),
    }
}

fn path(object: &Value) -> String {
    format!("{}/{}", collection(object), text(&object["metadata"]["name"]))
}

fn with_uids(object: &Value, uids: &BTreeMap<String, String>) -> Value {
    let text = uids.iter().fold(object.to_string(), |text, (name, uid)| text.replace(name, uid));
    serde_json::from_str(&text).unwrap()
}

/// The JSON in an annotation of the scheduler.
fn embedded(annotations: &Value, name: &str) -> Value {
    serde_json::from_str(text(&annotations[format!("scheduling.koordinator.sh/{name}")])).unwrap()
}

fn pod(name: &str, requests: &Value, labels: &Value, annotations: &Value) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels, "annotations": annotations},
        "spec": {"schedulerName": "koord-scheduler", "containers": [container]}})
}

/// A pod that requests CPUs, and a little memory.
fn with_cpus(name: &str, cpu: &str, labels: &Value) -> Value {
    pod(name, &json!({"cpu": cpu, "memory": "1Gi"}), labels, &Value::Null)
}

/// A pod that requests percents of a GPU.
fn with_gpu(name: &str, percent: &str) -> Value {
    pod(name, &json!({"cpu": "1", "koordinator.sh/gpu": percent}), &Value::Null, &Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cpus_of_a_gang_stay_its_own_and_the_others_are_given_out() {
    let played = async |scene: &Scene| {
        let of_node = scene.says("plugins/NodeNUMAResource/nodes/n1").await;
        let given = of_node["allocatedPods"].as_array().unwrap().iter();
        let given: BTreeMap<&str, &str> = given.map(|pod| (text(&pod["name"]), text(&pod["cpuset"]))).collect();
        assert_eq!(given, BTreeMap::from([("p1", "8-11"), ("p2", "0-3")]));
        assert_eq!(of_node["availableCPUs"], "4-7,12-15");
        assert_eq!(scene.bound_of("default/g").await, json!({"default/p1": {}, "default/p2": {}}));

        let own = |name: &str, cpu: &str| {
            let mut pod = with_cpus(name, cpu, &json!({"koordinator.sh/qosClass": "LSR"}));
            pod["spec"]["priorityClassName"] = json!("prod");
            pod
        };
        let rest = scene.places(&own("rest", "8")).await.unwrap();
        assert_eq!(embedded(&rest, "resource-status")["cpuset"], "4-7,12-15");
        scene.has_nothing_for(&own("more", "1"), "Insufficient cpu").await;
    };
    Scene::of("mixed/gang-cpusets").await.taken_over(played).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_and_virtual_functions_stay_with_their_pods() {
    let played = async |scene: &Scene| {
        let of_node = scene.says("plugins/DeviceShare/nodeDeviceSummaries/n1").await;
        let minors = |kind: &str, pod: &str| {
            let given = of_node["allocateSet"][kind][pod].as_object().into_iter().flatten();
            given.map(|(minor, _)| minor.clone()).collect::<Vec<_>>()
        };
        assert_eq!(minors("gpu", "default/a"), ["0", "1"]);
        assert_eq!(minors("gpu", "default/p"), ["2"]);
        assert_eq!(minors("rdma", "default/p"), ["1"]);

        let requests = json!({"cpu": "1", "memory": "1Gi", "koordinator.sh/gpu": "100", "koordinator.sh/rdma": "1"});
        let hint = json!({"scheduling.koordinator.sh/device-allocate-hint": r#"{"rdma":{"vfSelector":{}}}"#});
        let rest = scene.places(&pod("rest", &requests, &Value::Null, &hint)).await.unwrap();
        let devices = embedded(&rest, "device-allocated");
        assert_eq!(devices["gpu"][0]["minor"], 3);
        // On the NUMA node of that GPU one function is left.
        assert_eq!(devices["rdma"][0]["extension"]["vfs"][0]["busID"], "0000:81:00.2");
        scene.has_nothing_for(&with_gpu("more", "100"), "Insufficient koordinator.sh/gpu").await;
    };
    Scene::of("mixed/gpu-rdma-numa-cpu").await.taken_over(played).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shares_of_gpus_add_up_with_those_that_were_given_out() {
    let played = async |scene: &Scene| {
        let of_node = scene.says("plugins/DeviceShare/nodeDeviceSummaries/n1").await;
        let gpus = &of_node["deviceFreeDetail"]["gpu"];
        assert_eq!(["0", "1"].map(|minor| text(&gpus[minor]["koordinator.sh/gpu-core"])), ["0", "50"]);

        let rest = scene.places(&with_gpu("rest", "50")).await.unwrap();
        assert_eq!(embedded(&rest, "device-allocated")["gpu"][0]["minor"], 1);
        scene.has_nothing_for(&with_gpu("more", "10"), "Insufficient GPU Devices").await;
    };
    Scene::of("deviceshare/shared-thirds").await.taken_over(played).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_of_a_reservation_keep_what_they_have_of_it() {
    let played = async |scene: &Scene| {
        let of_node = scene.says("plugins/Reservation/nodeReservations/n1").await;
        let reserved = &of_node["items"][0];
        let pods = reserved["assignedPods"].as_array().unwrap().iter();
        let mut owners: Vec<&str> = pods.map(|pod| text(&pod["Name"])).collect();
        owners.sort_unstable();
        assert_eq!((owners, &reserved["allocated"]), (vec!["p", "q"], &json!({"cpu": "3", "memory": "4Gi"})));
        assert_eq!(scene.says("queue").await["pods"][0]["pod"], "default/s", "it waits as it did");

        let rest = scene.places(&with_cpus("rest", "1", &json!({"app": "r1"}))).await.unwrap();
        assert_eq!(embedded(&rest, "reservation-allocated")["name"], "r1");
        let path = "/apis/scheduling.koordinator.sh/v1alpha1/reservations/r1";
        let is_full = async || {
            let reservation = scene.get(path).await;
            let status = &reservation["status"];
            let owners = status["currentOwners"].as_array().map_or(0, Vec::len);
            (owners, &status["allocated"]["cpu"]) == (3, &json!("4"))
        };
        scene.comes_true("the third owner has the last CPU of the reservation", is_full).await;
    };
    Scene::of("reservation/restricted-shared").await.taken_over(played).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_are_used_as_before() {
    let played = async |scene: &Scene| {
        for quota in ["leaf", "mid", "top"] {
            let known = scene.says(&format!("plugins/ElasticQuota/quotas/{quota}")).await;
            assert_eq!(known["used"], json!({"cpu": "25", "memory": "1Gi"}), "{quota}");
            assert_eq!(known["runtime"], json!({"cpu": "40", "memory": "2Gi"}), "{quota}");
        }
        let of_leaf =
            |name: &str, cpu: &str| with_cpus(name, cpu, &json!({"quota.scheduling.koordinator.sh/name": "leaf"}));
        scene.places(&of_leaf("rest", "15")).await.unwrap();
        scene.has_nothing_for(&of_leaf("more", "1"), "Insufficient quotas, quotaName: leaf").await;
    };
    Scene::of("elasticquota/tree-three-levels").await.taken_over(played).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_that_is_bound_takes_another_member_at_once() {
    let played = async |scene: &Scene| {
        assert_eq!(scene.bound_of("default/g").await, json!({"default/p1": {}, "default/p2": {}}));
        let labels = json!({"pod-group.scheduling.sigs.k8s.io": "g"});
        scene.places(&with_cpus("rest", "1", &labels)).await.unwrap();
    };
    Scene::of("coscheduling/podgroup-fits").await.taken_over(played).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nominated_pod_gets_the_place_that_was_made_for_it() {
    let played = async |scene: &Scene| {
        assert_eq!(scene.says("queue").await["pods"][0]["pod"], "default/h");
        scene.has_nothing_for(&with_cpus("other", "1", &Value::Null), "Insufficient cpu").await;
        let at_once = json!({"gracePeriodSeconds": 0});
        scene.send(Method::DELETE, &format!("{PODS}/a"), &at_once).await;
        let has_node = async || scene.get(&format!("{PODS}/h")).await["spec"]["nodeName"] == "n1";
        scene.comes_true("the nominated pod has its node", has_node).await;
    };
    Scene::of("intree/preempt-graceful-nominates").await.taken_over(played).await;
}
