//! `/mutate-reservation`: new reservations get what the ClusterColocationProfiles that match their labels say.
//!
//! What concerns the pod (scheduler and priority class) goes to the template. Resources are not translated.

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::LabelSelector};
use koord_profile::{Matched, POD_TEMPLATE, Profile, Texts, apply, typed_patch};
use koord_resource::{
    Duration, ResourceList, Time,
    admission::{Denial, Operation, Patch, Request, Stopwatch, Verdict, text},
    field::Path,
};
use koord_schema::patch::{json, strategic};
use koord_types::reservation::Reservation;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ReservationView, go_type::RESERVATION, merge::ReservationNode};
use crate::{Ctx, decode, profile};

/// Applies profiles to new Reservations.
#[koord_resource::admission(
    declared = Reservation::MUTATING,
    within = Ctx::reservations,
    rbac(group = "config.koordinator.sh", resource = "clustercolocationprofiles", verbs = [list, watch]),
    rbac(group = "scheduling.k8s.io", resource = "priorityclasses", verbs = [list, watch]),
)]
pub fn mutate_reservation(request: &Request<'_>, view: ReservationView<'_>) -> Verdict {
    let mut watch = Stopwatch::default();
    watch.begin("ClusterColocationProfile");
    let mut overridden = Vec::new();
    let verdict = Verdict::from(mutate(request, view, &mut overridden));
    Verdict { steps: watch.stop(), warnings: overridden, ..verdict }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct View<'a> {
    #[serde(borrow, deserialize_with = "text")]
    api_version: std::borrow::Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<MetadataView<'a>>,
    #[serde(borrow)]
    spec: Option<SpecView<'a>>,
    #[serde(borrow)]
    status: Option<StatusView<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetadataView<'a> {
    #[serde(borrow, deserialize_with = "text")]
    name: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    labels: Texts<'a>,
    #[serde(borrow)]
    annotations: Texts<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecView<'a> {
    template: Option<TemplateView>,
    // Only their types matter: what they are, and what a patch makes of them.
    owners: Option<Vec<Option<OwnerView>>>,
    #[serde(borrow)]
    taints: Option<Vec<Option<TaintView<'a>>>>,
    expires: Option<Time>,
    #[serde(borrow)]
    pre_allocation_policy: Option<PreAllocationView<'a>>,
    allocate_once: Option<bool>,
    pre_allocation: Option<bool>,
    unschedulable: Option<bool>,
    #[serde(borrow, deserialize_with = "text")]
    allocate_policy: std::borrow::Cow<'a, str>,
    ttl: Option<Duration>,
}

/// Of `spec.owners`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OwnerView {
    object: Option<ObjectReference>,
    controller: Option<Map<String, Value>>,
    label_selector: Option<LabelSelector>,
}

/// Of `spec.taints`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TaintView<'a> {
    #[serde(borrow, deserialize_with = "text")]
    key: std::borrow::Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    value: std::borrow::Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    effect: std::borrow::Cow<'a, str>,
}

/// Of `spec.preAllocationPolicy`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PreAllocationView<'a> {
    #[serde(borrow, deserialize_with = "text")]
    mode: std::borrow::Cow<'a, str>,
    enable_multiple: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusView<'a> {
    #[serde(borrow, deserialize_with = "text")]
    phase: std::borrow::Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    node_name: std::borrow::Cow<'a, str>,
    allocatable: Option<ResourceList>,
    allocated: Option<ResourceList>,
}

/// A template, which must be one of a pod.
#[derive(Default, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
struct TemplateView {
    has_spec: bool,
}

impl TryFrom<Map<String, Value>> for TemplateView {
    type Error = String;

    fn try_from(template: Map<String, Value>) -> Result<Self, String> {
        let has_spec = template.get("spec").is_some_and(|spec| !spec.is_null());
        koord_profile::type_error(&template, POD_TEMPLATE).map_or(Ok(Self { has_spec }), Err)
    }
}

/// `overridden` takes what profiles overwrite, where that is to be reported.
fn mutate(request: &Request<'_>, view: ReservationView<'_>, overridden: &mut Vec<String>) -> Result<Patch, Denial> {
    if !request.sub_resource.is_empty() || request.resource.resource != "reservations" {
        return Ok(Patch::default());
    }
    let reservation: View<'_> = decode::object(request.object)?;
    decode::kind(
        &reservation.api_version,
        &reservation.kind,
        ("scheduling.koordinator.sh/v1alpha1", "Reservation"),
        "*v1alpha1.Reservation",
    )?;
    let (Operation::Create, Some(object)) = (request.operation, request.object) else { return Ok(Patch::default()) };
    let metadata = reservation.metadata.unwrap_or_default();
    let (labels, name) = (metadata.labels, metadata.name.as_ref());
    let matched = koord_profile::matching(&view.profiles.read(), &labels);
    let before: Value = decode::text(object.get())?;
    let mut after = before.clone();
    let mut applied = Matched::new();
    for profile in matched {
        if profile::drawn(&profile, request, "", name)? {
            after = changed_by(&profile, &after, view)?;
            applied.push(profile);
        }
    }
    if view.warns {
        *overridden = profile::warnings(&labels, &metadata.annotations, &[], &applied);
    }
    Ok(Patch::between(&before, &after)?)
}

fn changed_by(profile: &Profile, reservation: &Value, view: ReservationView<'_>) -> Result<Value, Denial> {
    let broken = |denial: Denial| Denial::internal(denial.message);
    let text = reservation.to_string();
    let decoded: View<'_> = decode::text(&text).map_err(broken)?;
    let mut patch = Patch::default();
    let (root_metadata, spec) = (Path::root("metadata"), Path::root("spec"));
    let has_metadata = decoded.metadata.is_some();
    let mut metadata = decoded.metadata.unwrap_or_default();
    apply(profile, &mut metadata.labels, &mut metadata.annotations);
    if !(has_metadata || metadata.labels.unchanged() && metadata.annotations.unchanged()) {
        patch.add(&root_metadata, &Map::new())?;
    }
    metadata.labels.write(&root_metadata.child("labels"), &mut patch)?;
    metadata.annotations.write(&root_metadata.child("annotations"), &mut patch)?;

    if let Some(template) = decoded.spec.and_then(|spec| spec.template) {
        let class = profile::priority_class(view.priority_classes, profile)?;
        let at = spec.child("template");
        let at = at.child("spec");
        let scheduler = profile.spec.scheduler_name.as_str();
        if !template.has_spec && (class.is_some() || !scheduler.is_empty()) {
            patch.add(&at, &Map::new())?;
        }
        if !scheduler.is_empty() {
            patch.add(&at.child("schedulerName"), scheduler)?;
        }
        if let Some(class) = class {
            patch.add(&at.child("priorityClassName"), &profile.spec.priority_class_name)?;
            patch.add(&at.child("priority"), &class.value)?;
            patch.add(&at.child("preemptionPolicy"), &class.preemption_policy)?;
        }
    }
    let mut changed = reservation.clone();
    if !patch.is_empty() {
        let patch = serde_json::from_slice(patch.as_bytes())?;
        changed = json::apply(changed, &patch).map_err(|error| Denial::internal(error.to_string()))?;
    }
    let Some(own) = &profile.spec.patch else { return Ok(changed) };
    let own = typed_patch(own, RESERVATION, &ReservationNode::Own);
    let merged =
        strategic::apply(changed, &own, &ReservationNode::Own).map_err(|error| Denial::internal(error.to_string()))?;
    decode::text::<View<'_>>(&merged.to_string()).map_err(broken)?;
    Ok(with_canonical_ttl(merged, reservation))
}

/// A duration that a patch brought is written as Go writes durations.
fn with_canonical_ttl(mut merged: Value, before: &Value) -> Value {
    const TTL: &str = "/spec/ttl";
    if merged.pointer(TTL) != before.pointer(TTL)
        && let Some(ttl) = merged.pointer_mut(TTL)
        && let Some(duration) = ttl.as_str().and_then(|text| text.parse::<Duration>().ok())
    {
        *ttl = duration.to_string().into();
    }
    merged
}

#[cfg(test)]
mod tests {
    use koord_resource::admission::GroupVersionResource;
    use serde_json::{json, value::RawValue};

    use super::*;

    /// The answer about a new reservation where one profile applies to all.
    fn created(reservation: &Value, profile: &Value) -> Verdict {
        let ctx = Ctx::detached(|_| false);
        let profile = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": profile});
        ctx.put("ClusterColocationProfile", &profile.to_string()).unwrap();
        let object = RawValue::from_string(reservation.to_string()).unwrap();
        let resource = GroupVersionResource { resource: "reservations".into(), ..GroupVersionResource::default() };
        let request = Request { operation: Operation::Create, object: Some(&object), resource, ..Request::default() };
        (MUTATE_RESERVATION.call)(&request, &ctx)
    }

    #[test]
    fn a_ttl_that_is_no_duration_refuses_the_reservation() {
        let denial = |ttl: Value| {
            let reservation = json!({"metadata": {"name": "r"}, "spec": {"ttl": ttl}});
            created(&reservation, &json!({})).denial.map(|denial| (denial.code, denial.message))
        };
        let refused = |message: &str| Some((400, message.to_owned()));
        assert_eq!(denial(json!("soon")), refused(r#"time: invalid duration "soon""#));
        assert_eq!(denial(json!("5")), refused(r#"time: missing unit in duration "5""#));
        assert_eq!(denial(json!("1d")), refused(r#"time: unknown unit "d" in duration "1d""#));
        assert_eq!(denial(json!("")), refused(r#"time: invalid duration """#));
        assert_eq!([json!("0"), json!("24h"), Value::Null].map(denial), [None, None, None]);
    }

    #[test]
    fn without_a_template_no_priority_class_is_needed() {
        let profile = json!({"labels": {"a": "b"}, "priorityClassName": "missing"});
        let denial = |spec: Value| created(&json!({"metadata": {"name": "r"}, "spec": spec}), &profile).denial;
        assert_eq!(denial(json!({})), None);
        let refusal = denial(json!({"template": {}})).unwrap();
        assert_eq!(
            (refusal.code, refusal.message.as_str()),
            (500, r#"PriorityClass.scheduling.k8s.io "missing" not found"#)
        );
    }

    #[test]
    fn a_value_of_another_type_refuses_the_reservation_wherever_it_is() {
        let code = |reservation: Value| created(&reservation, &json!({})).denial.map(|denial| denial.code);
        for spec in [
            json!({"expires": "soon"}),
            json!({"owners": [5]}),
            json!({"owners": [{"labelSelector": {"matchLabels": []}}]}),
            json!({"taints": [{"key": 1}]}),
            json!({"preAllocationPolicy": "Cluster"}),
            json!({"template": "pod"}),
            json!({"template": {"spec": {"containers": [{"name": "c", "image": 5}]}}}),
        ] {
            assert_eq!(code(json!({ "spec": spec })), Some(400), "{spec}");
        }
        assert_eq!(code(json!({"status": {"phase": 5}})), Some(400));
        let denial = |reservation: Value| created(&reservation, &json!({})).denial.unwrap();
        for malformed in [
            json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "abc"}}}]}}}}),
            json!({"status": {"allocatable": {"cpu": "abc"}}}),
            json!({"status": {"allocated": {"cpu": true}}}),
        ] {
            let message = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
            let Denial { code, message: told, .. } = denial(malformed.clone());
            assert_eq!((code, told.as_str()), (400, message), "{malformed}");
        }
        let spec = json!({"expires": "2026-01-02T03:04:05Z", "owners": [null, {"object": null}], "taints": [{"key": "a"}],
            "template": {"metadata": null, "spec": {"containers": [{"name": "c"}]}}, "preAllocationPolicy": null});
        assert_eq!(code(json!({"spec": spec, "status": {"phase": "Pending"}})), None);
    }

    #[test]
    fn a_reservation_that_never_expires_may_say_so_by_the_last_time_that_can_be_written() {
        let reservation = json!({"metadata": {"name": "r"}, "spec": {"expires": "9999-12-31T23:59:59Z"}});
        let profile = json!({"patch": {"spec": {"unschedulable": true}}});
        let verdict = created(&reservation, &profile);
        assert_eq!(verdict.denial, None);
        let operations = serde_json::from_slice(verdict.patch.as_bytes()).unwrap();
        let after = json::apply(reservation, &operations).unwrap();
        assert_eq!(after["spec"], json!({"expires": "9999-12-31T23:59:59Z", "unschedulable": true}));
        let later = created(&json!({"spec": {"expires": "10000-01-01T00:00:00Z"}}), &profile);
        assert_eq!(later.denial.unwrap().code, 400);
    }

    #[test]
    fn what_a_patch_brings_is_written_as_go_writes_it() {
        let spec = json!({"odd": 1, "unschedulable": true, "taints": [{"key": "a"}], "allocateOnce": true,
            "template": {"spec": {"hostNetwork": true, "containers": [{"name": "c"}]}}});
        let reservation = json!({"metadata": {"name": "r"}, "spec": spec});
        let patch = json!({"odd": 1, "spec": {"odder": 1, "unschedulable": false, "preAllocation": false, "taints": [],
            "allocatePolicy": "", "allocateOnce": false, "template": {"odd": 1, "spec": {"hostNetwork": false, "odd": 1,
                "containers": [{"name": "c", "image": "", "resources": {"requests": {"memory": "2048Mi", "cpu": 2}}}]}}}});
        let verdict = created(&reservation, &json!({ "patch": patch }));
        assert_eq!(verdict.denial, None);
        let written = json!({"odd": 1, "allocateOnce": false,
            "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "2Gi", "cpu": "2"}}}]}}});
        let operations = serde_json::from_slice(verdict.patch.as_bytes()).unwrap();
        let after = json::apply(reservation, &operations).unwrap();
        assert_eq!(after, json!({"metadata": {"name": "r"}, "spec": written}));
    }

    #[test]
    fn a_patch_that_no_reservation_can_hold_refuses_it() {
        let refusal = |patch: Value| {
            let reservation =
                json!({"metadata": {"name": "r"}, "spec": {"owners": [{}], "ttl": "1h", "allocateOnce": true}});
            created(&reservation, &json!({ "patch": patch })).denial.map(|denial| denial.code)
        };
        for spec in [json!({"allocateOnce": "no"}), json!({"ttl": 5}), json!({"taints": {}}), json!({"owners": "x"})] {
            assert_eq!(refusal(json!({ "spec": spec })), Some(500), "{spec}");
        }
        assert_eq!(refusal(json!({"spec": {"allocateOnce": null, "ttl": "2h", "taints": [{"key": "x"}]}})), None);
    }
}
