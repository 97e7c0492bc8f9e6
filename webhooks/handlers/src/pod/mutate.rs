//! `/mutate-pod`: new pods get what the ClusterColocationProfiles that match them say, and what follows from it.
//!
//! The steps: profiles, translation of CPU and memory into what the priority class uses, the annotation that lists for
//! the node of extended resources, the node affinity of the quota tree, and the resources of devices. All of them
//! work on a view that borrows from the request. The patch that a profile may have of its own is carried out beside
//! that; where it changes what the steps look at, both are done on a tree of what they touch.

mod device_resources;
mod extended_resources;
mod quota_tree;
pub mod rehearsal;
mod translate;

use std::sync::Arc;

use koord_profile::{Excerpt, Matched, Overlay, PodNode, Profile, Texts};
use koord_resource::{
    admission::{Denial, Operation, Patch, Request, Stopwatch, Verdict},
    field::Path,
};
use koord_schema::patch::{json, strategic};
use serde_json::Value;

use super::{Container, Parts, Pod, PodView, warnings};
use crate::{Ctx, profile, resources::Amounts};

/// Applies profiles to new pods. Namespaces of the control plane, and pods that the cluster itself runs on, are left alone.
#[koord_resource::admission(
    path = "/mutate-pod",
    gate = "PodMutatingWebhook",
    within = Ctx::pods,
    failure_policy = Fail,
    object_type = "pod", groups = [""], versions = ["v1"], resources = ["pods"],
    namespace_selector("control-plane", DoesNotExist),
    match_condition(name = "outside-kube-system", expression = "request.namespace != 'kube-system'"),
    entry(name = "mpod-create.koordinator.sh", on = [Create]),
    entry(
        name = "mpod-update.koordinator.sh",
        on = [Update],
        object_selector("pod.koordinator.sh/mutating-update", In, ["true"])
    ),
    rbac(group = "config.koordinator.sh", resource = "clustercolocationprofiles", verbs = [list, watch]),
    rbac(group = "", resource = "namespaces", verbs = [list, watch]),
    rbac(group = "scheduling.k8s.io", resource = "priorityclasses", verbs = [list, watch]),
    rbac(group = "quota.koordinator.sh", resource = "elasticquotaprofiles", verbs = [list, watch]),
    rbac(group = "scheduling.sigs.k8s.io", resource = "elasticquotas", verbs = [list, watch]),
)]
pub fn mutate_pod(request: &Request<'_>, view: PodView<'_>) -> Verdict {
    let mut remarks = Remarks::default();
    let mut watch = Stopwatch::default();
    let outcome = mutate(request, view, &mut remarks, &mut watch);
    let verdict = Verdict { steps: watch.stop(), warnings: remarks.overridden, ..outcome.into() };
    remarks.unknown.iter().fold(verdict, |verdict, profile| not_applied(verdict, profile, request))
}

/// The namespace is surely on its way to the cache: the API server knows it.
fn not_applied(verdict: Verdict, profile: &Profile, request: &Request<'_>) -> Verdict {
    let (name, namespace) = (&profile.name, &request.namespace);
    let warning = format!(
        "ClusterColocationProfile {name:?} was not applied: it selects namespaces by their labels, and namespace {namespace:?} is not known yet"
    );
    Verdict { provisional: true, ..verdict.warn(warning) }
}

/// What the user should know beside the decision.
#[derive(Default)]
struct Remarks {
    /// The profiles that could not be applied because nobody knows the namespace.
    unknown: Matched,
    /// What profiles overwrite.
    overridden: Vec<String>,
}

fn mutate(
    request: &Request<'_>,
    view: PodView<'_>,
    remarks: &mut Remarks,
    watch: &mut Stopwatch,
) -> Result<Patch, Denial> {
    if !request.sub_resource.is_empty() || request.resource.resource != "pods" {
        return Ok(Patch::default());
    }
    let pod = Pod::read(request.object)?;
    if request.operation != Operation::Create {
        return Ok(Patch::default());
    }
    let Some(object) = request.object else { return Ok(Patch::default()) };
    watch.begin("ClusterColocationProfile");
    let namespace = if pod.metadata.namespace.is_empty() { &request.namespace } else { &pod.metadata.namespace };
    let namespace = namespace.clone();
    let (matched, unknown) = matched(view, &pod.metadata.labels, &namespace);
    remarks.unknown = unknown;
    let name = if pod.metadata.name.is_empty() { &request.name } else { &pod.metadata.name };
    let applied = drawn(&matched, request, &namespace, name)?;
    if view.warns {
        remarks.overridden = warnings::of_new_pod(&pod, &applied);
    }
    let translates = !matched.is_empty()
        && !view.switches.skip_mutating_resources
        && !matched.iter().any(|profile| profile.skip_update_resources);
    let rest = Rest { view, namespace: &namespace, translates };

    if can_be_overlaid(&pod, &applied, view) {
        let mut pod = pod;
        for profile in &applied {
            apply_profile(&mut pod, profile, view)?;
            if let Some(overlay) = &profile.overlay {
                overlay.apply_texts(&mut pod.metadata.labels, &mut pod.metadata.annotations);
            }
        }
        rest.apply(&mut pod, watch)?;
        let mut patch = write(&pod)?;
        for overlay in applied.iter().filter_map(|profile| profile.overlay.as_ref()) {
            overlay.write(object.get(), &mut patch).map_err(|error| Denial::internal(error.to_string()))?;
            fits(overlay)?;
        }
        return Ok(patch);
    }
    let touched =
        applied.iter().filter_map(|profile| profile.overlay.as_ref()).map(|overlay| overlay.touched().clone());
    let before = touched.fold(Pod::excerpt(view.switches.multi_quota_tree).clone(), Excerpt::and).read(object.get())?;
    let after = with_patches(before.clone(), pod, &applied, &rest, watch)?;
    Ok(Patch::between(&before, &after)?)
}

/// Whether the profiles' own patches can be carried out on the pod as it came: what the handler reads and changes,
/// and what each of them is about, have nothing to do with each other.
fn can_be_overlaid(pod: &Parts<'_>, applied: &Matched, view: PodView<'_>) -> bool {
    let overlays = || applied.iter().filter_map(|profile| profile.overlay.as_ref());
    overlays().enumerate().all(|(index, overlay)| {
        let names = |containers: &[Container<'_>], list| {
            overlay.keeps_places(list, containers.iter().map(|container| container.name.as_ref()))
        };
        pod.has == (true, true)
            && overlay.is_apart_from(Pod::excerpt(view.switches.multi_quota_tree))
            && names(&pod.spec.containers, "containers")
            && names(&pod.spec.init_containers, "initContainers")
            && overlays().take(index).all(|other| overlay.touched().is_apart_from(other.touched()))
    })
}

/// The profiles that match, and those that ask for the labels of a namespace that nobody knows.
fn matched(view: PodView<'_>, labels: &Texts<'_>, namespace: &str) -> (Matched, Matched) {
    let mut matched = koord_profile::matching(&view.profiles.read(), labels);
    let unknown = koord_profile::retain_of_namespace(&mut matched, &view.namespaces.read(), namespace);
    (matched, unknown)
}

/// The profiles that apply. A probability that cannot be read refuses the pod.
fn drawn(matched: &Matched, request: &Request<'_>, namespace: &str, name: &str) -> Result<Matched, Denial> {
    let mut applied = Matched::new();
    for profile in matched {
        if profile::drawn(profile, request, namespace, name)? {
            applied.push(profile.clone());
        }
    }
    Ok(applied)
}

/// What a profile says, without its own patch.
fn apply_profile<'a>(pod: &mut Parts<'a>, profile: &'a Profile, view: PodView<'_>) -> Result<(), Denial> {
    koord_profile::apply(profile, &mut pod.metadata.labels, &mut pod.metadata.annotations);
    if !profile.spec.scheduler_name.is_empty() {
        pod.spec.scheduler_name = profile.spec.scheduler_name.as_str().into();
        pod.spec.changed.scheduler_name = true;
    }
    if let Some(class) = profile::priority_class(view.priority_classes, profile)? {
        pod.spec.priority_class_name = profile.spec.priority_class_name.as_str().into();
        pod.spec.priority = Some(class.value);
        pod.spec.preemption_policy = class.preemption_policy.clone().into();
        pod.spec.changed.priority = true;
    }
    Ok(())
}

/// What follows the profiles.
struct Rest<'c> {
    view: PodView<'c>,
    namespace: &'c str,
    translates: bool,
}

impl Rest<'_> {
    fn apply(&self, pod: &mut Parts<'_>, watch: &mut Stopwatch) -> Result<(), Denial> {
        let switches = &self.view.switches;
        if self.translates {
            translate::translate(pod);
        }
        if !switches.disable_extended_resource_spec {
            watch.begin("ExtendedResourceSpec");
            extended_resources::annotate(pod)?;
        }
        if switches.multi_quota_tree {
            watch.begin("MultiQuotaTree");
            quota_tree::bind(pod, self.view, self.namespace)?;
        }
        if !switches.disable_device_resource_spec {
            watch.begin("DeviceResourceSpec");
            device_resources::complete(pod);
        }
        Ok(())
    }
}

/// Profiles with patches of their own: up to each patch the pod is changed as usual, then it is merged and read again.
/// `tree` is the pod, or as much of it as the profiles touch.
fn with_patches<'a>(
    tree: Value,
    mut pod: Parts<'a>,
    profiles: &'a [Arc<Profile>],
    rest: &Rest<'_>,
    watch: &mut Stopwatch,
) -> Result<Value, Denial> {
    let until = profiles.iter().position(|profile| profile.spec.patch.is_some());
    let (now, later) = profiles.split_at(until.map_or(profiles.len(), |at| at + 1));
    for profile in now {
        apply_profile(&mut pod, profile, rest.view)?;
    }
    let last = now.last().and_then(|profile| Some((profile.spec.patch.as_ref()?, profile.overlay.as_ref()?)));
    let Some((patch, overlay)) = last else {
        rest.apply(&mut pod, watch)?;
        return changed(tree, &write(&pod)?);
    };
    let merged = merged(changed(tree, &write(&pod)?)?, patch)?;
    fits(overlay)?;
    let text = merged.to_string();
    let pod = Pod::read_text(&text).map_err(|denial| Denial::internal(denial.message))?;
    with_patches(merged, pod, later, rest, watch)
}

fn fits(overlay: &Overlay) -> Result<(), Denial> {
    overlay.type_error().map_or(Ok(()), |reason| Err(Denial::internal(reason)))
}

fn merged(tree: Value, patch: &Value) -> Result<Value, Denial> {
    strategic::apply(tree, patch, &PodNode::ROOT).map_err(|error| Denial::internal(error.to_string()))
}

fn changed(tree: Value, patch: &Patch) -> Result<Value, Denial> {
    if patch.is_empty() {
        return Ok(tree);
    }
    let patch = serde_json::from_slice(patch.as_bytes())?;
    json::apply(tree, &patch).map_err(|error| Denial::internal(error.to_string()))
}

/// The patch for everything that was changed.
fn write(pod: &Parts<'_>) -> Result<Patch, Denial> {
    let mut patch = Patch::default();
    let (metadata, spec) = (Path::root("metadata"), Path::root("spec"));
    let labels_changed = !(pod.metadata.labels.unchanged() && pod.metadata.annotations.unchanged());
    if labels_changed && !pod.has.0 {
        patch.add(&metadata, &serde_json::Map::new())?;
    }
    pod.metadata.labels.write(&metadata.child("labels"), &mut patch)?;
    pod.metadata.annotations.write(&metadata.child("annotations"), &mut patch)?;

    let changed = &pod.spec.changed;
    if (changed.scheduler_name || changed.priority || changed.affinity.is_some()) && !pod.has.1 {
        patch.add(&spec, &serde_json::Map::new())?;
    }
    if changed.scheduler_name {
        patch.add(&spec.child("schedulerName"), &pod.spec.scheduler_name)?;
    }
    if changed.priority {
        patch.add(&spec.child("priorityClassName"), &pod.spec.priority_class_name)?;
        patch.add(&spec.child("priority"), &pod.spec.priority)?;
        patch.add(&spec.child("preemptionPolicy"), &pod.spec.preemption_policy)?;
    }
    if let Some(affinity) = &changed.affinity {
        patch.add(&spec.child("affinity"), affinity)?;
    }
    for (name, containers) in
        [("initContainers", &pod.spec.init_containers[..]), ("containers", &pod.spec.containers[..])]
    {
        let list = spec.child(name);
        for (index, Container { resources, .. }) in containers.iter().enumerate() {
            let container = list.index(index);
            let at = container.child("resources");
            let write = |name, amounts: &Amounts<'_>, patch: &mut Patch| amounts.write(&at.child(name), patch);
            write("requests", &resources.requests, &mut patch)?;
            write("limits", &resources.limits, &mut patch)?;
        }
    }
    pod.spec.overhead.write(&spec.child("overhead"), &mut patch)?;
    Ok(patch)
}

#[cfg(test)]
mod tests {
    use koord_resource::admission::GroupVersionResource;
    use serde_json::{json, value::RawValue};

    use super::*;

    fn put_profile(ctx: &Ctx, more: &Value) {
        let mut spec = json!({"labels": {"a": "b"}, "qosClass": "BE", "schedulerName": "koord-scheduler"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let profile = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
        ctx.put("ClusterColocationProfile", &profile.to_string()).unwrap();
    }

    fn after_mutation(ctx: &Ctx, pod: &Value) -> Value {
        let object = RawValue::from_string(pod.to_string()).unwrap();
        let resource = GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() };
        let request = Request { operation: Operation::Create, object: Some(&object), resource, ..Request::default() };
        let verdict = mutate_pod(&request, ctx.pods());
        assert_eq!(verdict.denial, None);
        if verdict.patch.is_empty() {
            return pod.clone();
        }
        json::apply(pod.clone(), &serde_json::from_slice(verdict.patch.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_patch_of_other_fields_is_merged_beside_the_rest() {
        let patches = [
            json!({"spec": {"terminationGracePeriodSeconds": 5}}),
            json!({"spec": {"tolerations": [{"key": "batch", "operator": "Exists"}], "hostNetwork": null}}),
            json!({"metadata": {"finalizers": ["example.com/f"]}, "spec": {"dnsConfig": {"nameservers": ["10.0.0.1"]}}}),
            json!({"spec": {"containers": [{"name": "c", "image": "other", "env": [{"name": "A", "value": "1"}]}]}}),
            json!({"metadata": {"labels": {"a": "c", "app": null, "n": "new"}, "annotations": {"x": "y"}}}),
            json!({"spec": {"affinity": {"podAffinity": {"x": []}}, "volumes": [{"name": "v", "emptyDir": {}}]}}),
        ];
        let container = json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}});
        let pods = [
            json!({"metadata": {"name": "n"}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 5}}),
            json!({"metadata": {"name": "n", "labels": {"app": "web"}}, "spec": {"containers": [], "hostNetwork": true, "tolerations": [{"key": "x"}]}}),
            json!({"metadata": {"name": "n", "finalizers": ["x"]}, "spec": {"dnsConfig": {"searches": ["a"]}}}),
            json!({"metadata": {"name": "n"}}),
        ];
        for patch in &patches {
            let (without, with) = (Ctx::detached(|_| false), Ctx::detached(|_| false));
            put_profile(&without, &json!({}));
            put_profile(&with, &json!({ "patch": patch }));
            for pod in &pods {
                let expected = merged(after_mutation(&without, pod), patch).unwrap();
                assert_eq!(after_mutation(&with, pod), expected, "{patch} on {pod}");
            }
        }
    }

    #[test]
    fn a_patch_that_no_pod_can_hold_refuses_the_pod() {
        for patch in [json!({"spec": {"hostNetwork": "yes"}}), json!({"spec": {"hostNetwork": "yes", "priority": 5}})] {
            let ctx = Ctx::detached(|_| false);
            put_profile(&ctx, &json!({ "patch": patch }));
            let pod =
                RawValue::from_string(r#"{"metadata":{"name":"n"},"spec":{"containers":[]}}"#.to_owned()).unwrap();
            let resource = GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() };
            let request = Request { operation: Operation::Create, object: Some(&pod), resource, ..Request::default() };
            let denial = mutate_pod(&request, ctx.pods()).denial.unwrap();
            let message = "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool";
            assert_eq!((denial.code, denial.message.as_str()), (500, message), "{patch}");
        }
    }

    #[test]
    fn null_is_an_empty_container_and_an_annotation_without_containers() {
        let ctx = Ctx::detached(|_| false);
        let annotations = json!({"node.koordinator.sh/extended-resource-spec": "null"});
        let pod =
            json!({"metadata": {"annotations": annotations}, "spec": {"containers": [null], "initContainers": [null]}});
        assert_eq!(after_mutation(&ctx, &pod), pod);
        let resources = json!({"requests": {"kubernetes.io/batch-cpu": " 1k "}});
        let second = json!({"spec": {"containers": [null, {"name": "c", "resources": resources}]}});
        let written = after_mutation(&ctx, &second)["metadata"]["annotations"].clone();
        let spec = r#"{"containers":{"c":{"requests":{"kubernetes.io/batch-cpu":"1k"}}}}"#;
        assert_eq!(written, json!({"node.koordinator.sh/extended-resource-spec": spec}));
    }

    #[test]
    fn an_empty_quota_name_counts_as_none() {
        let ctx = Ctx::detached(|gate| gate == "MultiQuotaTree");
        let tree = json!({"quota.scheduling.koordinator.sh/tree-id": "t"});
        let metadata = |name: &str| json!({"name": name, "namespace": "team", "uid": name, "resourceVersion": "1", "labels": tree});
        ctx.put("ElasticQuota", &json!({"metadata": metadata("team")}).to_string()).unwrap();
        let nodes = json!({"nodeSelector": {"matchLabels": {"pool": "a"}}});
        ctx.put("ElasticQuotaProfile", &json!({"metadata": metadata("p"), "spec": nodes}).to_string()).unwrap();
        for labels in [json!({}), json!({"quota.scheduling.koordinator.sh/name": ""})] {
            let pod = json!({"metadata": {"namespace": "team", "labels": labels}, "spec": {"containers": []}});
            let after = after_mutation(&ctx, &pod);
            let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
            let terms = &after.pointer(required).unwrap()["nodeSelectorTerms"];
            assert_eq!(terms[0]["matchExpressions"], json!([{"key": "pool", "operator": "In", "values": ["a"]}]));
        }
    }

    #[test]
    fn a_profile_does_not_apply_in_a_namespace_that_nobody_knows() {
        let ctx = Ctx::detached(|_| false);
        let put = |kind: &str, object: &str| ctx.put(kind, object).unwrap();
        put(
            "ClusterColocationProfile",
            r#"{"metadata":{"name":"p","uid":"u","resourceVersion":"1"},"spec":{"namespaceSelector":{"matchLabels":{"team":"x"}},"labels":{"a":"b"}}}"#,
        );
        let pod = RawValue::from_string(r#"{"metadata":{"name":"web"}}"#.to_owned()).unwrap();
        let resource = GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() };
        let request = Request {
            namespace: "new".into(),
            operation: Operation::Create,
            object: Some(&pod),
            resource,
            ..Request::default()
        };
        let verdict = mutate_pod(&request, ctx.pods());
        assert_eq!((verdict.patch.is_empty(), verdict.provisional, verdict.denial), (true, true, None));
        assert_eq!(
            verdict.warnings,
            [
                r#"ClusterColocationProfile "p" was not applied: it selects namespaces by their labels, and namespace "new" is not known yet"#
            ]
        );
        put("Namespace", r#"{"metadata":{"name":"new","uid":"n","resourceVersion":"2","labels":{"team":"x"}}}"#);
        let verdict = mutate_pod(&request, ctx.pods());
        assert_eq!(verdict.patch.as_str(), r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#);
        assert!(!verdict.provisional && verdict.warnings.is_empty());
    }
}
