//! A cluster that koord-manager is installed in, by whatever means, and everything that it does there.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use envtest::{
    auth::recorder::Recorder,
    cluster::{Cluster, Controllers, Options},
};
use integration::{
    Installed, Kubectl, RealServer,
    installed::{Process, Reach},
};
use koord_runtime::clock::SystemClock;
use kube::{Client, Config};
use serde_json::Value;
use tokio::{sync::watch, task::JoinHandle};

use crate::{scrape, traces::Collector};

pub(crate) const NAMESPACE: &str = "koordinator-system";
pub(crate) const CONFIGURATIONS: [&str; 2] = [
    "mutatingwebhookconfigurations/koordinator-mutating-webhook-configuration",
    "validatingwebhookconfigurations/koordinator-validating-webhook-configuration",
];

/// Rights that are granted and may stay unused here, each with the reason why they are needed all the same: resource (none for every one), verb.
const NEEDED_AT_TIMES: &[(Option<&str>, &str, &str)] = &[
    (
        None,
        "list",
        "a server that cannot stream the first look at a kind, as this one and newer ones do, is asked for a list",
    ),
    (Some("leases"), "watch", "a replica that waits watches the Lease of the one that leads"),
    (
        Some("elasticquotas"),
        "get",
        "a quota that somebody else has just changed is read again before a pod is charged to it",
    ),
];

/// A node with a GPU and two zones.
const WORKER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: worker}
status:
  capacity: {cpu: "32", memory: 64Gi, pods: "110"}
  allocatable: {cpu: "32", memory: 64Gi, pods: "110"}
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Device
metadata:
  name: worker
  labels: {node.koordinator.sh/gpu-vendor: nvidia, node.koordinator.sh/gpu-model: A100}
spec:
  devices:
  - {type: gpu, minor: 0, id: GPU-0, health: true, resources: {koordinator.sh/gpu-core: "100", koordinator.sh/gpu-memory: 80Gi}}
---
apiVersion: topology.node.k8s.io/v1alpha1
kind: NodeResourceTopology
metadata: {name: worker}
topologyPolicies: [None]
zones:
- name: node-0
  type: Node
  resources: &half
  - {name: cpu, capacity: "16", allocatable: "16", available: "16"}
  - {name: memory, capacity: 32Gi, allocatable: 32Gi, available: 32Gi}
- {name: node-1, type: Node, resources: *half}
"#;

pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The embedded server, with a place to install in.
pub(crate) struct Embedded {
    pub(crate) place: Place,
    pub(crate) kubeconfig: PathBuf,
    /// Where the webhooks' Service leads to.
    pub(crate) port: u16,
    recorder: Recorder,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Embedded {
    /// None without kubectl.
    pub(crate) async fn start(folder: &Path) -> Result<Option<Self>> {
        let kubeconfig = folder.join("kubeconfig");
        let Some(kubectl) = Kubectl::find(&kubeconfig, &folder.join("cache"))? else { return Ok(None) };
        let (port, recorder) = (programs::free().port(), Recorder::default());
        let alias = format!("{NAMESPACE}/koordinator-webhook-service:443=127.0.0.1:{port}");
        let options = Options {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            service_aliases: vec![alias.parse()?],
            recorder: Some(recorder.clone()),
            // Namespaces end, and what belongs to what is gone goes, as beside a controller manager.
            controllers: Some(Controllers::default()),
            ..Options::default()
        };
        let cluster = Cluster::bind(options).await?;
        cluster.kubeconfig(envtest::serve::Owner::named("installation")).write(&kubeconfig, true)?;
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(cluster.run(stopped));
        let place = Place::new(kubectl, &kubeconfig).await?;
        Ok(Some(Self { place, kubeconfig, port, recorder, stop, serving }))
    }

    /// What a user asked for is what its roles grant, no more and no less.
    pub(crate) fn compare_rights(&self, user: &str) {
        compare(&granted(&self.place), &self.recorder, user);
    }

    pub(crate) async fn stop(self) {
        self.stop.send_replace(true);
        self.serving.await.unwrap();
    }
}

/// A real kube-apiserver, with a place to install in.
pub(crate) struct Real {
    pub(crate) place: Place,
    pub(crate) server: RealServer,
}

impl Real {
    /// None where none was built, and without kubectl.
    pub(crate) async fn start(folder: &Path) -> Result<Option<Self>> {
        let Some(assets) = RealServer::assets() else { return Ok(None) };
        let server = RealServer::start(&assets).await?;
        let Some(kubectl) = Kubectl::find(&server.kubeconfig, &folder.join("cache"))? else { return Ok(None) };
        let place = Place::new(kubectl, &server.kubeconfig).await?;
        Ok(Some(Self { place, server }))
    }
}

/// A cluster to install in.
pub(crate) struct Place {
    kubectl: Kubectl,
    pub(crate) config: Config,
    pub(crate) admin: Client,
}

impl Place {
    async fn new(kubectl: Kubectl, kubeconfig: &Path) -> Result<Self> {
        let config = koord_program::kubeconfig::from_file(kubeconfig, None).await?;
        let admin = Client::try_from(config.clone())?;
        Ok(Self { kubectl, config, admin })
    }

    pub(crate) fn run(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        let printed = tokio::task::block_in_place(|| self.kubectl.run(arguments, input, &[]))?;
        ensure!(printed.code == 0, "kubectl {arguments:?}: {}{}", printed.stdout, printed.stderr);
        Ok(printed.stdout)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.run(&["get", "--raw", path], None)?)?)
    }

    /// Whether there is such an object, and it holds.
    pub(crate) fn is(&self, path: &str, holds: impl Fn(&Value) -> bool) -> bool {
        self.get(path).is_ok_and(|object| holds(&object))
    }

    /// Both webhook configurations.
    pub(crate) fn configurations(&self) -> [Value; 2] {
        CONFIGURATIONS.map(|name| self.get(&format!("/apis/admissionregistration.k8s.io/v1/{name}")).unwrap())
    }

    pub(crate) fn trusted(&self) -> bool {
        let is_filled =
            |entry: &Value| entry["clientConfig"]["caBundle"].as_str().is_some_and(|bundle| bundle != "Cg==");
        let filled = |configuration: &Value| {
            configuration["webhooks"].as_array().is_some_and(|entries| entries.iter().all(is_filled))
        };
        CONFIGURATIONS.iter().all(|name| self.is(&format!("/apis/admissionregistration.k8s.io/v1/{name}"), filled))
    }

    /// Lets koord-manager do all that it does, with these gates; gives the name of its user.
    pub(crate) async fn works(&self, gates: &str, reach: Reach) -> Result<String> {
        let process = Process::described(&self.admin, NAMESPACE, "koord-manager").await?;
        // Where edits of the configuration are reviewed, what they lead to is one trace.
        let collector = Collector::start().await?;
        let process = if gates.is_empty() { process } else { process.with_gates(gates).with_traces(collector.address) };
        let mut manager = process.start(&self.admin, &self.config, reach).await?;
        manager.until("the webhooks are trusted", || async { Ok(self.trusted()) }).await?;
        manager.until_ready().await?;
        self.node_comes_and_goes(&mut manager, if gates.is_empty() { 51 } else { 52 }).await?;
        self.mistakes_are_told(&mut manager).await?;
        self.admission(&mut manager).await?;
        self.quota_follows_nodes(&mut manager).await?;
        self.damage_is_repaired(&mut manager).await?;
        tokio::task::block_in_place(|| scrape::check(manager.metrics)).context("metrics")?;
        let user = manager.user.clone();
        manager.stop().await?;
        if !gates.is_empty() {
            collector.shows_the_chain().await.context("traces")?;
        }
        Ok(user)
    }

    async fn node_comes_and_goes(&self, manager: &mut Installed, percent: u32) -> Result<()> {
        self.run(&["create", "-f", "-"], Some(WORKER))?;
        let (slo, metric) = ["nodeslos", "nodemetrics"]
            .map(|plural| format!("/apis/slo.koordinator.sh/v1alpha1/{plural}/worker"))
            .into();
        let both = |holds: fn(&Value) -> bool| self.is(&slo, holds) && self.is(&metric, holds);
        manager.until("the node has a NodeSLO and a NodeMetric", || async { Ok(both(|_| true)) }).await?;
        let configuration = r#"{"colocation-config": "{\"enable\": true, \"metricReportIntervalSeconds\": 30}",
            "resource-threshold-config": "{\"clusterStrategy\": {\"enable\": true, \"cpuSuppressThresholdPercent\": 51}}"}"#;
        self.configure(&configuration.replace("51", &percent.to_string()))?;
        let follows = || {
            self.is(&slo, |slo| slo["spec"]["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] == percent)
                && self.is(&metric, |metric| metric["spec"]["metricCollectPolicy"]["reportIntervalSeconds"] == 30)
        };
        manager.until("both follow the configuration", || async { Ok(follows()) }).await?;
        self.batch_resources(manager).await?;
        self.run(&["delete", "node", "worker"], None)?;
        for kind in ["device", "noderesourcetopology"] {
            self.run(&["delete", kind, "worker"], None)?;
        }
        let gone = || self.get(&slo).is_err() && self.get(&metric).is_err();
        manager.until("both go with the node", || async { Ok(gone()) }).await
    }

    /// What the node reports becomes what batch pods may use of it and of its zones; its devices become labels.
    async fn batch_resources(&self, manager: &mut Installed) -> Result<()> {
        let now = SystemClock::shared().now();
        let usage = r#"{"resources": {"cpu": "4", "memory": "8Gi"}}"#;
        let status = format!(
            r#"{{"status": {{"updateTime": "{now}", "nodeMetric": {{"nodeUsage": {usage}, "systemUsage": {usage}}}}}}}"#
        );
        self.run(&["patch", "nodemetric", "worker", "--subresource=status", "--type=merge", "-p", &status], None)?;
        let reported = || {
            let topology = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies/worker";
            self.is("/api/v1/nodes/worker", |node| {
                node["status"]["allocatable"]["kubernetes.io/batch-cpu"].is_string()
                    && node["metadata"]["labels"]["node.koordinator.sh/gpu-model"] == "A100"
            }) && self.is(topology, |topology| topology["zones"].to_string().contains("kubernetes.io/batch-cpu"))
        };
        manager.until("the node and its zones show what batch pods may use", || async { Ok(reported()) }).await
    }

    /// Without its label no webhook sees the ConfigMap, so that mistakes reach the controllers.
    async fn mistakes_are_told(&self, manager: &mut Installed) -> Result<()> {
        let label = |value: &str| {
            let patch = format!(r#"{{"metadata": {{"labels": {{"koordinator.sh/configmap-type": {value}}}}}}}"#);
            let config = ["-n", NAMESPACE, "patch", "configmap", "slo-controller-config", "--type=merge", "-p", &patch];
            self.run(&config, None)
        };
        label("null")?;
        for mistake in ["[1", "[2"] {
            self.configure(&format!(r#"{{"resource-qos-config": "{mistake}"}}"#))?;
            let events = || {
                let events = self.get(&format!("/api/v1/namespaces/{NAMESPACE}/events"))?;
                let reported = events["items"].to_string();
                Ok(reported.contains("slo-controller-config"))
            };
            manager.until("an event reports the mistake", || async { events() }).await?;
        }
        self.configure(r#"{"resource-qos-config": null}"#)?;
        label(r#""slo-controller-config""#).map(drop)
    }

    pub(crate) fn configure(&self, data: &str) -> Result<String> {
        let patch = format!(r#"{{"data": {data}}}"#);
        self.run(&["-n", NAMESPACE, "patch", "configmap", "slo-controller-config", "--type=merge", "-p", &patch], None)
    }

    async fn admission(&self, manager: &mut Installed) -> Result<()> {
        let profile = "apiVersion: config.koordinator.sh/v1alpha1\nkind: ClusterColocationProfile\nmetadata: {name: batch}\nspec:\n  \
                       selector: {matchLabels: {work: batch}}\n  qosClass: BE\n  priorityClassName: koord-batch\n";
        self.run(&["create", "-f", "-"], Some(profile))?;
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: job, namespace: default, labels: {work: batch}}\nspec:\n  \
                   containers: [{name: main, image: job}]\n";
        let answer = || self.run(&["create", "-f", "-", "--dry-run=server", "-o", "yaml"], Some(pod));
        let is_batch = || async { Ok(answer().is_ok_and(|pod| pod.contains("koordinator.sh/qosClass: BE"))) };
        manager.until("pods become batch pods", is_batch).await?;
        let quota = |min: u32| {
            format!(
                "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {{name: team, namespace: default}}\nspec:\n  \
                 min: {{cpu: {min}}}\n  max: {{cpu: 40}}\n"
            )
        };
        let refused = self.run(&["create", "-f", "-"], Some(&quota(50))).err().context("a wrong quota is accepted")?;
        ensure!(refused.to_string().contains("min 50 > max 40"), "{refused}");
        let made = self.run(&["create", "-f", "-", "-o", "yaml"], Some(&quota(10)))?;
        ensure!(made.contains("quota.scheduling.koordinator.sh/parent: koordinator-root-quota"), "{made}");
        // Where quotas are asked, what the pod costs is written to its quota.
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: paid, namespace: default, labels: {quota.scheduling.koordinator.sh/name: team}}\nspec:\n  \
                   containers: [{name: main, image: paid, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}]\n";
        let paid = || async { Ok(self.run(&["create", "-f", "-"], Some(pod)).is_ok()) };
        manager.until("a pod is paid by its quota", paid).await?;
        self.run(&["-n", "default", "delete", "pod", "paid", "--grace-period=0", "--force"], None)?;
        let free = || async { Ok(self.run(&["-n", "default", "delete", "elasticquota", "team"], None).is_ok()) };
        manager.until("a quota without pods can go", free).await?;
        self.run(&["delete", "clustercolocationprofile", "batch"], None).map(drop)
    }

    /// A profile gets its tree, and the tree its root, which stays what the nodes make it.
    async fn quota_follows_nodes(&self, manager: &mut Installed) -> Result<()> {
        let profile = "apiVersion: quota.koordinator.sh/v1alpha1\nkind: ElasticQuotaProfile\n\
                       metadata: {name: pool, namespace: default}\nspec: {quotaName: pool-root, nodeSelector: {}}\n";
        self.run(&["create", "-f", "-"], Some(profile))?;
        let root = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas/pool-root";
        let promises = || self.is(root, |quota| quota["spec"]["min"]["cpu"] == "0");
        manager.until("the profile has a quota", || async { Ok(promises()) }).await?;
        let pool = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles/pool";
        let tree =
            |profile: &Value| profile["metadata"]["labels"]["quota.scheduling.koordinator.sh/tree-id"].is_string();
        manager.until("the profile has a tree", || async { Ok(self.is(pool, tree)) }).await?;
        let edit = r#"{"spec": {"min": {"cpu": "7"}}}"#;
        self.run(&["-n", "default", "patch", "elasticquota", "pool-root", "--type=merge", "-p", edit], None)?;
        manager.until("the quota is what the nodes make it", || async { Ok(promises()) }).await?;
        self.run(&["-n", "default", "delete", "elasticquotaprofile", "pool"], None)?;
        self.run(&["-n", "default", "delete", "elasticquota", "pool-root"], None).map(drop)
    }

    async fn damage_is_repaired(&self, manager: &mut Installed) -> Result<()> {
        let reset = r#"[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Cg=="}]"#;
        self.run(&["patch", CONFIGURATIONS[0], "--type=json", "-p", reset], None)?;
        manager.until("the webhooks are trusted again", || async { Ok(self.trusted()) }).await?;
        let secret = "koordinator-webhook-certs";
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{secret}");
        let keeps = |secret: &Value| secret["data"].as_object().is_some_and(|data| !data.is_empty());
        self.run(&["-n", NAMESPACE, "patch", "secret", secret, "--type=merge", "-p", r#"{"data": null}"#], None)?;
        manager.until("certificates are kept again", || async { Ok(self.is(&path, keeps)) }).await?;
        self.run(&["-n", NAMESPACE, "delete", "secret", secret], None)?;
        manager.until("the Secret is there again", || async { Ok(self.is(&path, keeps)) }).await
    }
}

/// A right as a rule gives it: namespace or nothing for all, group, resource, verb.
type Right = (String, String, String, String);

/// What the roles of the installation grant.
fn granted(place: &Place) -> BTreeSet<Right> {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";
    let everywhere = (String::new(), format!("{ROLES}/clusterroles/koord-manager-role"));
    let here = (NAMESPACE.to_owned(), format!("{ROLES}/namespaces/{NAMESPACE}/roles/koord-manager-role"));
    let texts = |field: &Value| -> Vec<String> {
        field.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    // Only where what needs it is switched on.
    let profiles = (String::new(), format!("{ROLES}/clusterroles/koord-manager-colocation-profile-role"));
    let mut rights = BTreeSet::new();
    for (namespace, path) in [everywhere, here, profiles] {
        let Ok(role) = place.get(&path) else { continue };
        for rule in role["rules"].as_array().unwrap() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        rights.insert((namespace.clone(), group.clone(), resource.clone(), verb));
                    }
                }
            }
        }
    }
    rights
}

/// Used ⊆ granted, and granted ⊆ used but for what [`NEEDED_AT_TIMES`] explains.
fn compare(granted: &BTreeSet<Right>, recorder: &Recorder, user: &str) {
    let asked = recorder.asked_by(user);
    let refused: Vec<_> = asked.iter().filter(|asked| !asked.allowed).collect();
    assert!(refused.is_empty(), "it asks for what it may not: {refused:#?}");
    let used = |(namespace, group, resource, verb): &Right| {
        asked.iter().any(|asked| {
            (&asked.group, &asked.resource, &asked.verb) == (group, resource, verb)
                && (namespace.is_empty() || asked.namespace == *namespace)
        })
    };
    let explained = |(_, _, resource, verb): &Right| {
        NEEDED_AT_TIMES.iter().any(|(of, known, _)| known == verb && of.is_none_or(|of| of == resource))
    };
    let line = |(namespace, group, resource, verb): &Right| format!("{namespace}/{group}/{resource}: {verb}\n");
    let unused: String = granted.iter().filter(|right| !used(right) && !explained(right)).map(line).collect();
    assert!(unused.is_empty(), "it may do what it never does:\n{unused}");
}
