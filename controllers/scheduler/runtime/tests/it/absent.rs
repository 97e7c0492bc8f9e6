//! Servers that do not have all kinds that plugins read: pods are scheduled all the same.

use koord_config::scheduler::SchedulerConfiguration;
use koord_scheduler_assembly::build;

use super::*;

/// Without Kubernetes' kinds for devices and storage, workloads and budgets, and without those of Koordinator.
const BARE: [&str; 4] =
    ["/api/v1/", "/apis/coordination.k8s.io/", "/apis/events.k8s.io/", "/apis/authentication.k8s.io/"];

impl Stage {
    fn add(&self, path: &str, name: &str, spec: &Value) {
        let stored = self.send(Method::POST, path, &json!({"metadata": {"name": name}, "spec": spec}));
        assert_eq!(stored["metadata"]["name"], name, "{stored}");
    }

    /// A pod with these members of its spec and these labels.
    fn add_with(&self, name: &str, labels: &Value, members: &Value) {
        let mut spec = json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "i"}]});
        spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let pod = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
        assert_eq!(self.send(Method::POST, PODS, &pod)["metadata"]["name"], name);
    }

    /// A pod with a ResourceClaim, one with a volume, and one with neither.
    fn add_three(&self) {
        self.add_with("plain", &json!({}), &json!({}));
        self.add_with("device", &json!({}), &json!({"resourceClaims": [{"name": "d", "resourceClaimName": "c"}]}));
        let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
        self.add_with("volume", &json!({}), &json!({"volumes": [volume]}));
        let claim = json!({"storageClassName": "class", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}});
        self.add("/api/v1/namespaces/default/persistentvolumeclaims", "c", &claim);
    }
}

/// The profile of kube-scheduler with the plugins of Koordinator.
fn everything() -> Profile {
    let plugins =
        ["Reservation", "Coscheduling", "ElasticQuota", "LoadAwareScheduling", "NodeNUMAResource", "DeviceShare"];
    let enabled: Vec<Value> = plugins.iter().map(|name| json!({"name": name})).collect();
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "koord-scheduler", "plugins": {"multiPoint": {"enabled": enabled}}}],
    });
    let configuration = SchedulerConfiguration::of(&document).unwrap();
    build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile
}

#[tokio::test(start_paused = true)]
async fn without_the_group_of_devices_pods_with_claims_say_why_they_wait_and_others_run() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let client = rerouted(&stage.server, |path| (!path.starts_with("/apis/resource.k8s.io")).then(|| path.to_owned()));
    let (manager, ..) = stage.program(client, default_profile("koord-scheduler").unwrap(), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.add_three();
    stage.pass(60).await;
    assert_eq!(stage.place("plain"), "only");
    // As in kube-scheduler, a pod whose claim does not exist is not tried, and gets no condition.
    assert_eq!(stage.place("device"), "-");
    stage.add_with("later", &json!({}), &json!({}));
    stage.pass(5).await;
    assert_eq!(stage.place("later"), "only", "the pod that waits keeps no other from running");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_any_kind_that_plugins_can_do_without_pods_run_and_others_say_why_they_wait() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let client =
        rerouted(&stage.server, |path| BARE.iter().any(|served| path.starts_with(served)).then(|| path.to_owned()));
    let (manager, ..) = stage.program(client, everything(), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.add_three();
    stage.add_with("member", &json!({"pod-group.scheduling.sigs.k8s.io": "gang"}), &json!({}));
    stage.pass(60).await;
    assert_eq!(stage.place("plain"), "only");
    // As in kube-scheduler, a pod whose claim does not exist is not tried, and gets no condition.
    assert_eq!(stage.place("device"), "-");
    // No storage class is known that would wait for the pod.
    let volume = stage.place("volume");
    assert!(
        volume.starts_with("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
        "{volume}"
    );
    // Nor is a member of a gang that nothing declares.
    assert_eq!(stage.place("member"), "-");
    stop.cancel();
    running.await.unwrap().unwrap();
}
