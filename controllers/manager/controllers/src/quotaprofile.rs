//! Makes the root of a quota tree from what some nodes have together.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_resource::{
    Quantity, Resource as _, ResourceList, controller, controller::ResourceKind, go_json, quantity::Format,
};
use koord_runtime::{
    cache::{Cache, Change},
    controller::Controller,
    error::{Fault, ReconcileError},
    events::Event,
    key::ObjectKey,
    outcome::Outcome,
    store::Store,
    write::{Action, Write},
};
use koord_scheduling::Selector;
use koord_schema::patch::merge;
use koord_types::{
    elastic_quota::{ElasticQuota, ElasticQuotaSpec},
    go_text,
    protocol::Text as _,
    quota::{IS_ROOT, PROFILE, RESOURCE_KEYS, TOTAL_RESOURCE, TREE_ID, UNSCHEDULABLE_RESOURCE, tree_id},
};
use serde_json::{Map, Value, json, value::RawValue};

use crate::view::{ElasticQuotaView, NodeView, QuotaProfileView};

/// The component of its events.
pub const COMPONENT: &str = "quotaprofile-controller";

/// How often the nodes are looked at. QUIRK: their changes trigger no reconcile (spec/manager.md 4.4, as recorded in
/// `quota-profile/node-added`), so that a tree's root changes at most this often.
const ROUND: Duration = Duration::from_secs(10);

/// The bound of a root: as much as the scheduler can still multiply by a weight.
const UNBOUNDED: i64 = i64::MAX / 2000;

/// Writes the root of the quota tree of each ElasticQuotaProfile.
#[controller(
    name = "quotaprofile",
    for(profiles, predicate = spec_changed, writes = [patch]),
    reads(quotas, writes = [create, patch]),
    reads(nodes),
)]
pub struct QuotaProfileController {
    nodes: Arc<Store<NodeView>>,
    profiles: Arc<Store<QuotaProfileView>>,
    quotas: Arc<Store<ElasticQuotaView>>,
}

/// Whether the profile is new or says something else. Of its other fields the next round learns, as in the original.
fn spec_changed(change: &Change<QuotaProfileView>) -> bool {
    change.matters(|old, new| new.spec != old.spec) && change.new.is_some()
}

/// What nodes have together.
#[derive(Debug, Default, PartialEq)]
struct Totals {
    all: ResourceList,
    /// Of those that take no pods now.
    unschedulable: ResourceList,
}

impl Totals {
    fn of(nodes: &Cache<NodeView>, selector: &Selector) -> Self {
        let mut totals = Self::default();
        for (_, entry) in nodes.iter() {
            let node = &entry.value;
            if !selector.selects(|key| node.labels.get(key)) {
                continue;
            }
            let Some(allocatable) = node.allocatable() else { continue };
            totals.all.add(&allocatable);
            if node.unschedulable || !node.ready {
                totals.unschedulable.add(&allocatable);
            }
        }
        totals
    }

    /// The share that the profile promises. QUIRK: a ratio that counts as 1 brings amounts into the form of their resource
    /// too; without a ratio they stay as nodes have them.
    fn promised_by(self, profile: &QuotaProfileView) -> Self {
        if profile.spec.resource_ratio.is_none() { self } else { self.scaled(ratio(profile)) }
    }

    fn scaled(self, ratio: f64) -> Self {
        let scaled = |amounts: ResourceList| -> ResourceList {
            let amounts = amounts.iter().map(|(name, amount)| {
                let scaled = match name {
                    "cpu" => Quantity::from_milli(amount.milli_scaled_by(ratio).milli_value(), Format::DecimalSI),
                    "memory" => Quantity::bytes(amount.scaled_by(ratio).value()),
                    _ => Quantity::new(amount.scaled_by(ratio).value(), Format::DecimalSI),
                };
                (name, scaled)
            });
            amounts.collect()
        };
        Self { all: scaled(self.all), unschedulable: scaled(self.unschedulable) }
    }
}

/// The share that a profile promises; what is no share above 0 and at most 1 is all of it.
fn ratio(profile: &QuotaProfileView) -> f64 {
    let ratio = profile.spec.resource_ratio.as_deref().and_then(go_text::parse_float);
    ratio.filter(|ratio| *ratio > 0.0 && *ratio <= 1.0).unwrap_or(1.0)
}

/// The resources that a root bounds. QUIRK: the annotation is decoded over the default list, item by item: one that is
/// no text leaves what stood there, and nothing beyond the default. What is no list changes nothing.
fn resource_keys(text: Option<&str>) -> Vec<String> {
    let mut keys = vec!["cpu".to_owned(), "memory".to_owned()];
    let Some(text) = text.filter(|text| go_json::check(text).is_ok()) else { return keys };
    let Ok(items) = serde_json::from_str::<Option<Vec<&RawValue>>>(text) else { return keys };
    let items = items.unwrap_or_default();
    keys.resize(items.len(), String::new());
    for (key, item) in keys.iter_mut().zip(items) {
        if let Ok(Some(name)) = go_json::from_str(item.get()) {
            *key = name;
        }
    }
    keys
}

/// The promise and the bound of a root.
fn spec(profile: &QuotaProfileView, total: &ResourceList) -> ElasticQuotaSpec {
    let mut spec = ElasticQuotaSpec::default();
    for key in resource_keys(profile.annotations.get(RESOURCE_KEYS.name())) {
        spec.max.insert(key.clone(), Quantity::new(UNBOUNDED, Format::DecimalSI));
        let promised = total.amount(&key).clone();
        spec.min.insert(key, promised);
    }
    spec
}

/// What a quota made from a profile has: labels, annotations, and its spec.
struct Root {
    labels: BTreeMap<String, String>,
    annotations: [(&'static str, ResourceList); 2],
    spec: ElasticQuotaSpec,
}

impl Root {
    fn of(key: &ObjectKey, profile: &QuotaProfileView, tree: &str, totals: Totals) -> Self {
        let mut labels = BTreeMap::from([(PROFILE.to_owned(), key.name().to_owned())]);
        labels.extend(profile.spec.quota_labels.clone());
        labels.insert(TREE_ID.to_owned(), tree.to_owned());
        labels.insert(IS_ROOT.name().to_owned(), "true".to_owned());
        let spec = spec(profile, &totals.all);
        let annotations = [(TOTAL_RESOURCE.name(), totals.all), (UNSCHEDULABLE_RESOURCE.name(), totals.unschedulable)];
        Self { labels, annotations, spec }
    }

    fn object(&self, key: &ObjectKey) -> Value {
        let annotations: BTreeMap<&str, String> =
            self.annotations.iter().map(|(name, amounts)| (*name, amounts.write())).collect();
        json!({
            "apiVersion": ElasticQuota::INFO.api_version(), "kind": ElasticQuota::INFO.kind,
            "metadata": {"name": key.name(), "namespace": key.namespace(), "labels": self.labels, "annotations": annotations},
            "spec": self.spec,
        })
    }

    /// What differs from a quota that exists; amounts in another form are the same.
    fn difference(&self, quota: &ElasticQuotaView) -> Map<String, Value> {
        let (mut labels, mut annotations, mut patch) = (Map::new(), Map::new(), Map::new());
        for (name, value) in &self.labels {
            if quota.labels.get(name) != Some(value) {
                labels.insert(name.clone(), value.as_str().into());
            }
        }
        for (name, amounts) in &self.annotations {
            let known = quota.annotations.get(name).and_then(|text| ResourceList::read(text).ok());
            if known.as_ref() != Some(amounts) {
                annotations.insert((*name).to_owned(), amounts.write().into());
            }
        }
        let parts = [("labels", labels), ("annotations", annotations)].into_iter().filter(|(_, part)| !part.is_empty());
        let metadata: Map<String, Value> = parts.map(|(name, part)| (name.to_owned(), part.into())).collect();
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), metadata.into());
        }
        let stored = quota.spec.clone().unwrap_or_default();
        if stored != self.spec
            && let Some(spec) = merge::diff(&json!(stored), &json!(self.spec))
        {
            patch.insert("spec".to_owned(), spec);
        }
        patch
    }
}

impl Controller for QuotaProfileController {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let mut outcome = Outcome::settled();
        let (nodes, profiles, quotas) = (self.nodes.read(), self.profiles.read(), self.quotas.read());
        // QUIRK: the quota of a profile that is gone stays, as recorded (`quota-profile/profile-deleted`).
        let Some(entry) = profiles.get(key.as_str()) else { return Ok(outcome) };
        let profile = &entry.value;
        let known = profile.labels.get(TREE_ID).filter(|tree| !tree.is_empty());
        let tree = known.map_or_else(|| tree_id(key.namespace(), key.name()), str::to_owned);
        if known.is_none() && !entry.deleting {
            let patch = json!({"labels": {TREE_ID: tree}});
            outcome.change(&profiles, key, "", Map::from_iter([("metadata".to_owned(), patch)]));
        }
        let quota = ObjectKey::new(key.namespace(), &profile.spec.quota_name);
        match Selector::new(&profile.spec.node_selector) {
            Err(error) => {
                let message = format!("spec.nodeSelector: {error}; the quota {} is left as it is", quota.name());
                outcome.event(Event::warning((key, entry), "SelectingNodes", "InvalidNodeSelector", message));
            }
            Ok(selector) => {
                let totals = Totals::of(&nodes, &selector).promised_by(profile);
                let root = Root::of(key, profile, &tree, totals);
                if let Some(unread) = quotas.quarantined(quota.as_str()) {
                    let message = format!("ElasticQuota {quota} cannot be read ({}); fix or delete it", unread.reason);
                    // No change of a quota wakes its profile, so what was repaired is found by looking again.
                    return Err(ReconcileError::new(Fault::User, message).after(ROUND));
                }
                if let Some(known) = quotas.get(quota.as_str()) {
                    if !known.deleting {
                        outcome.change(&quotas, &quota, "", root.difference(&known.value));
                    }
                } else {
                    let action = Action::Create(root.object(&quota));
                    let kind = ResourceKind::of(&ElasticQuota::INFO);
                    outcome.plan.push(Write { kind, key: quota, action });
                }
                outcome.requeue_after(ROUND);
            }
        }
        Ok(outcome)
    }

    fn failed(&self, key: &ObjectKey, write: &Write, error: &ReconcileError) -> Option<Event> {
        let (reason, verb) = match write.action {
            _ if write.kind.plural != ElasticQuota::INFO.plural => return None,
            Action::Create(_) => ("CreateQuotaFailed", "create"),
            Action::Patch { .. } => ("UpdateQuotaFailed", "update"),
            _ => return None,
        };
        let profiles = self.profiles.read();
        let profile = profiles.get(key.as_str())?;
        Some(Event::warning((key, profile), "WritingQuota", reason, format!("failed to {verb} quota, err: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::cache::Applied;

    use super::*;

    fn list(amounts: &Value) -> ResourceList {
        serde_json::from_value(amounts.clone()).unwrap()
    }

    #[test]
    fn shares_are_cut_and_keep_the_form_of_their_resource() {
        let all = list(&json!({"cpu": "20", "memory": "2000", "ephemeral-storage": "2001"}));
        let scaled = Totals { all, unschedulable: ResourceList::new() }.scaled(0.9);
        assert_eq!(scaled.all.write(), r#"{"cpu":"18","ephemeral-storage":"1800","memory":"1800"}"#);
        let all = list(&json!({"cpu": "10501m", "memory": "1Gi", "nvidia.com/gpu": "7"}));
        let scaled = Totals { unschedulable: all, all: ResourceList::new() }.scaled(0.33);
        // 10501 × 0.33 = 3465.33; 1073741824 × 0.33 = 354334801.92; 7 × 0.33 = 2.31.
        assert_eq!(scaled.unschedulable.write(), r#"{"cpu":"3465m","memory":"354334801","nvidia.com/gpu":"2"}"#);
    }

    #[test]
    fn a_ratio_that_counts_as_1_changes_the_form() {
        let amounts = json!({"cpu": "2e3", "memory": "64G", "ephemeral-storage": "100Gi"});
        for (ratio, written) in [
            (Value::Null, r#"{"cpu":"2e3","ephemeral-storage":"100Gi","memory":"64G"}"#),
            (json!("1"), r#"{"cpu":"2k","ephemeral-storage":"107374182400","memory":"62500000Ki"}"#),
            (json!("abc"), r#"{"cpu":"2k","ephemeral-storage":"107374182400","memory":"62500000Ki"}"#),
        ] {
            let profile = profile(&json!({}), &json!({"resourceRatio": ratio}));
            let totals = Totals { all: list(&amounts), unschedulable: list(&amounts) }.promised_by(&profile);
            assert_eq!((totals.all.write().as_str(), totals.unschedulable.write().as_str()), (written, written));
        }
    }

    fn profile(annotations: &Value, spec: &Value) -> Arc<QuotaProfileView> {
        let mut object = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"},
                                "spec": {"quotaName": "q", "nodeSelector": {}}});
        object["metadata"]["annotations"] = annotations.clone();
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let mut cache = Cache::<QuotaProfileView>::default();
        cache.upsert(&object.to_string()).unwrap();
        Arc::clone(&cache.get("p").unwrap().value)
    }

    #[test]
    fn only_what_a_profile_says_triggers_a_reconcile() {
        let mut cache = Cache::<QuotaProfileView>::default();
        let mut triggers = |revision: &str, labels: Value, quota: &str| {
            let metadata = json!({"name": "p", "uid": "u", "resourceVersion": revision, "labels": labels});
            let spec = json!({"quotaName": quota, "nodeSelector": {}});
            let applied = cache.upsert(&json!({"metadata": metadata, "spec": spec}).to_string()).unwrap().1;
            matches!(applied, Applied::Changed(change) if spec_changed(&change))
        };
        assert!(triggers("1", json!({}), "q"));
        assert!(!triggers("2", json!({"a": "b"}), "q"));
        assert!(triggers("3", json!({"a": "b"}), "r"));
    }

    #[test]
    fn what_is_no_share_above_0_and_at_most_1_is_all() {
        for (text, share) in [
            (json!("0.9"), 90),
            (json!(".5"), 50),
            (json!("1e-1"), 10),
            (json!("1"), 100),
            (json!("1.01"), 100),
            (json!("0"), 100),
            (json!("-0.5"), 100),
            (json!("50%"), 100),
            (json!(" 0.5"), 100),
            (json!("NaN"), 100),
            (json!("Inf"), 100),
            (json!(""), 100),
            (Value::Null, 100),
        ] {
            let share_of = ratio(&profile(&json!({}), &json!({"resourceRatio": text})));
            assert_eq!((share_of * 100.0).round() as i64, share, "{text}");
        }
    }

    #[test]
    fn a_quota_promises_what_the_annotation_lists() {
        let total = list(&json!({"cpu": "20", "memory": "2000", "nvidia.com/gpu": "8"}));
        let promised = |annotations: Value| {
            let spec = spec(&profile(&annotations, &json!({})), &total);
            let names = |list: &ResourceList| list.names().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(names(&spec.min), names(&spec.max));
            assert!(spec.max.iter().all(|(_, bound)| bound.value() == 4_611_686_018_427_387));
            spec.min.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(promised(json!({})), "cpu=20 memory=2k");
        for (keys, amounts) in [
            (r#"["nvidia.com/gpu","fpga"]"#, "fpga=0 nvidia.com/gpu=8"),
            (r#"["cpu","cpu"]"#, "cpu=20"),
            ("[]", ""),
            ("null", ""),
            ("", "cpu=20 memory=2k"),
            ("{}", "cpu=20 memory=2k"),
            (r#""cpu""#, "cpu=20 memory=2k"),
            (r#"["nvidia.com/gpu"#, "cpu=20 memory=2k"),
            (r#"["memory",5]"#, "memory=2k"),
            ("[5]", "cpu=20"),
            (r#"["nvidia.com/gpu",5]"#, "memory=2k nvidia.com/gpu=8"),
            ("[null]", "cpu=20"),
            (r#"["cpu","memory","nvidia.com/gpu",{}]"#, "=0 cpu=20 memory=2k nvidia.com/gpu=8"),
            (r#"[{},[],"nvidia.com/gpu"]"#, "cpu=20 memory=2k nvidia.com/gpu=8"),
        ] {
            assert_eq!(promised(json!({ RESOURCE_KEYS.name(): keys })), amounts, "{keys:?}");
        }
    }

    #[test]
    fn the_same_amounts_in_another_form_are_no_difference() {
        let mut cache = Cache::<ElasticQuotaView>::default();
        let root = Root {
            labels: BTreeMap::new(),
            annotations: [("a", list(&json!({"cpu": "1"}))), ("b", ResourceList::new())],
            spec: ElasticQuotaSpec { min: list(&json!({"memory": "1Gi"})), max: ResourceList::new() },
        };
        let mut object = json!({
            "metadata": {"name": "q", "uid": "u", "resourceVersion": "1", "annotations": {"a": r#"{"cpu":"1000m"}"#, "b": "{}"}},
            "spec": {"min": {"memory": "1073741824"}},
        });
        let mut difference = |object: &Value, revision: &str| {
            let mut object = object.clone();
            object["metadata"]["resourceVersion"] = revision.into();
            cache.upsert(&object.to_string()).unwrap();
            Value::Object(root.difference(&cache.get("q").unwrap().value))
        };
        assert_eq!(difference(&object, "1"), json!({}));
        object["spec"] = json!({"min": {"cpu": "1"}, "max": {"cpu": "2"}});
        assert_eq!(difference(&object, "2"), json!({"spec": {"min": {"cpu": null, "memory": "1Gi"}, "max": null}}));
    }
}
