//! GPUs of vendors whose device plugins find out by a lock of the node which pod they are for.

use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::{
    declare::Profile as Hardening,
    document::{Declared, custom_resource_definition},
};
use koord_scheduler_assembly::build;
use koord_types::device::Device;

use super::*;

const NODE: &str = "/api/v1/nodes/only";
const LOCK: &str = "hami.io/mutex.lock";
const LOCKED: &str = r#"running PreBind plugin "DeviceShare": failed to adapt for GPU device plugin of vendor "metax": failed to lock node: node "only" has been locked"#;

fn profile() -> Profile {
    let named = json!([{"name": "DeviceShare"}]);
    let enabled = json!({ "enabled": named });
    let points = json!({"preFilter": enabled, "filter": enabled, "reserve": enabled, "preBind": enabled});
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "koord-scheduler", "plugins": points}],
    });
    let profiles = SchedulerConfiguration::of(&document).unwrap().profiles;
    build(&profiles[0].resolved(), &|gate| gate == "DevicePluginAdaption").unwrap().profile
}

/// A node with two GPUs, and its lock.
fn stage(lock: &Value) -> Stage {
    let stage = Stage::new();
    stage.add_node("only", "8");
    let status = json!({"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9", "koordinator.sh/gpu-core": "200",
        "koordinator.sh/gpu-memory-ratio": "200", "koordinator.sh/gpu-memory": "32Gi"}});
    stage.send(Method::PATCH, &format!("{NODE}/status"), &json!({ "status": status }));
    stage.send(Method::PATCH, NODE, &json!({"metadata": {"annotations": {LOCK: lock}}}));
    let definition = custom_resource_definition(&[Declared::of::<Device>()], Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi"});
    let gpu = |minor: u32| json!({"type": "gpu", "minor": minor, "id": format!("GPU-{minor}"), "health": true, "resources": resources});
    let metadata = json!({"name": "only", "labels": {"node.koordinator.sh/gpu-vendor": "metax"}});
    let device = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": metadata,
        "spec": {"devices": [gpu(0), gpu(1)]}});
    stage.send(Method::POST, "/apis/scheduling.koordinator.sh/v1alpha1/devices", &device);
    stage
}

impl Stage {
    fn add_gpu_pod(&self, name: &str) {
        let gpus = json!({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"});
        let container = json!({"name": "c", "image": "i", "resources": {"requests": gpus, "limits": gpus}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        self.send(Method::POST, PODS, &json!({"metadata": {"name": name}, "spec": spec}));
    }

    fn lock(&self) -> Value {
        self.send(Method::GET, NODE, &Value::Null)["metadata"]["annotations"][LOCK].clone()
    }

    fn annotation(&self, pod: &str, name: &str) -> Value {
        self.send(Method::GET, &format!("{PODS}/{pod}"), &Value::Null)["metadata"]["annotations"][name].clone()
    }

    fn program_with_gpus(&self) -> (CancellationToken, tokio::task::JoinHandle<()>) {
        let stop = CancellationToken::new();
        let (manager, ..) = self.program(Client::new(self.server.router(), "default"), profile(), "one");
        let running = manager.run(stop.clone());
        (stop, tokio::spawn(async move { running.await.unwrap() }))
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_bound_one_after_the_other_as_their_device_plugin_takes_the_lock_off() {
    let stage = stage(&Value::Null);
    stage.add_gpu_pod("a");
    let (stop, running) = stage.program_with_gpus();
    stage.pass(5).await;
    assert_eq!(stage.place("a"), "only");
    let lock = stage.lock();
    assert!(lock.as_str().unwrap().ends_with(",default,a"), "{lock}");
    let given = stage.annotation("a", "metax-tech.com/gpu-devices-allocated");
    assert_eq!(given, json!(r#"[[{"uuid":"GPU-0","compute":50,"vRam":8192}]]"#));
    assert!(stage.annotation("a", "scheduling.koordinator.sh/bind-timestamp").is_string());

    stage.add_gpu_pod("b");
    stage.add_gpu_pod("c");
    stage.pass(60).await;
    assert_eq!(
        [stage.place("b"), stage.place("c"), stage.lock().to_string()],
        [LOCKED.to_owned(), LOCKED.to_owned(), lock.to_string()]
    );
    let take_off = || stage.send(Method::PATCH, NODE, &json!({"metadata": {"annotations": {LOCK: null}}}));
    take_off();
    stage.pass(60).await;
    let bound = |name: &&str| stage.place(name) == "only";
    assert_eq!(["b", "c"].iter().filter(|name| bound(name)).count(), 1, "one at a time");
    take_off();
    stage.pass(60).await;
    assert_eq!(["b", "c"].iter().filter(|name| bound(name)).count(), 2);
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_pods_at_once_do_not_both_get_the_lock() {
    let stage = stage(&Value::Null);
    stage.add_gpu_pod("a");
    stage.add_gpu_pod("b");
    let (stop, running) = stage.program_with_gpus();
    stage.pass(30).await;
    let bound: Vec<&str> = ["a", "b"].into_iter().filter(|name| stage.place(name) == "only").collect();
    assert_eq!(bound.len(), 1, "{bound:?}");
    assert!(stage.lock().as_str().unwrap().ends_with(&format!(",default,{}", bound[0])));
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_expired_or_the_pods_own_blocks_no_pod() {
    for (lock, name) in [("1970-01-01T00:00:00Z,default,gone", "a"), ("1970-01-01T00:00:00Z,default,a", "a")] {
        let stage = stage(&json!(lock));
        stage.add_gpu_pod("a");
        let (stop, running) = stage.program_with_gpus();
        stage.pass(5).await;
        assert_eq!(stage.place(name), "only", "{lock}");
        stop.cancel();
        running.await.unwrap();
    }
    let stage = stage(&json!("1970-01-01T00:00:00Z,default,other"));
    stage.add_pod("other", "20");
    stage.add_gpu_pod("a");
    let (stop, running) = stage.program_with_gpus();
    stage.pass(100).await;
    assert_eq!(stage.place("a"), LOCKED);
    stage.pass(300).await;
    assert_eq!(stage.place("a"), "only", "after five minutes");
    stop.cancel();
    running.await.unwrap();
}
