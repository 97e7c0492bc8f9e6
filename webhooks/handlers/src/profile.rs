//! Which ClusterColocationProfiles apply to an object, and what they change in its labels and annotations.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use koord_api::{priority::SUB_PRIORITY_LABEL, qos::QOS_LABEL};
use koord_resource::admission::{Denial, Request};
use smallvec::SmallVec;

use crate::{
    Ctx,
    ctx::{PriorityClassValue, Profile},
    pod::Texts,
};

/// Profiles that match an object, in the order of their names.
pub(crate) type Matched = SmallVec<[Arc<Profile>; 4]>;

/// The profiles whose object selector selects `labels`.
pub(crate) fn matching(ctx: &Ctx, labels: &Texts<'_>) -> Matched {
    let profiles = ctx.profiles.read();
    let objects = profiles.iter().map(|(_, entry)| &entry.value);
    objects.filter(|profile| profile.objects.selects(|key| labels.get(key))).cloned().collect()
}

/// Of these profiles, keeps those whose namespace selector selects the namespace. What is returned ask for labels of a
/// namespace that nobody knows; they do not apply either.
pub(crate) fn retain_of_namespace(matched: &mut Matched, ctx: &Ctx, namespace: &str) -> Matched {
    let mut unknown = Matched::new();
    if matched.iter().all(|profile| profile.namespaces.is_everything()) {
        return unknown;
    }
    let namespaces = ctx.namespaces.read();
    let entry = namespaces.get(namespace);
    matched.retain(|profile| match entry {
        _ if profile.namespaces.is_everything() => true,
        Some(entry) => profile.namespaces.selects(|key| entry.value.0.get(key)),
        None => {
            unknown.push(Arc::clone(profile));
            false
        }
    });
    unknown
}

/// Whether the profile's probability lets it apply. A profile of probability p applies to p of 100 objects.
///
/// The draw follows from the profile's name and the object's: a retry decides the same. Objects that the API server
/// will name are alike, so theirs follows from the uid of the request.
pub(crate) fn drawn(profile: &Profile, request: &Request<'_>, namespace: &str, name: &str) -> Result<bool, Denial> {
    let Some(probability) = &profile.spec.probability else { return Ok(true) };
    let percent = probability.int_or_percent().map_err(|error| Denial::internal(error.to_string()))?;
    let mut hasher = DefaultHasher::new();
    let identity = if name.is_empty() { (request.uid.as_ref(), "") } else { (namespace, name) };
    (identity, profile.name.as_str()).hash(&mut hasher);
    let draw = i64::try_from(hasher.finish() % 100).unwrap_or_default();
    Ok(draw < percent)
}

/// Changes labels and annotations, in the original's order. Maps of a profile are gone through by their keys.
pub(crate) fn apply<'a>(profile: &'a Profile, labels: &mut Texts<'a>, annotations: &mut Texts<'a>) {
    let spec = &profile.spec;
    for (key, value) in &spec.labels {
        labels.set(key.as_str(), value.as_str());
    }
    for (key, value) in &spec.annotations {
        annotations.set(key.as_str(), value.as_str());
    }
    for (old, new) in &spec.label_keys_mapping {
        labels.copy(old, new);
    }
    for (old, new) in &spec.annotation_keys_mapping {
        annotations.copy(old, new);
    }
    for (key, suffix) in &spec.label_suffixes {
        labels.append(key, suffix);
    }
    if let Some(qos) = spec.qos_class.as_ref().filter(|qos| !qos.as_str().is_empty()) {
        labels.set(QOS_LABEL, qos.as_str());
    }
    if let Some(priority) = spec.koordinator_priority {
        labels.set(SUB_PRIORITY_LABEL, priority.to_string());
    }
}

/// The PriorityClass that a profile names; none when it names none.
pub(crate) fn priority_class(ctx: &Ctx, profile: &Profile) -> Result<Option<Arc<PriorityClassValue>>, Denial> {
    let name = profile.spec.priority_class_name.as_str();
    if name.is_empty() {
        return Ok(None);
    }
    let found = ctx.priority_classes.read().get(name).map(|entry| Arc::clone(&entry.value));
    let missing = || Denial::internal(format!("priorityclasses.scheduling.k8s.io \"{name}\" not found"));
    found.map(Some).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use koord_resource::IntOrString;
    use serde_json::json;

    use super::*;

    /// The only profile of a cluster.
    fn profile(spec: &serde_json::Value) -> Arc<Profile> {
        let ctx = Ctx::detached(|_| false);
        let object = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
        ctx.put("ClusterColocationProfile", &object.to_string()).unwrap();
        matching(&ctx, &Texts::default()).remove(0)
    }

    fn drawn_for(profile: &Profile, name: &str, uid: &str) -> bool {
        let request = Request { uid: Cow::Borrowed(uid), ..Request::default() };
        drawn(profile, &request, "default", name).unwrap()
    }

    #[test]
    fn the_share_of_pods_is_the_probability() {
        let share = |probability: IntOrString, named: bool| {
            let profile = profile(&json!({"probability": probability}));
            let text = |number: usize| format!("pod-{number}");
            let drawn = |number: &usize| {
                let text = text(*number);
                if named { drawn_for(&profile, &text, "same") } else { drawn_for(&profile, "", &text) }
            };
            (0..10_000).filter(drawn).count()
        };
        for named in [true, false] {
            assert_eq!(share(0.into(), named), 0);
            assert_eq!(share((-1).into(), named), 0);
            assert_eq!(share(100.into(), named), 10_000);
            assert_eq!(share("120%".into(), named), 10_000);
            let half = share("50%".into(), named);
            assert!((4_800..5_200).contains(&half), "{half} of 10000");
            let one = share(1.into(), named);
            assert!((60..150).contains(&one), "{one} of 10000");
        }
    }

    #[test]
    fn a_retry_of_a_named_pod_decides_the_same() {
        let profile = profile(&json!({"probability": 50}));
        for number in 0..100 {
            let name = format!("pod-{number}");
            assert_eq!(drawn_for(&profile, &name, "first"), drawn_for(&profile, &name, "second"));
        }
    }

    #[test]
    fn a_selector_that_nobody_understands_sets_the_profile_aside() {
        let put = |spec: serde_json::Value| {
            let ctx = Ctx::detached(|_| false);
            let object = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
            ctx.put("ClusterColocationProfile", &object.to_string()).unwrap();
            assert!(matching(&ctx, &Texts::default()).is_empty());
            ctx.profiles.read().quarantined("p").unwrap().reason.to_string()
        };
        let expression =
            |operator: &str| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": []}]});
        assert_eq!(
            put(json!({"selector": expression("In")})),
            "spec.selector: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        );
        assert_eq!(
            put(json!({"namespaceSelector": expression("Foo")})),
            "spec.namespaceSelector: \"Foo\" is not a valid label selector operator"
        );
    }
}
