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
#[cfg(test)]
mod tests;
mod translate;

use std::sync::Arc;

use koord_profile::{Excerpt, Matched, Overlay, Profile, Texts};
use koord_resource::{
    admission::{Denial, Operation, Patch, Request, Stopwatch, Verdict},
    field::Path,
};
use koord_schema::patch::json;
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
    let (applied, refusal) = drawn(&matched, request, &namespace, name);
    if view.warns {
        remarks.overridden = warnings::of_new_pod(&pod, &applied);
    }
    let translates = !matched.is_empty()
        && !view.switches.skip_mutating_resources
        && !matched.iter().any(|profile| profile.skip_update_resources);
    let rest = Rest { view, namespace: &namespace, translates, refusal };

    // A pod that is refused is changed profile by profile, because the first reason counts.
    if rest.refusal.is_none() && can_be_overlaid(&pod, &applied, view) {
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
/// and what each of them is about, have nothing to do with each other, and each patch fits a pod.
fn can_be_overlaid(pod: &Parts<'_>, applied: &Matched, view: PodView<'_>) -> bool {
    let overlays = || applied.iter().filter_map(|profile| profile.overlay.as_ref());
    overlays().enumerate().all(|(index, overlay)| {
        let names = |containers: &[Container<'_>], list| {
            overlay.keeps_places(list, containers.iter().map(|container| container.name.as_ref()))
        };
        pod.has == (true, true)
            && overlay.type_error().is_none()
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

/// The profiles that apply, up to the first whose probability cannot be read: that one refuses the pod.
fn drawn(matched: &Matched, request: &Request<'_>, namespace: &str, name: &str) -> (Matched, Option<Denial>) {
    let mut applied = Matched::new();
    for profile in matched {
        match profile::drawn(profile, request, namespace, name) {
            Ok(true) => applied.push(Arc::clone(profile)),
            Ok(false) => {}
            Err(denial) => return (applied, Some(denial)),
        }
    }
    (applied, None)
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
    /// Why the pod is refused although all profiles before could be applied.
    refusal: Option<Denial>,
}

impl Rest<'_> {
    fn apply(&self, pod: &mut Parts<'_>, watch: &mut Stopwatch) -> Result<(), Denial> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
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
    let until = profiles.iter().position(|profile| profile.overlay.is_some());
    let (now, later) = profiles.split_at(until.map_or(profiles.len(), |at| at + 1));
    for profile in now {
        apply_profile(&mut pod, profile, rest.view)?;
    }
    let Some(overlay) = now.last().and_then(|profile| profile.overlay.as_ref()) else {
        rest.apply(&mut pod, watch)?;
        return changed(tree, &write(&pod)?);
    };
    let merged = merged(changed(tree, &write(&pod)?)?, overlay)?;
    let text = merged.to_string();
    let pod = Pod::read_text(&text).map_err(|denial| Denial::internal(denial.message))?;
    with_patches(merged, pod, later, rest, watch)
}

/// The pod with a profile's own patch.
fn merged(pod: Value, overlay: &Overlay) -> Result<Value, Denial> {
    let merged = overlay.merge(pod).map_err(|error| Denial::internal(error.to_string()))?;
    overlay.type_error().map_or(Ok(merged), |reason| Err(Denial::internal(reason)))
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
