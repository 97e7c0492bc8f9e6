//! Whether one descheduler evicts, and whether it evicts from nodes on which the scheduler places pods.

mod installed;
mod thresholds;

use std::collections::{BTreeMap, BTreeSet};

use koord_config::Kind;
use koord_program::{findings::Report, listing, names::few, obstacle::Obstacle};
use koord_resource::controller::ResourceKind;
use serde_json::Value;

use self::installed::{Evictors, Program, Workload};
use crate::{cluster::Cluster, lease};

const DEPLOYMENT: ResourceKind =
    ResourceKind { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true };
const CRON_JOB: ResourceKind =
    ResourceKind { group: "batch", version: "v1", kind: "CronJob", plural: "cronjobs", namespaced: true };
/// ConfigMaps that are read: a scheduler and a descheduler have one each.
const CONFIG_MAPS_MAX: usize = 16;

/// A configuration of a component, and the ConfigMap that holds it.
struct Configured {
    config_map: String,
    kind: Kind,
    document: Value,
}

pub(crate) async fn look(cluster: &Cluster, report: &mut Report) {
    let mut workloads = Vec::new();
    for kind in [DEPLOYMENT, CRON_JOB] {
        let path = kind.url_path("", None);
        let listed = listing::each(&cluster.client, &path, "", listing::Part::Whole, |text| {
            workloads.extend(Workload::of(kind.kind, &serde_json::from_str(text)?));
            Ok(())
        });
        match listed.await {
            Err(error) if listing::is_absent(&error) => {}
            listed => drop(report.read(listed.map_err(|error| Obstacle::unlisted(&path, &error)))),
        }
    }
    let configured = configurations(&workloads, cluster, report).await;
    look_at_evictors(&workloads, &configured, cluster, report).await;
    look_at_thresholds(&configured, report);
}

/// Two deschedulers know nothing of each other's evictions.
async fn look_at_evictors(
    workloads: &[Workload],
    configured: &BTreeMap<usize, Vec<Configured>>,
    cluster: &Cluster,
    report: &mut Report,
) {
    let mut evictors = Evictors::default();
    for (index, workload) in workloads.iter().enumerate() {
        let documents = configured.get(&index).into_iter().flatten();
        evictors.add(
            workload,
            documents.filter(|configured| configured.kind == Kind::Descheduler).map(|found| &found.document),
        );
    }
    let now = cluster.server_time.unwrap_or(cluster.now);
    for name in installed::LEASES {
        for lease in lease::leases_of(name, cluster, report).await.unwrap_or_default() {
            if lease.is_held(now) {
                evictors.add_lease(&lease.namespace, name, &lease.holder);
            }
        }
    }
    let names = evictors.names();
    if names.len() > 1 {
        report.warning(
            few(&names),
            format!("{} deschedulers evict independently of each other: limits hold for each alone, and one undoes what the other does", names.len()),
            "keep one of them, and stop the others: kubectl scale --replicas=0, or kubectl patch cronjob -p '{\"spec\":{\"suspend\":true}}'; koordctl convert makes a DeschedulerConfiguration of a policy of kubernetes-sigs/descheduler",
        );
    }
}

fn look_at_thresholds(configured: &BTreeMap<usize, Vec<Configured>>, report: &mut Report) {
    let of_kind = |kind: Kind| configured.values().flatten().filter(move |configured| configured.kind == kind);
    for scheduler in of_kind(Kind::Scheduler) {
        for descheduler in of_kind(Kind::Descheduler) {
            for found in thresholds::contradictions(&scheduler.document, &descheduler.document) {
                report.warning(
                    format!("ConfigMap {}", descheduler.config_map),
                    format!("{} (ConfigMap {})", found.problem, scheduler.config_map),
                    found.remedy,
                );
            }
        }
    }
}

/// The configurations in the ConfigMaps that workloads mount, by the number of the workload. What is wrong with one is for `koordctl lint`.
async fn configurations(
    workloads: &[Workload],
    cluster: &Cluster,
    report: &mut Report,
) -> BTreeMap<usize, Vec<Configured>> {
    let mut found: BTreeMap<usize, Vec<Configured>> = BTreeMap::new();
    let mut read = BTreeSet::new();
    for (index, workload) in
        workloads.iter().enumerate().filter(|(_, workload)| workload.program != Program::KubernetesSigs)
    {
        for name in &workload.config_maps {
            if read.len() >= CONFIG_MAPS_MAX || !read.insert((&workload.namespace, name)) {
                continue;
            }
            let object = cluster.get(&ResourceKind::CONFIG_MAP.url_path(&workload.namespace, Some(name))).await;
            let Some(Some(object)) = report.read(object) else { continue };
            for (_, text) in object["data"].as_object().into_iter().flatten() {
                let document = text.as_str().and_then(|text| koord_resource::yaml::parse(text).ok());
                let Some((document, kind)) = document.and_then(|document| {
                    Some((Kind::of(&document)?, document)).map(|(kind, document)| (document, kind))
                }) else {
                    continue;
                };
                let config_map = format!("{}/{name}", workload.namespace);
                found.entry(index).or_default().push(Configured { config_map, kind, document });
            }
        }
    }
    found
}
