//! The scheduler, the descheduler and the node agent of an original release are replaced by an upgrade, and come back by a rollback (`spec/infra.md` 2.1).

use std::path::Path;

use integration::Helm;
use serde_json::Value;

use super::{chart, drills::contents, embedded, install::revisions, original_chart, real};
use crate::place::{NAMESPACE, Place, folder};

/// A component of which both charts have a part.
struct Component {
    name: &'static str,
    /// The key of its values.
    values: &'static str,
    /// What the configuration is.
    kind: koord_config::Kind,
    /// An argument of its container.
    argument: &'static str,
    /// What both charts have, under the same names: the Deployment, then the ConfigMap, then the others.
    shared: &'static [&'static str],
    /// What the original alone has.
    theirs: &'static [&'static str],
    /// What this chart alone has.
    ours: &'static [&'static str],
    /// Parts that stay as they are.
    others: &'static [&'static str],
}

const SCHEDULER: Component = Component {
    name: "koord-scheduler",
    values: "scheduler",
    kind: koord_config::Kind::Scheduler,
    argument: "--port=10251",
    shared: &[
        "deployment/koord-scheduler",
        "configmap/koord-scheduler-config",
        "serviceaccount/koord-scheduler",
        "clusterrole/koord-scheduler-role",
        "clusterrolebinding/koord-scheduler-rolebinding-custom",
    ],
    // Roles of Kubernetes, which grant more than is needed.
    theirs: &[
        "clusterrolebinding/koord-scheduler-rolebinding",
        "clusterrolebinding/koord-scheduler-rolebinding-volume",
    ],
    ours: &[
        "networkpolicy/koord-scheduler",
        "poddisruptionbudget/koord-scheduler",
        "role/koord-scheduler-role",
        "rolebinding/koord-scheduler-rolebinding",
    ],
    others: &["deployment/koord-descheduler", "daemonset/koordlet", "configmap/gpu-shared-resource-templates"],
};

const DESCHEDULER: Component = Component {
    name: "koord-descheduler",
    values: "descheduler",
    kind: koord_config::Kind::Descheduler,
    argument: "--config=/config/koord-descheduler.config",
    shared: &[
        "deployment/koord-descheduler",
        "configmap/koord-descheduler-config",
        "serviceaccount/koord-descheduler",
        "clusterrole/koord-descheduler-role",
        "clusterrolebinding/koord-descheduler-rolebinding",
    ],
    theirs: &[],
    ours: &[
        "networkpolicy/koord-descheduler",
        "poddisruptionbudget/koord-descheduler",
        "role/koord-descheduler-role",
        "rolebinding/koord-descheduler-rolebinding",
    ],
    others: &["deployment/koord-scheduler", "daemonset/koordlet", "configmap/koord-scheduler-config"],
};

fn object(place: &Place, name: &str) -> Option<Value> {
    let text = place.run(&["-n", NAMESPACE, "get", name, "-o", "json"], None).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn are_there(place: &Place, names: &[&str], expected: bool) {
    for name in names {
        assert_eq!(object(place, name).is_some(), expected, "{name}");
    }
}

impl Component {
    /// What it was before, with its uids: an object that was made anew has another one.
    fn uids(&self, place: &Place) -> Vec<Value> {
        contents(place, self.shared).into_iter().map(|(uid, ..)| uid).collect()
    }

    /// There and back in a cluster where nothing is installed.
    fn is_replaced(&self, place: &Place, helm: &Helm, folder: &Path) {
        let (chart, original) = (chart(), original_chart(folder));
        let three = format!("--set={}.replicas=3", self.values);
        helm.run(&["install", "koordinator", &original, &three]).unwrap();
        let (before, others) = (contents(place, self.shared), contents(place, self.others));
        are_there(place, self.theirs, true);

        // There, with the values that the release has.
        let enabled = format!("--set={}.enabled=true", self.values);
        helm.run(&["upgrade", "koordinator", &chart, "--reuse-values", &enabled]).unwrap();
        let uids = before.iter().map(|(uid, ..)| uid.clone()).collect::<Vec<_>>();
        assert_eq!(self.uids(place), uids, "something was made anew");
        self.is_ours(place);
        are_there(place, self.theirs, false);
        are_there(place, self.ours, true);
        assert_eq!(contents(place, self.others), others);

        // Again, which changes nothing.
        let settled = revisions(place, helm);
        helm.run(&["upgrade", "koordinator", &chart, "--reuse-values", &enabled]).unwrap();
        assert_eq!(revisions(place, helm), settled);

        // Without the value, what runs of it stays.
        let disabled = format!("--set={}.enabled=false", self.values);
        helm.run(&["upgrade", "koordinator", &chart, "--reuse-values", &disabled]).unwrap();
        self.is_ours(place);
        assert_eq!(self.uids(place), uids);

        // And back.
        helm.run(&["rollback", "koordinator", "1"]).unwrap();
        assert_eq!(contents(place, self.shared), before);
        are_there(place, self.theirs, true);
        are_there(place, self.ours, false);
        assert_eq!(contents(place, self.others), others);
        let restored = object(place, self.shared[0]).unwrap();
        let container = &restored["spec"]["template"]["spec"]["containers"][0];
        assert!(container["livenessProbe"].is_null() && container["securityContext"].is_null(), "{container}");
    }

    /// The Deployment and the configuration are those of this chart, with the values of the release.
    fn is_ours(&self, place: &Place) {
        let deployment = object(place, self.shared[0]).unwrap();
        assert_eq!(deployment["spec"]["selector"]["matchLabels"]["koord-app"], self.name);
        assert_eq!(deployment["spec"]["replicas"], 3);
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let image = container["image"].as_str().unwrap();
        assert!(image.ends_with(&format!("{}:v{}-rust", self.name, env!("CARGO_PKG_VERSION"))), "{image}");
        assert!(container["args"].as_array().unwrap().contains(&self.argument.into()), "{container}");
        // Lists are merged by their keys: nothing of the original's container is left beside ours.
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 1);
        assert_eq!(container["ports"].as_array().unwrap().len(), 1, "{container}");
        let data = object(place, self.shared[1]).unwrap()["data"][format!("{}-config", self.name)].clone();
        let configuration: Value = serde_saphyr::from_str(data.as_str().unwrap()).unwrap();
        assert_eq!(self.kind.check(&configuration), []);
        // Both programs run for the same Lease, so that one of them works at a time.
        assert_eq!(configuration["leaderElection"]["resourceName"], self.name);
        assert_eq!(configuration["leaderElection"]["resourceNamespace"], NAMESPACE);
        // Whoever replaces the original's descheduler notices nothing of planning until he chooses it.
        let planning = configuration["profiles"][0].get("planning");
        assert_eq!(planning, (self.values == "descheduler").then_some(&"report".into()));
    }
}

const SHARED_BY_AGENTS: &[&str] = &[
    "daemonset/koordlet",
    "serviceaccount/koordlet",
    "clusterrole/koordlet-role",
    "clusterrolebinding/koordlet-rolebinding",
];

/// The agent of the nodes, there and back, with the values that the release has.
fn agent_is_replaced(place: &Place, helm: &Helm, folder: &Path) {
    let (chart, original) = (chart(), original_chart(folder));
    helm.run(&["install", "koordinator", &original, "--set=koordlet.log.level=2"]).unwrap();
    let before = contents(place, SHARED_BY_AGENTS);
    let pod = || object(place, "daemonset/koordlet").unwrap()["spec"]["template"]["spec"].clone();
    let is_ours = || {
        let pod = pod();
        let container = &pod["containers"][0];
        let image = container["image"].as_str().unwrap();
        assert!(image.ends_with(&format!("koordlet:v{}-rust", env!("CARGO_PKG_VERSION"))), "{image}");
        assert!(container["args"].as_array().unwrap().contains(&"--v=2".into()), "{container}");
        // Nothing of the original's container is left beside ours.
        assert_eq!(container["securityContext"]["privileged"], Value::Null);
        assert_eq!(container["env"].as_array().unwrap().len(), 1, "{container}");
        let mounts = container["volumeMounts"].as_array().unwrap().len();
        assert_eq!(pod["volumes"].as_array().unwrap().len(), mounts);
    };

    // There, and again, which changes nothing.
    let upgrade = |enabled: &str| {
        let enabled = format!("--set=koordlet.enabled={enabled}");
        helm.run(&["upgrade", "koordinator", &chart, "--reuse-values", &enabled]).unwrap();
    };
    upgrade("true");
    is_ours();
    let uids = |contents: Vec<(Value, Value, Value)>| contents.into_iter().map(|(uid, ..)| uid).collect::<Vec<_>>();
    assert_eq!(uids(contents(place, SHARED_BY_AGENTS)), uids(before.clone()), "something was made anew");
    let settled = revisions(place, helm);
    upgrade("true");
    assert_eq!(revisions(place, helm), settled);

    // Without the value, what runs of it stays.
    upgrade("false");
    is_ours();

    helm.run(&["rollback", "koordinator", "1"]).unwrap();
    assert_eq!(contents(place, SHARED_BY_AGENTS), before);
}

async fn is_replaced_on_the_embedded_server(component: &Component) {
    let folder = folder(&format!("chart-{}", component.values));
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    component.is_replaced(&embedded.place, &helm, &folder);
    embedded.stop().await;
}

async fn is_replaced_on_a_real_server(component: &Component) {
    let folder = folder(&format!("real-chart-{}", component.values));
    let Some((real, helm)) = real(&folder).await else { return };
    component.is_replaced(&real.place, &helm, &folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_replaces_the_originals_scheduler_and_a_rollback_brings_it_back() {
    is_replaced_on_the_embedded_server(&SCHEDULER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_cluster_replaces_the_originals_scheduler_and_takes_it_back() {
    is_replaced_on_a_real_server(&SCHEDULER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_replaces_the_originals_descheduler_and_a_rollback_brings_it_back() {
    is_replaced_on_the_embedded_server(&DESCHEDULER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_cluster_replaces_the_originals_descheduler_and_takes_it_back() {
    is_replaced_on_a_real_server(&DESCHEDULER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_replaces_the_originals_node_agent_and_a_rollback_brings_it_back() {
    let folder = folder("chart-koordlet");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    agent_is_replaced(&embedded.place, &helm, &folder);
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_cluster_replaces_the_originals_node_agent_and_takes_it_back() {
    let folder = folder("real-chart-koordlet");
    let Some((real, helm)) = real(&folder).await else { return };
    agent_is_replaced(&real.place, &helm, &folder);
}
