//! Whether koordlet reports from every node.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use koord_manager_assembly::GPU_SHARES;
use koord_program::{findings::Report, listing, names::few, obstacle::Obstacle};
use koord_resource::{Resource as _, Time, controller::ResourceKind};
use koord_types::{
    device::Device,
    node_metric::NodeMetric,
    resource_names::{GPU_CORE, GPU_SHARED},
    slo_config::{COLOCATION_CONFIG, ColocationConfig},
};
use serde_json::Value;

use crate::{
    Options,
    cluster::Cluster,
    webhooks::{self, Configuration},
};

pub(crate) async fn look(cluster: &Cluster, options: &Options<'_>, report: &mut Report) {
    let mut nodes = Vec::new();
    let path = ResourceKind::NODE.url_path("", None);
    let listed = listing::each(&cluster.client, &path, "", listing::Part::Metadata, |text| {
        let node: Value = serde_json::from_str(text)?;
        nodes.extend(node["metadata"]["name"].as_str().map(str::to_owned));
        Ok(())
    });
    if report.read(listed.await.map_err(|error| Obstacle::unlisted(&path, &error))).is_none() {
        return;
    }
    let mut reports: BTreeMap<String, Option<Timestamp>> = BTreeMap::new();
    let path = ResourceKind::of(&NodeMetric::INFO).url_path("", None);
    let listed = listing::each(&cluster.client, &path, "", listing::Part::Whole, |text| {
        let metric: Value = serde_json::from_str(text)?;
        if let Some(name) = metric["metadata"]["name"].as_str() {
            let time = metric["status"]["updateTime"].as_str().and_then(|time| time.parse().ok()).map(Time::at);
            reports.insert(name.to_owned(), time);
        }
        Ok(())
    });
    if report.read(listed.await.map_err(|error| Obstacle::unlisted(&path, &error))).is_none() {
        return;
    }
    look_at_shares_of_gpus(cluster, report).await;
    let limit = limit(cluster, options).await;
    let now = cluster.server_time.unwrap_or(cluster.now);
    let (mut absent, mut silent, mut old) = (Vec::new(), Vec::new(), Vec::new());
    for node in nodes {
        match reports.get(&node) {
            None => absent.push(node),
            Some(None) => silent.push(node),
            Some(Some(time)) if now.duration_since(*time) > limit => old.push(node),
            Some(Some(_)) => {}
        }
    }
    let koordlet =
        "see whether koordlet runs there: kubectl -n koordinator-system get pods -o wide -l koord-app=koordlet";
    if !absent.is_empty() {
        report.warning(
            format!("Node {}", few(&absent)),
            "there is no NodeMetric: koordlet has nothing to report into, and nothing is known of the node",
            "see whether koord-manager leads and runs the controller nodemetric: koordctl doctor --only lease; koordctl plan --controllers nodemetric",
        );
    }
    if !silent.is_empty() {
        report.warning(format!("NodeMetric {}", few(&silent)), "koordlet has never reported", koordlet);
    }
    if !old.is_empty() {
        report.warning(
            format!("NodeMetric {}", few(&old)),
            format!(
                "the last report is older than degradeTimeMinutes ({} min): batch and mid resources are withdrawn",
                limit.as_mins()
            ),
            koordlet,
        );
    }
}

/// Pods that request GPUs get a request for their parts from the webhook, which no node offers unless a gate is on: they would wait for ever.
async fn look_at_shares_of_gpus(cluster: &Cluster, report: &mut Report) {
    /// Nodes that are read; all have the resources that one koord-manager writes.
    const NODES_MAX: usize = 8;
    let completes_pods = webhooks::configurations(cluster).await.is_ok_and(|configurations| {
        let mut entries = configurations.iter().flat_map(Configuration::entries);
        entries.any(|entry| entry["name"] == "mpod-create.koordinator.sh")
    });
    if !completes_pods {
        return;
    }
    let mut with_gpus = Vec::new();
    let path = ResourceKind::of(&Device::INFO).url_path("", None);
    let listed = listing::each(&cluster.client, &path, "", listing::Part::Whole, |text| {
        let device: Value = serde_json::from_str(text)?;
        let mut devices = device["spec"]["devices"].as_array().into_iter().flatten();
        if devices.any(|device| device["type"] == "gpu") {
            with_gpus.extend(device["metadata"]["name"].as_str().map(str::to_owned));
        }
        Ok(())
    });
    if listed.await.is_err() {
        // That a definition is missing, or may not be read, is a finding of another check.
        return;
    }
    let mut lacking = Vec::new();
    for name in with_gpus.into_iter().take(NODES_MAX) {
        let Ok(Some(node)) = cluster.get(&ResourceKind::NODE.url_path("", Some(&name))).await else { continue };
        let offers = |resource: &str| !node["status"]["allocatable"][resource].is_null();
        if offers(GPU_SHARED) {
            return;
        }
        if offers(GPU_CORE) {
            lacking.push(name);
        }
    }
    if !lacking.is_empty() {
        report.warning(
            format!("Node {}", few(&lacking)),
            format!("it has GPUs and no {GPU_SHARED}, which koord-manager adds to pods that request GPUs: they cannot be placed"),
            format!("run koord-manager with --feature-gates={GPU_SHARES}=true"),
        );
    }
}

/// How old a report may be.
async fn limit(cluster: &Cluster, options: &Options<'_>) -> SignedDuration {
    let path = ResourceKind::CONFIG_MAP.url_path(options.config_namespace, Some(options.slo_config_name));
    // A configuration that cannot be read is a finding of another check.
    let object = cluster.get(&path).await.ok().flatten().unwrap_or_default();
    let text = object["data"][COLOCATION_CONFIG].as_str();
    let minutes = ColocationConfig::parse(text).ok().and_then(|config| config.cluster.degrade_time_minutes);
    SignedDuration::from_mins(minutes.unwrap_or(15).clamp(1, 525_600))
}
