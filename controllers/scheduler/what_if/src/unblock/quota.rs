//! Quotas that a pod does not fit into.

use koord_resource::{Quantity, controller::ResourceKind};
use koord_runtime::key::ObjectKey;
use koord_scheduler_engine::Engine;
use koord_types::elastic_quota::ElasticQuota;
use serde_json::{Value, json};

use super::change::{Change, Edit, escaped};
use crate::service;

/// A quota that is short, by the words of the refusal.
struct Short<'a> {
    name: &'a str,
    resources: Vec<&'a str>,
    is_non_preemptible: bool,
}

impl<'a> Short<'a> {
    fn of(message: &'a str) -> Option<Self> {
        let between = |begin: &str, end: &str| Some(message.split_once(begin)?.1.split_once(end)?.0);
        let path = between("quotaNameTopo: [", "]").and_then(|path| path.split(' ').next());
        let name = path.or_else(|| between("quotaName: ", ","))?;
        let resources = between("exceedDimensions: [", "]")?.split(' ').collect();
        Some(Self { name, resources, is_non_preemptible: message.contains("non-preemptible") })
    }
}

/// The resources of which a quota has too little, by the words of the refusal.
pub(super) fn exceeded(message: &str) -> Vec<String> {
    let short = Short::of(message);
    short.into_iter().flat_map(|short| short.resources).map(str::to_owned).collect()
}

/// More of `max`, of `min`, and of both: as much as is used and requested.
pub(super) fn larger(engine: &Engine, request: &koord_resource::ResourceList, message: &str) -> Vec<Vec<Change>> {
    let Some(short) = Short::of(message) else { return Vec::new() };
    let summary = service(engine, "ElasticQuota", &["quotas", short.name]);
    let mut objects = engine.cluster().objects().of::<ElasticQuota>();
    let key = objects.find(|(key, _)| key.name() == short.name).map(|(key, _)| key.clone());
    let (Some(summary), Some(key)) = (summary, key) else { return Vec::new() };
    let used = if short.is_non_preemptible { &summary["nonPreemptibleUsed"] } else { &summary["used"] };
    let needed: Vec<(&str, Quantity)> = short
        .resources
        .iter()
        .map(|resource| {
            let used = amount(&used[*resource]);
            (*resource, request.get(resource).map_or(used.clone(), |request| used + request))
        })
        .collect();
    let bound = |field: &'static str| -> Option<Change> {
        let short = needed.iter().filter(|(resource, needed)| amount(&summary[field][*resource]) < *needed);
        let (edits, words): (Vec<Edit>, Vec<String>) = short
            .map(|(resource, needed)| {
                let now = amount(&summary[field][*resource]);
                (edit(&key, field, resource, needed), format!("{needed} of {resource} (it is {now})"))
            })
            .unzip();
        let text = format!("the {field} of quota {key} were {}", words.join(" and "));
        (!edits.is_empty()).then(|| Change::of("quota", text, edits).like(field))
    };
    let (max, min) = (bound("max").filter(|_| !short.is_non_preemptible), bound("min"));
    let both: Vec<Change> = max.iter().chain(&min).cloned().collect();
    let single = max.into_iter().chain(min).map(|one| vec![one]);
    single.chain((both.len() > 1).then_some(both)).collect()
}

fn edit(key: &ObjectKey, field: &str, resource: &str, amount: &Quantity) -> Edit {
    let path = format!("/spec/{field}/{}", escaped(resource));
    Edit { kind: ResourceKind::typed::<ElasticQuota>(), key: key.clone(), path, value: json!(amount.to_string()) }
}

fn amount(value: &Value) -> Quantity {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}
