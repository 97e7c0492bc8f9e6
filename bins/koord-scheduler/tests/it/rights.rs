//! The program asks for what its roles grant, no more and no less.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use envtest::{
    auth::recorder::{Recorder, Right},
    cluster::Options,
};
use http::Method;
use koord_resource::{
    declare::Profile,
    document::{custom_resource_definition, roles},
    rbac::RbacRule,
    yaml,
};
use koord_scheduler::{GATED, rbac_rules};
use programs::{Running, free};
use serde_json::{Value, json};

use crate::{
    program::{Server, secure_answer, write},
    replicas::{MAX, is_ready},
};

pub(crate) const USER: &str = "scheduler";
const NAMESPACE: &str = "koordinator-system";
pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/koordinator-system/leases";
const SHIPPED: &str = include_str!("../../../../config/koord-scheduler.config.yaml");

/// Rights that may stay unused here, each with the reason why they are needed all the same: resource (none for every one), verb.
const NEEDED_AT_TIMES: &[(Option<&str>, &str, &str)] = &[
    (None, "list", "a server that cannot stream the first look at a kind is asked for a list"),
    (Some("events"), "patch", "an event that occurs again is counted in the one that was recorded"),
    (Some("reservations"), "delete", "reservations that have ended are removed after a while"),
    (Some("reservations"), "patch", "a reservation that is bound with a gang says so"),
    (Some("clusternetworktopologies/status"), "patch", "the status lists the places of the network"),
    (Some("reservations/status"), "patch", "the status says which pods use a reservation"),
    (Some("reservations/status"), "update", "the status says which pods use a reservation"),
    (Some("podgroups"), "patch", "the status says how many pods of a gang run"),
    (Some("podgroups"), "update", "the status says how many pods of a gang run"),
    (Some("pods/eviction"), "create", "a quota that uses more than it may loses pods where that is watched"),
];

impl Server {
    pub(crate) async fn post(&self, path: &str, object: &Value) {
        let made = self.send(Method::POST, path, object).await;
        assert!(made["metadata"]["name"].is_string(), "{path}: {made}");
    }

    /// Our definitions, and a user who may do what the roles say.
    pub(crate) async fn install(&self) {
        for versions in koord_types::KINDS {
            let definition = custom_resource_definition(versions, Profile::Compatible);
            self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        }
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})).await;
        for role in roles("koord-scheduler-role", &rules(), NAMESPACE) {
            let kind = role["kind"].as_str().unwrap();
            let place = role["metadata"]["namespace"].as_str();
            let path = place.map_or(RBAC.to_owned(), |namespace| format!("{RBAC}/namespaces/{namespace}"));
            self.post(&format!("{path}/{}s", kind.to_lowercase()), &role).await;
            let binding = json!({
                "metadata": {"name": "scheduler"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "koord-scheduler-role"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
            });
            self.post(&format!("{path}/{}bindings", kind.to_lowercase()), &binding).await;
        }
    }

    /// The shipped configuration, for the user of a token.
    pub(crate) fn config_of(&self, token: &str) -> String {
        let mut kubeconfig = yaml::parse(&fs::read_to_string(self.kubeconfig()).unwrap()).unwrap();
        kubeconfig["users"][0]["user"] = json!({"token": token});
        let kubeconfig = self.file("scheduler", &kubeconfig.to_string());
        format!("{SHIPPED}\nclientConnection: {{kubeconfig: {}}}\n", kubeconfig.display())
    }

    /// Pods that are bound, given devices, make room, wait for volumes, claim devices, and are refused.
    async fn occasions(&self) {
        self.add_node("only", "4").await;
        let devices = json!([{"type": "gpu", "minor": 0, "health": true, "id": "GPU-0",
            "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "80Gi", "koordinator.sh/gpu-memory-ratio": "100"}}]);
        let device = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "only", "labels": {"node.koordinator.sh/gpu-vendor": "metax"}}, "spec": {"devices": devices}});
        self.post("/apis/scheduling.koordinator.sh/v1alpha1/devices", &device).await;
        let class = json!({"metadata": {"name": "high"}, "value": 1000});
        self.post("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
        for (name, provisioner) in [("by-hand", "kubernetes.io/no-provisioner"), ("made", "example.com/disk")] {
            let class = json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"});
            self.post("/apis/storage.k8s.io/v1/storageclasses", &class).await;
            let resources = json!({"requests": {"storage": "1Gi"}});
            let spec = json!({"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": resources});
            self.post(
                "/api/v1/namespaces/default/persistentvolumeclaims",
                &json!({"metadata": {"name": name}, "spec": spec}),
            )
            .await;
        }
        let spec = json!({"storageClassName": "by-hand", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}});
        self.post("/api/v1/persistentvolumes", &json!({"metadata": {"name": "disk"}, "spec": spec})).await;
        self.patch_status("/api/v1/persistentvolumes/disk", &json!({"phase": "Available"})).await;
        let allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "10", "koordinator.sh/gpu-core": "100",
            "koordinator.sh/gpu-memory": "80Gi", "koordinator.sh/gpu-memory-ratio": "100"});
        self.patch_status("/api/v1/nodes/only", &json!({"allocatable": allocatable, "capacity": allocatable})).await;
        self.post(
            PODS,
            &pod(
                "gpu",
                &json!({"cpu": "100m", "koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}),
                &json!({}),
            ),
        )
        .await;
        assert_eq!(self.node_of("gpu").await, "only");
        for name in ["by-hand", "made"] {
            let volume = json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
            self.post(PODS, &pod(name, &json!({"cpu": "100m"}), &json!({"volumes": volume}))).await;
        }
        self.add_device("only").await;
        self.add_claim(json!({"name": "claim"})).await;
        let claims = json!([{"name": "gpu", "resourceClaimName": "claim"}]);
        self.post(PODS, &pod("claims", &json!({"cpu": "100m"}), &json!({"resourceClaims": claims}))).await;
        assert_eq!(self.node_of("claims").await, "only");
        // What is left of an earlier binding is taken off, which a binding cannot do.
        let mut again = pod("again", &json!({"cpu": "100m"}), &json!({}));
        again["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/bind-gang-member-count": "2"});
        self.post(PODS, &again).await;
        assert_eq!(self.node_of("again").await, "only");
        self.post(PODS, &pod("low", &json!({"cpu": "3"}), &json!({}))).await;
        assert_eq!(self.node_of("low").await, "only");
        let explanation = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "ScheduleExplanation",
            "metadata": {"name": "why-low"}, "spec": {"questionObjectKey": "low", "ttl": "1s"}});
        self.post("/apis/scheduling.koordinator.sh/v1alpha1/namespaces/default/scheduleexplanations", &explanation)
            .await;
        self.post(PODS, &pod("high", &json!({"cpu": "3"}), &json!({"priorityClassName": "high"}))).await;
    }

    async fn patch_status(&self, path: &str, status: &Value) {
        self.send(Method::PATCH, &format!("{path}/status"), &json!({"status": status})).await;
    }
}

/// What the roles grant, with that of gates.
fn rules() -> Vec<RbacRule> {
    rbac_rules().into_iter().chain(GATED.iter().flat_map(|gated| gated.rules.iter().copied())).collect()
}

fn pod(name: &str, requests: &Value, more: &Value) -> Value {
    let resources = json!({"requests": requests, "limits": requests});
    let mut spec = json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "i", "resources": resources}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": spec})
}

fn is_explained(Right { resource, verb, .. }: &Right) -> bool {
    NEEDED_AT_TIMES.iter().any(|(of, known, _)| known == verb && of.is_none_or(|of| of == resource))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_roles_grant_is_what_the_program_asks_for() {
    let (folder, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let tokens = write(folder.path(), "tokens", &format!("secret,{USER},uid\n"));
    let options = Options { token_file: Some(tokens), recorder: Some(recorder.clone()), ..Options::default() };
    let server = Server::start_with(options).await;
    server.install().await;
    // It waits for another replica, which then goes with its Lease.
    let another = json!({"holderIdentity": "another", "leaseDurationSeconds": 3600});
    server.post(LEASES, &json!({"metadata": {"name": "koord-scheduler"}, "spec": another})).await;
    let (port, secure) = (free(), free());
    let mut program = server.program(&server.config_of("secret"), port);
    let mut program = Running(
        program
            .arg(format!("--secure-port={}", secure.port()))
            .arg("--explain-waiting")
            .arg(format!("--feature-gates={}", GATED.map(|gated| format!("{}=true", gated.gate)).join(",")))
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap(),
    );
    is_ready(&mut program, port).await;
    let begin = Instant::now();
    while !recorder.asked_by(USER).iter().any(|asked| (&*asked.resource, &*asked.verb) == ("leases", "watch")) {
        assert!(begin.elapsed() < MAX, "it does not watch the Lease that another holds");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.send(Method::DELETE, &format!("{LEASES}/koord-scheduler"), &json!({})).await;
    server.occasions().await;
    let refused = format!("forbidden: User {USER:?} cannot get path \"/metrics\"");
    assert_eq!(secure_answer(secure, Some("secret"), "/metrics").await, (403, refused));
    let begin = Instant::now();
    loop {
        let asked = recorder.asked_by(USER);
        let refused: Vec<_> = asked.iter().filter(|asked| !asked.allowed).collect();
        assert!(refused.is_empty(), "it asks for what it may not: {refused:#?}");
        let is_used = |right: &Right| asked.iter().any(|asked| right.is_used_by(asked));
        let granted = Right::of_rules(&rules(), NAMESPACE).into_iter();
        let unused: Vec<_> = granted.filter(|right| !is_used(right) && !is_explained(right)).collect();
        if unused.is_empty() {
            break;
        }
        assert!(begin.elapsed() < MAX, "it may do what it never does: {unused:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
