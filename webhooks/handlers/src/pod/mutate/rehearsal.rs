//! What `/mutate-pod` and `/validate-pod` would make of a pod, step by step, for whoever wants to see why.

use std::sync::Arc;

use koord_profile::{Identity, Profile, Texts, draw};
use koord_resource::admission::{Denial, GroupVersionResource, Operation, Request};
use koord_scheduling::Outcome;
use serde_json::{Value, value::RawValue};

use super::{
    super::{Pod, PodView, validate::validate_pod},
    apply_profile, changed, drawn, matched, merged, mutate_pod, write,
};

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Rehearsal {
    /// Every profile, in the order in which they are applied.
    pub profiles: Vec<Tried>,
    /// The pod as it would be stored, or why it is refused.
    pub outcome: Result<Value, Denial>,
    /// The message for the user.
    pub warnings: Vec<String>,
}

/// A profile, tried on a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    pub name: String,
    /// The terms of its `selector`; none where it has none.
    pub selector: Vec<Outcome>,
    /// The terms of its `namespaceSelector`; none where it has none.
    pub namespace_selector: Vec<Outcome>,
    /// It asks for labels of the namespace, and nobody knows that.
    pub namespace_unknown: bool,
    /// Its probability, where it has one.
    pub chance: Option<Chance>,
    /// Whether it leaves the resources of its pods as they are, and of all pods that it matches.
    pub skips_resources: bool,
    /// The pod after it; nothing where it does not apply, and where one before it cannot be applied.
    pub after: Option<Result<Value, Denial>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    /// The probability as it is written, in percent; an error says what is wrong with it.
    pub percent: Result<i64, String>,
    /// What the pod draws, from 0 to 99.
    pub draw: i64,
    /// Pods of this template get their names from the API server, and each draws for itself.
    pub differs_by_pod: bool,
}

impl Chance {
    /// Whether the profile applies.
    pub fn favours(&self) -> bool {
        self.percent.as_ref().is_ok_and(|percent| self.draw < *percent)
    }
}

impl Tried {
    /// Whether it matches the pod.
    pub fn matches(&self) -> bool {
        !self.namespace_unknown && self.selector.iter().chain(&self.namespace_selector).all(|term| term.holds)
    }
}

/// Tries all profiles of the cache on a new pod. The uid stands for that of the request.
pub fn rehearse(view: PodView<'_>, pod: &Value, namespace: &str, uid: &str) -> Result<Rehearsal, Denial> {
    let raw = RawValue::from_string(pod.to_string())?;
    let request = request(&raw, namespace, uid);
    let manifest = Pod::read(request.object)?;
    let (labels, name) = (&manifest.metadata.labels, &*manifest.metadata.name);
    let (applying, _) = matched(view, labels, namespace);
    let (applying, _) = drawn(&applying, &request, namespace, name);
    let applying: Vec<String> = applying.iter().map(|profile| profile.name.clone()).collect();
    let identity = if name.is_empty() { Identity::Request(uid) } else { Identity::Named(namespace, name) };
    let known: Vec<Arc<Profile>> = view.profiles.read().iter().map(|(_, entry)| Arc::clone(&entry.value)).collect();
    let mut profiles = Vec::new();
    let mut current = Ok(pod.clone());
    for profile in &known {
        let mut tried = tried(profile, view, labels, namespace, identity);
        if applying.contains(&profile.name)
            && let Ok(before) = &current
        {
            current = applied_alone(before, profile, view);
            tried.after = Some(current.clone());
        }
        profiles.push(tried);
    }
    let verdict = mutate_pod(&request, view);
    let mut warnings = verdict.warnings;
    let mutated = match verdict.denial {
        Some(denial) => Err(denial),
        None => changed(pod.clone(), &verdict.patch),
    };
    let outcome = mutated.and_then(|pod| {
        let raw = RawValue::from_string(pod.to_string())?;
        let verdict = validate_pod(&self::request(&raw, namespace, uid), view);
        warnings.extend(verdict.warnings);
        verdict.denial.map_or(Ok(pod), Err)
    });
    Ok(Rehearsal { profiles, outcome, warnings })
}

fn request<'a>(pod: &'a RawValue, namespace: &'a str, uid: &'a str) -> Request<'a> {
    let resource = GroupVersionResource { version: "v1".into(), resource: "pods".into(), ..Default::default() };
    Request {
        uid: uid.into(),
        namespace: namespace.into(),
        operation: Operation::Create,
        object: Some(pod),
        resource,
        dry_run: true,
        ..Request::default()
    }
}

fn tried(profile: &Profile, view: PodView<'_>, labels: &Texts<'_>, namespace: &str, identity: Identity<'_>) -> Tried {
    let namespaces = view.namespaces.read();
    let asks = !profile.namespaces.is_everything();
    let known = namespaces.get(namespace).map(|entry| &entry.value.0).filter(|_| asks);
    let chance = profile.spec.probability.as_ref().map(|probability| Chance {
        percent: probability.int_or_percent().map_err(|error| error.to_string()),
        draw: draw(profile, identity),
        differs_by_pod: matches!(identity, Identity::Request(_)),
    });
    Tried {
        name: profile.name.clone(),
        selector: profile.objects.outcomes(|key| labels.get(key)),
        namespace_selector: known.map(|labels| profile.namespaces.outcomes(|key| labels.get(key))).unwrap_or_default(),
        namespace_unknown: asks && known.is_none(),
        chance,
        skips_resources: profile.skip_update_resources,
        after: None,
    }
}

/// The pod after this profile and nothing else.
fn applied_alone(pod: &Value, profile: &Arc<Profile>, view: PodView<'_>) -> Result<Value, Denial> {
    let text = pod.to_string();
    let mut manifest = Pod::read_text(&text)?;
    apply_profile(&mut manifest, profile, view)?;
    let pod = changed(pod.clone(), &write(&manifest)?)?;
    match &profile.overlay {
        Some(overlay) => merged(pod, overlay),
        None => Ok(pod),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Ctx;

    fn ctx(profiles: &[(&str, Value)]) -> Ctx {
        let ctx = Ctx::detached(|_| false);
        for (name, spec) in profiles {
            let object = json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "1"}, "spec": spec});
            ctx.put("ClusterColocationProfile", &object.to_string()).unwrap();
        }
        ctx
    }

    #[test]
    fn every_step_leads_to_the_next_and_the_last_to_the_outcome() {
        let selector = |value: &str| json!({"matchLabels": {"app": value}});
        let ctx = ctx(&[
            (
                "a",
                json!({"selector": selector("web"), "labels": {"koordinator.sh/priority-class": "koord-batch"}, "qosClass": "BE"}),
            ),
            ("b", json!({"selector": selector("db"), "labels": {"x": "y"}})),
            ("c", json!({"selector": selector("web"), "patch": {"spec": {"hostNetwork": true}}})),
            ("d", json!({"selector": selector("web"), "probability": 0, "labels": {"never": "1"}})),
        ]);
        let pod = json!({"metadata": {"name": "p", "labels": {"app": "web"}},
                         "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}});
        let rehearsal = rehearse(ctx.pods(), &pod, "default", "u").unwrap();
        let applied: Vec<&str> =
            rehearsal.profiles.iter().filter(|tried| tried.after.is_some()).map(|tried| tried.name.as_str()).collect();
        assert_eq!(applied, ["a", "c"]);
        let matching: Vec<bool> = rehearsal.profiles.iter().map(Tried::matches).collect();
        assert_eq!(matching, [true, false, true, true]);
        let after = |index: usize| rehearsal.profiles[index].after.clone().unwrap().unwrap();
        assert_eq!(after(0)["metadata"]["labels"]["koordinator.sh/qosClass"], "BE");
        assert_eq!((&after(0)["spec"]["hostNetwork"], &after(2)["spec"]["hostNetwork"]), (&Value::Null, &json!(true)));
        let outcome = rehearsal.outcome.unwrap();
        let mut expected = after(2);
        expected["spec"]["containers"] = outcome["spec"]["containers"].clone();
        expected["metadata"]["annotations"] = outcome["metadata"]["annotations"].clone();
        assert_eq!(outcome, expected, "what is left are the resources");
        assert_eq!(outcome["spec"]["containers"][0]["resources"]["limits"], json!({"kubernetes.io/batch-cpu": "1k"}));
        assert!(!rehearsal.profiles[3].chance.as_ref().unwrap().favours());
    }

    #[test]
    fn a_refusal_is_told_with_the_step_that_fails() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": []}});
        let missing =
            rehearse(ctx(&[("a", json!({"priorityClassName": "gone"}))]).pods(), &pod, "default", "u").unwrap();
        let denial = missing.outcome.unwrap_err();
        assert_eq!(denial.message, "PriorityClass.scheduling.k8s.io \"gone\" not found");
        assert_eq!(missing.profiles[0].after, Some(Err(denial)));
        let combination = rehearse(ctx(&[("a", json!({"qosClass": "BE"}))]).pods(), &pod, "default", "u").unwrap();
        assert!(combination.outcome.unwrap_err().message.contains("cannot be used in combination"));
        let odd = rehearse(ctx(&[("a", json!({"probability": "half"}))]).pods(), &pod, "default", "u").unwrap();
        assert!(odd.outcome.is_err() && odd.profiles[0].chance.as_ref().unwrap().percent.is_err());
        let before = [("a", json!({"labels": {"x": "y"}})), ("b", json!({"probability": "half"}))];
        let later = rehearse(ctx(&before).pods(), &pod, "default", "u").unwrap();
        assert!(later.outcome.is_err() && later.profiles[0].after.is_some() && later.profiles[1].after.is_none());
    }
}
