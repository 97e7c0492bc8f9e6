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

/// The profiles whose object selector selects `labels`, and whose namespace selector selects the namespace, where
/// there is one.
pub(crate) fn matching(ctx: &Ctx, labels: &Texts<'_>, namespace: Option<&str>) -> Matched {
    let profiles = ctx.profiles.read();
    let objects = profiles.iter().map(|(_, entry)| &entry.value);
    objects
        .filter(|profile| namespace.is_none_or(|namespace| selects_namespace(ctx, profile, namespace)))
        .filter(|profile| profile.objects.selects(|key| labels.get(key)))
        .cloned()
        .collect()
}

/// QUIRK: a namespace that nobody knows is selected, as in the original.
fn selects_namespace(ctx: &Ctx, profile: &Profile, namespace: &str) -> bool {
    if matches!(profile.namespaces, crate::selector::Selector::All) {
        return true;
    }
    let namespaces = ctx.namespaces.read();
    let Some(entry) = namespaces.get(namespace) else { return true };
    profile.namespaces.selects(|key| entry.value.0.get(key))
}

/// Whether the profile's probability lets it apply to the request.
///
/// The draw follows from the request's uid and the profile's name: the same review always gets the same answer, and
/// pods of one owner, which are alike in everything else, do not. A profile of probability p applies to p of 100.
pub(crate) fn drawn(profile: &Profile, request: &Request<'_>) -> Result<bool, Denial> {
    let Some(probability) = &profile.spec.probability else { return Ok(true) };
    let percent = probability.int_or_percent().map_err(|error| Denial::internal(error.to_string()))?;
    let mut hasher = DefaultHasher::new();
    (request.uid.as_ref(), request.namespace.as_ref(), request.name.as_ref(), profile.name.as_str()).hash(&mut hasher);
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

    use super::*;

    fn share(probability: IntOrString) -> usize {
        let ctx = Ctx::detached(|_| false);
        ctx.put("ClusterColocationProfile", r#"{"metadata":{"name":"p","uid":"u","resourceVersion":"1"}}"#).unwrap();
        let matched = matching(&ctx, &Texts::default(), Some("default"));
        let mut profile = Profile {
            name: matched[0].name.clone(),
            namespaces: matched[0].namespaces.clone(),
            objects: matched[0].objects.clone(),
            skip_update_resources: false,
            excerpt: None,
            spec: matched[0].spec.clone(),
        };
        profile.spec.probability = Some(probability);
        let request = |number: usize| Request { uid: Cow::Owned(format!("uid-{number}")), ..Request::default() };
        (0..10_000).filter(|number| drawn(&profile, &request(*number)).unwrap()).count()
    }

    #[test]
    fn the_share_of_pods_is_the_probability() {
        assert_eq!(share(0.into()), 0);
        assert_eq!(share((-1).into()), 0);
        assert_eq!(share(100.into()), 10_000);
        assert_eq!(share("120%".into()), 10_000);
        let half = share("50%".into());
        assert!((4_800..5_200).contains(&half), "{half} of 10000");
        let one = share(1.into());
        assert!((60..150).contains(&one), "{one} of 10000");
    }
}
