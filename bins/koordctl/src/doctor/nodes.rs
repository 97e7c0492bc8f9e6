//! Whether koordlet reports from every node.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use koord_api::{
    node_metric::NodeMetric,
    slo_config::{COLOCATION_CONFIG, ColocationConfig},
};
use koord_resource::{Resource as _, Time, controller::ResourceKind};
use serde_json::Value;

use super::{cluster::Cluster, finding::Report, obstacle::Obstacle};
use crate::{cli::DoctorArgs, listing, names::few};

pub(super) async fn look(cluster: &Cluster, args: &DoctorArgs, report: &mut Report) {
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
    let limit = limit(cluster, args).await;
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

/// How old a report may be.
async fn limit(cluster: &Cluster, args: &DoctorArgs) -> SignedDuration {
    let path = ResourceKind::CONFIG_MAP
        .url_path(&args.configuration.config_namespace, Some(&args.configuration.slo_config_name));
    // A configuration that cannot be read is a finding of another check.
    let object = cluster.get(&path).await.ok().flatten().unwrap_or_default();
    let text = object["data"][COLOCATION_CONFIG].as_str();
    let minutes = ColocationConfig::parse(text).ok().and_then(|config| config.cluster.degrade_time_minutes);
    SignedDuration::from_mins(minutes.unwrap_or(15).clamp(1, 525_600))
}
