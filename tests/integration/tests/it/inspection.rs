//! `koordctl doctor` and `koordctl plan` on both servers: silent beside a koord-manager that works, and right about what has become of it.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use integration::installed::{Installed, Process, Reach};
use koord_runtime::clock::SystemClock;
use koordctl::Answer;
use serde_json::Value;

use crate::{
    installation::install,
    place::{Embedded, NAMESPACE, Place, Real, folder},
};

/// Action, kind and name of a write.
type Step = (String, String, String);

const NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: NAME}
status:
  capacity: {cpu: "16", memory: 32Gi, pods: "110"}
  allocatable: {cpu: "16", memory: 32Gi, pods: "110"}
"#;

/// What the Service of an installation that somebody runs would have.
const ENDPOINTS: &str = r"
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: webhook, namespace: koordinator-system, labels: {kubernetes.io/service-name: koordinator-webhook-service}}
addressType: IPv4
ports: [{name: https, port: 9443}]
endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}]
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_is_inspected_on_the_embedded_server() {
    let Some(embedded) = Embedded::start(&folder("inspection")).await.unwrap() else { return };
    let reach = Reach::Service(embedded.port);
    Inspected { place: &embedded.place, kubeconfig: &embedded.kubeconfig, reach }.in_order().await.unwrap();
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_is_inspected_on_a_real_server() {
    let Some(real) = Real::start(&folder("real-inspection")).await.unwrap() else { return };
    let inspected = Inspected { place: &real.place, kubeconfig: &real.server.kubeconfig, reach: Reach::Loopback };
    inspected.in_order().await.unwrap();
}

struct Inspected<'a> {
    place: &'a Place,
    kubeconfig: &'a Path,
    reach: Reach,
}

impl Inspected<'_> {
    async fn in_order(&self) -> Result<()> {
        let place = self.place;
        install(place);
        place.run(&["create", "-f", "-"], Some(ENDPOINTS))?;
        place.run(&["create", "-f", "-"], Some(&NODE.replace("NAME", "inspected")))?;
        let (found, code) = self.doctor("lease,certificates,nodes").await?;
        ensure!(code == koordctl::FAILED, "{found:#?}");
        for problem in ["no koord-manager has led here", "its caBundle holds no certificate", "there is no NodeMetric"]
        {
            ensure!(found.iter().any(|finding| finding.contains(problem)), "{problem}: {found:#?}");
        }

        // While it works, there is nothing to find, and nothing that one more would write.
        let manager = self.manager().await?;
        place.configure(r#"{"colocation-config": "{\"enable\": true}"}"#)?;
        self.reports("inspected").await?;
        let silent = || async { Ok((self.doctor("").await?.0, self.plan().await?)) };
        let nothing = |(found, planned): &(Vec<String>, BTreeSet<Step>)| found.is_empty() && planned.is_empty();
        self.comes_to("nothing is wrong and nothing to write", silent, nothing).await?;
        let node = place.get("/api/v1/nodes/inspected")?;
        ensure!(node["status"]["allocatable"]["kubernetes.io/batch-cpu"].is_string(), "it has not worked: {node}");
        let before = self.revisions()?;

        // Afterwards both say what is missing.
        manager.stop().await?;
        place.run(&["create", "-f", "-"], Some(&NODE.replace("NAME", "inspected-too")))?;
        place.run(&["delete", "nodeslo", "inspected"], None)?;
        let (found, code) = self.doctor("lease,nodes").await?;
        ensure!(code == koordctl::FAILED, "{found:#?}");
        for problem in ["it has no holder", "inspected-too: there is no NodeMetric"] {
            ensure!(found.iter().any(|finding| finding.contains(problem)), "{problem}: {found:#?}");
        }
        let expected = [
            // Nothing is known of it, and that is written down too.
            ("change", "Node", "inspected-too"),
            ("create", "NodeMetric", "inspected-too"),
            ("create", "NodeSLO", "inspected"),
            ("create", "NodeSLO", "inspected-too"),
        ];
        let expected = expected.map(|(action, kind, name)| (action.to_owned(), kind.to_owned(), name.to_owned()));
        let planned = self.plan().await?;
        ensure!(planned == BTreeSet::from(expected), "{planned:#?}");
        ensure!(self.revisions()? == before, "who inspects writes nothing");

        // A certificate that nobody trusts any more is found, and the next manager repairs it.
        let secret = ["-n", NAMESPACE, "delete", "secret", "koordinator-webhook-certs"];
        place.run(&secret, None)?;
        let (found, _) = self.doctor("certificates").await?;
        // Entries with URLs may be served with certificates from anywhere, so the Secret is not missed there.
        let problem = match self.reach {
            Reach::Service(_) => "koordinator-webhook-certs",
            Reach::Loopback => "no answer from",
        };
        ensure!(found.iter().any(|finding| finding.contains(problem)), "{found:#?}");
        let manager = self.manager().await?;
        self.reports("inspected-too").await?;
        self.comes_to("all is well again", silent, nothing).await?;
        manager.stop().await
    }

    async fn manager(&self) -> Result<Installed> {
        let place = self.place;
        let process = Process::described(&place.admin, NAMESPACE, "koord-manager").await?;
        let mut manager = process.start(&place.admin, &place.config, self.reach).await?;
        manager.until("the webhooks are trusted", || async { Ok(place.trusted()) }).await?;
        manager.until_ready().await?;
        Ok(manager)
    }

    /// The node's koordlet reports, as soon as it is asked to.
    async fn reports(&self, node: &str) -> Result<()> {
        let usage = r#"{"resources": {"cpu": "2", "memory": "4Gi"}}"#;
        let now = SystemClock::shared().now();
        let status = format!(
            r#"{{"status": {{"updateTime": "{now}", "nodeMetric": {{"nodeUsage": {usage}, "systemUsage": {usage}}}}}}}"#
        );
        let patch = ["patch", "nodemetric", node, "--subresource=status", "--type=merge", "-p", &status];
        let shown = || async { Ok(self.place.run(&patch, None).is_ok()) };
        self.comes_to("the node has a NodeMetric", shown, |shown| *shown).await
    }

    async fn koordctl(&self, arguments: &[&str]) -> Result<Answer> {
        let line = ["koordctl"].iter().chain(arguments).copied().map(OsStr::new);
        let line = line.chain([OsStr::new("--kubeconfig"), self.kubeconfig.as_os_str()]);
        koordctl::run_on(koordctl::Cli::try_parse_from(line)?, koordctl::screen::Screen::ENDLESS).await
    }

    /// What is found, and the exit code; of these checks alone, where some are named.
    async fn doctor(&self, only: &str) -> Result<(Vec<String>, u8)> {
        let only = (!only.is_empty()).then(|| format!("--only={only}"));
        // The Service's name is none outside of a cluster.
        let at = match self.reach {
            Reach::Service(port) => Some(format!("--webhook-at=127.0.0.1:{port}")),
            Reach::Loopback => None,
        };
        let mut arguments = vec!["doctor", "-o", "json"];
        arguments.extend(only.iter().chain(&at).map(String::as_str));
        let Answer { text, code } = self.koordctl(&arguments).await?;
        let found: Value = serde_json::from_str(&text)?;
        let word = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        let shown = |finding| format!("{}: {}", word(finding, "object"), word(finding, "problem"));
        Ok((found["findings"].as_array().context("no findings")?.iter().map(shown).collect(), code))
    }

    async fn plan(&self) -> Result<BTreeSet<Step>> {
        let Answer { text, code } = self.koordctl(&["plan", "-o", "json"]).await?;
        let plan: Value = serde_json::from_str(&text)?;
        ensure!(plan["problems"] == Value::Array(Vec::new()), "{text}");
        let word = |write: &Value, field: &str| write[field].as_str().unwrap_or_default().to_owned();
        let step = |write| (word(write, "action"), word(write, "kind"), word(write, "name"));
        let steps: BTreeSet<Step> = plan["writes"].as_array().context("no writes")?.iter().map(step).collect();
        ensure!(code == u8::from(!steps.is_empty()), "code {code}: {text}");
        Ok(steps)
    }

    /// Revisions of what an inspection could have written.
    fn revisions(&self) -> Result<Vec<Value>> {
        let paths = [
            "/api/v1/nodes/inspected",
            "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/inspected",
            "/api/v1/namespaces/koordinator-system/configmaps/slo-controller-config",
            "/api/v1/namespaces/koordinator-system/secrets/koordinator-webhook-certs",
        ];
        paths.iter().map(|path| Ok(self.place.get(path)?["metadata"]["resourceVersion"].clone())).collect()
    }

    async fn comes_to<T: std::fmt::Debug, F: Future<Output = Result<T>>>(
        &self,
        what: &str,
        look: impl Fn() -> F,
        holds: impl Fn(&T) -> bool,
    ) -> Result<()> {
        let begin = Instant::now();
        loop {
            let seen = look().await?;
            if holds(&seen) {
                return Ok(());
            }
            ensure!(begin.elapsed() < Duration::from_secs(90), "it does not come true that {what}: {seen:#?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
