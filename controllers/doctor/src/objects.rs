//! Objects that koord-manager sets aside: those that it cannot read, what it ignores on nodes, and quotas that
//! contradict their tree.

use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;
use koord_explain::quota::{Quota, Tree, contradiction};
use koord_manager_assembly::Checked;
use koord_program::{
    findings::Report,
    listing,
    obstacle::Obstacle,
    plan::{self, Recorded},
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    events::{Event, EventType},
};
use koord_types::quota::is_reserved;
use koord_webhook_handlers::Ctx;

use crate::{Options, cluster::Cluster};

pub(crate) async fn look(cluster: &Cluster, options: &Options<'_>, report: &mut Report) {
    let (core, recorded) = match caches(options, cluster.now) {
        Ok(caches) => caches,
        Err(error) => {
            return report.warning(
                "koord-manager",
                format!("its caches cannot be made: {error:#}"),
                "fix --feature-gates",
            );
        }
    };
    let mut tree = match Tree::empty(options.feature_gates) {
        Ok(tree) => tree,
        Err(error) => return report.warning("koord-manager", format!("{error:#}"), "fix --feature-gates"),
    };
    for (collection, watches) in plan::collections(&core) {
        let Some(kind) = watches.first().map(|watch| watch.kind) else { continue };
        // Pods are many, and the API server has checked what is read of them.
        if kind == ResourceKind::POD {
            continue;
        }
        let read = plan::list(&cluster.client, &collection, |text| {
            if kind.kind == "ElasticQuota" {
                // One that cannot be read is recorded by its cache.
                let _ = tree.add(kind.kind, serde_json::from_str(text)?);
            }
            plan::feed(&watches, text)
        });
        match read.await {
            // That a definition is missing is a finding of another check.
            Err(error) if listing::is_absent(&error) => {}
            read => drop(report.read(read.map_err(|error| Obstacle::unlisted(&collection.path, &error)))),
        }
    }
    for Event { kind, key, type_, reason, message, .. } in recorded.take() {
        // Keys of the configuration have a check of their own.
        if type_ == EventType::Normal || kind == ResourceKind::CONFIG_MAP {
            continue;
        }
        let namespace = if kind.namespaced { format!("-n {} ", key.namespace()) } else { String::new() };
        let problem = format!("{reason}: {message}");
        report.warning(
            format!("{} {key}", kind.kind),
            problem,
            format!("fix or delete it: kubectl {namespace}edit {}.{} {}", kind.plural, kind.group, key.name())
                .replace(". ", " "),
        );
    }
    // The scheduler has made those that nobody may change.
    for quota in tree.all().filter(|quota| !is_reserved(quota.name())) {
        let Some(denial) = contradiction(&tree, quota) else { continue };
        let remedy = denial.advice.map_or("see what surrounds it", |advice| advice.remedy);
        report.warning(
            format!("ElasticQuota {}", quota.key()),
            format!("as it is stored it contradicts its tree: {}", denial.message),
            format!("{remedy}; koordctl explain quota {} -n {}", Quota::name(quota), quota.namespace()),
        );
    }
}

/// The caches of a koord-manager, and the record of what they cannot decode.
fn caches(options: &Options<'_>, now: Timestamp) -> Result<(Core, Arc<Recorded>)> {
    let line = [
        "koord-manager".to_owned(),
        format!("--feature-gates={}", options.feature_gates),
        format!("--config-namespace={}", options.config_namespace),
        format!("--slo-config-name={}", options.slo_config_name),
    ];
    let checked: Checked =
        koord_manager_assembly::Options::from_arguments(line).and_then(koord_manager_assembly::Options::check)?;
    let (mut core, recorded) = plan::core("koordctl", now)?;
    koord_manager_assembly::add_controllers(&mut core, &checked)?;
    // Only its caches are wanted: what the handlers need to know is read as they read it.
    let _handlers = Ctx::watch(&mut core, |gate| checked.enabled(gate), checked.webhook_settings());
    Ok((core, recorded))
}
