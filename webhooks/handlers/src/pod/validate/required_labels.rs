//! Labels that pods of some namespaces must have, by a ConfigMap.

use std::collections::BTreeMap;

use koord_resource::{
    admission::Denial,
    controller::ResourceKind,
    go_json::{Names, from_str_named},
};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Projection, WireObject},
};
use serde::Deserialize;

use crate::pod::{Parts, PodView};

/// Label of pods that need none of the labels.
const SKIP: &str = "pod.koordinator.sh/skip-enhanced-validation";

/// Refuses a pod that lacks a label which a rule requires.
pub(super) fn check(pod: &Parts<'_>, namespace: &str, view: PodView<'_>) -> Result<(), Denial> {
    if pod.metadata.labels.get(SKIP) == Some("true") {
        return Ok(());
    }
    let config = view.required_labels.read();
    let Some(entry) = config.get(&view.required_labels_name.key()) else { return Ok(()) };
    for rule in &entry.value.0 {
        if rule.namespace_whitelist.iter().any(|exempt| exempt == namespace) {
            continue;
        }
        let missing = |label: &&String| pod.metadata.labels.get(label).is_none();
        let missing: Vec<&str> = rule.required_labels.iter().filter(missing).map(String::as_str).collect();
        match missing[..] {
            [] => {}
            [label] => return Err(Denial::bad_request(format!("required label '{label}' is missing"))),
            ref labels => {
                let labels = labels.join(" ");
                return Err(Denial::bad_request(format!("required labels are missing: [{labels}]")));
            }
        }
    }
    Ok(())
}

// === the cache of the rules ===

/// Labels that pods must have, by a ConfigMap.
#[derive(Debug, PartialEq)]
pub(crate) struct RequiredLabels(pub(crate) Vec<LabelRule>);

/// Labels that pods of most namespaces must have.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LabelRule {
    /// Only its type matters.
    pub(crate) name: String,
    pub(crate) required_labels: Vec<String>,
    pub(crate) namespace_whitelist: Vec<String>,
}

/// What Go calls a rule.
const NAMES: Names = Names { structs: &[("LabelRule", "validating.ValidationRule")], ..Names::NONE };

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConfigMapMembers {
    data: Option<BTreeMap<String, String>>,
}

impl Projection for RequiredLabels {
    const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
    type Wire<'a> = WireObject<'a, ConfigMapMembers>;
    type Index = ();

    /// Rules that cannot be read leave the last good configuration in force, switched on or off as it was.
    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        let data = wire.members.data.unwrap_or_default();
        let enabled = data.get("enable").is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
        let rules = data.get("rules").map(|text| from_str_named(text, &NAMES)).transpose();
        let rules: Option<Vec<LabelRule>> = rules.map_err(|error| DecodeError::new("data.rules", error))?;
        Ok(Self(rules.filter(|_| enabled).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::store::{Sink as _, Store};

    use super::*;

    #[test]
    fn rules_that_cannot_be_read_leave_the_last_good_ones_in_force() {
        let cache = Store::<RequiredLabels>::default();
        let put = |revision: u32, data: &str| {
            let metadata = format!(r#"{{"namespace":"n","name":"c","uid":"u","resourceVersion":"{revision}"}}"#);
            cache.upsert(&format!(r#"{{"metadata":{metadata},"data":{data}}}"#)).unwrap();
            let cache = cache.read();
            let rules = cache.get("n/c").map_or(0, |entry| entry.value.0.len());
            (rules, cache.quarantined("n/c").map(|quarantined| quarantined.reason.to_string()))
        };
        assert_eq!(put(1, r#"{"enable":" True ","rules":"[{\"requiredLabels\":[\"app\"]}]"}"#), (1, None));
        let (rules, reason) = put(2, r#"{"enable":"true","rules":"["}"#);
        let ends = Some("data.rules: unexpected end of JSON input");
        assert_eq!((rules, reason.as_deref()), (1, ends));
        for (revision, data) in [(3, r#"{"enable":"false","rules":"["}"#), (4, r#"{"enable":"false","rules":""}"#)] {
            let (rules, reason) = put(revision, data);
            assert_eq!((rules, reason.as_deref()), (1, ends), "{data}");
        }
        let (rules, reason) = put(5, r#"{"enable":"true","rules":"[{\"name\":5}]"}"#);
        let name = "data.rules: json: cannot unmarshal number into Go struct field ValidationRule.name of type string";
        assert_eq!((rules, reason.as_deref()), (1, Some(name)));
        assert_eq!(put(6, r#"{"enable":"false","rules":"[{\"name\":null}]"}"#), (0, None));
        assert_eq!(put(7, r#"{"enable":"true","rules":"null"}"#), (0, None));
        assert_eq!(put(8, r#"{"enable":"true"}"#), (0, None));
    }
}
