//! Profiles as requests meet them: which apply, which PriorityClass they name, and what they overwrite.

use std::sync::Arc;

use koord_profile::{Field, Identity, Profile, Texts, overridden};
use koord_resource::admission::{Denial, Request};
use koord_runtime::store::Store;

use crate::priority_class::PriorityClassValue;

/// The scheduler that the API server gives pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Whether the profile's probability lets it apply to the object of a request.
pub(crate) fn drawn(profile: &Profile, request: &Request<'_>, namespace: &str, name: &str) -> Result<bool, Denial> {
    let identity = if name.is_empty() { Identity::Request(&request.uid) } else { Identity::Named(namespace, name) };
    koord_profile::drawn(profile, identity).map_err(|error| Denial::internal(error.to_string()))
}

/// The PriorityClass that a profile names; none when it names none.
pub(crate) fn priority_class(
    classes: &Store<PriorityClassValue>,
    profile: &Profile,
) -> Result<Option<Arc<PriorityClassValue>>, Denial> {
    let name = profile.spec.priority_class_name.as_str();
    if name.is_empty() {
        return Ok(None);
    }
    let found = classes.read().get(name).map(|entry| Arc::clone(&entry.value));
    let missing = || Denial::internal(format!("PriorityClass.scheduling.k8s.io \"{name}\" not found"));
    found.map(Some).ok_or_else(missing)
}

/// Warnings about an object to which profiles are applied: what they overwrite.
pub(crate) fn warnings(
    labels: &Texts<'_>,
    annotations: &Texts<'_>,
    spec: &[(&'static str, &str)],
    applied: &[Arc<Profile>],
) -> Vec<String> {
    let labels = labels.iter().map(|(key, value)| (Field::Label(key.to_owned()), value.to_owned()));
    let annotations = annotations.iter().map(|(key, value)| (Field::Annotation(key.to_owned()), value.to_owned()));
    let spec = spec.iter().filter(|(_, value)| !value.is_empty() && *value != DEFAULT_SCHEDULER);
    let spec = spec.map(|(field, value)| (Field::Spec(field), (*value).to_owned()));
    let written = labels.chain(annotations).chain(spec);
    overridden(written, applied.iter().map(|profile| &**profile)).iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::*;
    use crate::Ctx;

    #[test]
    fn a_retry_of_a_named_pod_decides_the_same() {
        let ctx = Ctx::detached(|_| false);
        let object =
            json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": {"probability": 50}});
        ctx.put("ClusterColocationProfile", &object.to_string()).unwrap();
        let profile = Arc::clone(&ctx.profiles.read().get("p").unwrap().value);
        let drawn_for = |name: &str, uid: &str| {
            let request = Request { uid: Cow::Borrowed(uid), ..Request::default() };
            drawn(&profile, &request, "default", name).unwrap()
        };
        let mut outcomes = std::collections::BTreeSet::new();
        for number in 0..100 {
            let name = format!("pod-{number}");
            assert_eq!(drawn_for(&name, "first"), drawn_for(&name, "second"));
            outcomes.insert(drawn_for("", &name));
        }
        assert_eq!(outcomes.len(), 2, "pods that the server will name differ by their requests");
    }
}
