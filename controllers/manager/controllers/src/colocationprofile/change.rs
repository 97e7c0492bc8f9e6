//! What profiles change in a pod that is there already, as a merge patch.

use std::sync::Arc;

use koord_profile::{Excerpt, Profile, Texts, apply};
use koord_schema::patch::{PatchError, merge};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a profile cannot be applied to a pod.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    #[error("the pod cannot be read: {0}")]
    Pod(#[from] serde_json::Error),
    #[error("spec.patch of ClusterColocationProfile {profile} cannot be applied: {source}")]
    Patch { profile: String, source: PatchError },
}

/// What these profiles, one after the other, change in a pod; empty for nothing. Scheduler, priority class and
/// resources stay: the API server would refuse their change.
pub(super) fn change(pod: &str, profiles: &[Arc<Profile>]) -> Result<Map<String, Value>, ChangeError> {
    let texts = Excerpt::fields([("metadata", Excerpt::whole_fields(&["labels", "annotations"]))]);
    let touched =
        profiles.iter().filter_map(|profile| profile.overlay.as_ref().map(|overlay| overlay.touched().clone()));
    let before = touched.fold(texts, Excerpt::and).read(pod)?;
    let mut after = before.clone();
    // What they appended the last time goes, the last first, so that it stands once and in their order.
    for profile in profiles.iter().rev() {
        take_suffixes(profile, &mut after);
    }
    for profile in profiles {
        after = changed_by(profile, after)?;
    }
    if let Value::Object(after) = &mut after {
        // A write of the object leaves its status as it is.
        after.remove("status");
    }
    Ok(match merge::diff(&before, &after) {
        Some(Value::Object(patch)) => patch,
        _ => Map::new(),
    })
}

fn take_suffixes(profile: &Profile, pod: &mut Value) {
    for (key, suffix) in &profile.spec.label_suffixes {
        if let Some(Value::String(value)) = pod.pointer_mut("/metadata/labels").and_then(|labels| labels.get_mut(key))
            && let Some(without) = value.strip_suffix(suffix.as_str())
        {
            *value = without.to_owned();
        }
    }
}

fn changed_by(profile: &Profile, mut pod: Value) -> Result<Value, ChangeError> {
    let metadata = &pod["metadata"];
    let mut labels = Texts::deserialize(&metadata["labels"])?;
    let mut annotations = Texts::deserialize(&metadata["annotations"])?;
    apply(profile, &mut labels, &mut annotations);
    let changed = [("labels", labels), ("annotations", annotations)]
        .map(|(field, texts)| (field, if texts.unchanged() { Ok(Value::Null) } else { serde_json::to_value(&texts) }));
    for (field, texts) in changed {
        let texts = texts?;
        if !texts.is_null() {
            pod["metadata"][field] = texts;
        }
    }
    let Some(overlay) = &profile.overlay else { return Ok(pod) };
    overlay.merge(pod).map_err(|source| ChangeError::Patch { profile: profile.name.clone(), source })
}

#[cfg(test)]
mod tests {
    use koord_runtime::cache::Cache;
    use serde_json::json;

    use super::*;

    fn profile(spec: &Value) -> Arc<Profile> {
        let object = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
        let mut profiles = Cache::<Profile>::default();
        profiles.upsert(&object.to_string()).unwrap();
        Arc::clone(&profiles.get("p").unwrap().value)
    }

    fn changed(pod: &Value, specs: &[Value]) -> Value {
        let profiles: Vec<_> = specs.iter().map(profile).collect();
        Value::Object(change(&pod.to_string(), &profiles).unwrap())
    }

    #[test]
    fn a_suffix_stands_once_however_often_the_profile_is_applied() {
        let suffix = [json!({"labelSuffixes": {"x": "-s"}})];
        let pod = |value: &str| json!({"metadata": {"labels": {"x": value}}, "spec": {}});
        assert_eq!(changed(&pod("v"), &suffix), json!({"metadata": {"labels": {"x": "v-s"}}}));
        assert_eq!(changed(&pod("v-s"), &suffix), json!({}));
    }

    /// Also when the first of them is applied alone later, or the last one was there before.
    #[test]
    fn suffixes_of_several_profiles_stand_once_and_in_their_order() {
        let (x, y) = (json!({"labelSuffixes": {"k": "-x"}}), json!({"labelSuffixes": {"k": "-y"}}));
        let pod = |value: &str| json!({"metadata": {"labels": {"k": value}}, "spec": {}});
        let both = [x, y.clone()];
        assert_eq!(changed(&pod("v-x-y"), &both), json!({}));
        assert_eq!(changed(&pod("v-x-y"), &[y]), json!({}));
        for before in ["v", "v-x", "v-y"] {
            assert_eq!(changed(&pod(before), &both), json!({"metadata": {"labels": {"k": "v-x-y"}}}), "{before}");
        }
    }

    #[test]
    fn scheduler_and_priority_class_stay() {
        let pod = json!({"metadata": {}, "spec": {"schedulerName": "default-scheduler"}});
        let spec = json!({"schedulerName": "koord-scheduler", "priorityClassName": "koord-batch", "qosClass": "BE"});
        assert_eq!(changed(&pod, &[spec]), json!({"metadata": {"labels": {"koordinator.sh/qosClass": "BE"}}}));
    }

    #[test]
    fn patches_merge_lists_by_their_keys_and_leave_the_status() {
        let pod = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["f"]},
                         "spec": {"tolerations": [{"key": "t"}], "schedulingGates": [{"name": "g"}], "hostNetwork": true}});
        let patch = json!({"metadata": {"labels": {"a": null}, "finalizers": ["more"]},
                           "spec": {"schedulingGates": [{"$patch": "delete", "name": "g"}]}, "status": {"phase": "Running"}});
        assert_eq!(
            changed(&pod, &[json!({ "patch": patch })]),
            json!({"metadata": {"labels": {"a": null}, "finalizers": ["more", "f"]}, "spec": {"schedulingGates": []}})
        );
    }

    #[test]
    fn the_profile_that_comes_last_wins() {
        let pod = json!({"metadata": {"labels": {"a": "2"}}, "spec": {}});
        let one = |value: &str| json!({"labels": {"a": value}});
        assert_eq!(changed(&pod, &[one("1"), one("2")]), json!({}));
    }
}
