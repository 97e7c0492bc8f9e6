//! What profiles make of pods that wait (§4.5, §3.2.1): applied once more, in the order of their names, they change nothing.

use serde_json::{Map, Value, json};

use super::entry;
use crate::{people::name_of, waiting::is_frozen};

/// Labels or annotations.
type Texts = Map<String, Value>;

pub(super) fn check(pod: &Value, namespaces: &[Value], profiles: &[Value]) -> Result<(), String> {
    if is_frozen(&name_of(pod)) {
        return Ok(());
    }
    let mut concerned: Vec<&Value> = profiles.iter().filter(|profile| concerns(profile, pod, namespaces)).collect();
    concerned.sort_by_key(|profile| name_of(profile));
    let chances = concerned.iter().filter(|profile| is_by_chance(profile)).count();
    // Whom chance chose is not ours to know, but somebody it must have been.
    let found = (texts(pod, "labels"), texts(pod, "annotations"));
    let fits = |choice: u32| {
        let mut drawn = choice;
        let applied: Vec<&Value> = concerned
            .iter()
            .copied()
            .filter(|profile| {
                let is_in = !is_by_chance(profile) || drawn & 1 == 1;
                if is_by_chance(profile) {
                    drawn >>= 1;
                }
                is_in
            })
            .collect();
        applied_again(&applied, &found).is_some_and(|again| again == found)
    };
    if (0..1 << chances).any(fits) {
        return Ok(());
    }
    let names: Vec<String> = concerned.iter().map(|profile| name_of(profile)).collect();
    Err(format!("pod {} does not follow the profiles {names:?}: {}", name_of(pod), pod["metadata"]))
}

fn concerns(profile: &Value, pod: &Value, namespaces: &[Value]) -> bool {
    let spec = &profile["spec"];
    let namespace = namespaces.iter().find(|namespace| namespace["metadata"]["name"] == pod["metadata"]["namespace"]);
    let selects = |selector: &Value, object: &Value| {
        let wanted = selector["matchLabels"].as_object().into_iter().flatten();
        wanted.into_iter().all(|(key, value)| entry(object, "labels", key) == value.as_str())
    };
    entry(profile, "labels", "config.koordinator.sh/controller-managed") == Some("true")
        && spec["probability"] != 0
        && spec["selector"].is_object()
        && selects(&spec["selector"], pod)
        && namespace.is_some_and(|namespace| selects(&spec["namespaceSelector"], namespace))
}

fn is_by_chance(profile: &Value) -> bool {
    profile["spec"]["probability"] == "50%"
}

fn texts(object: &Value, map: &str) -> Texts {
    object["metadata"][map].as_object().cloned().unwrap_or_default()
}

/// What comes of the profiles where nothing had been appended yet; none where not all of them had appended.
fn applied_again(profiles: &[&Value], (labels, annotations): &(Texts, Texts)) -> Option<(Texts, Texts)> {
    let (mut labels, mut annotations) = (labels.clone(), annotations.clone());
    for spec in profiles.iter().rev().map(|profile| &profile["spec"]) {
        for (key, suffix) in entries(&spec["labelSuffixes"]) {
            if let Some(value) = labels.get(key).and_then(Value::as_str) {
                let without = value.strip_suffix(suffix.as_str()?)?.to_owned();
                labels.insert(key.clone(), Value::String(without));
            }
        }
    }
    for spec in profiles.iter().map(|profile| &profile["spec"]) {
        let written =
            |map: &mut Texts, from: &Value| map.extend(entries(from).map(|(key, value)| (key.clone(), value.clone())));
        let copied = |map: &mut Texts, keys: &Value| {
            for (old, new) in entries(keys) {
                let value = map.get(old).cloned().unwrap_or_else(|| json!(""));
                map.insert(new.as_str().unwrap_or_default().to_owned(), value);
            }
        };
        written(&mut labels, &spec["labels"]);
        written(&mut annotations, &spec["annotations"]);
        copied(&mut labels, &spec["labelKeysMapping"]);
        copied(&mut annotations, &spec["annotationKeysMapping"]);
        for (key, suffix) in entries(&spec["labelSuffixes"]) {
            if let Some(Value::String(value)) = labels.get_mut(key) {
                value.push_str(suffix.as_str()?);
            }
        }
        if let Some(qos) = spec["qosClass"].as_str() {
            labels.insert("koordinator.sh/qosClass".to_owned(), json!(qos));
        }
        if let Some(priority) = spec["koordinatorPriority"].as_i64() {
            labels.insert("koordinator.sh/priority".to_owned(), json!(priority.to_string()));
        }
        written(&mut labels, &spec["patch"]["metadata"]["labels"]);
        written(&mut annotations, &spec["patch"]["metadata"]["annotations"]);
    }
    Some((labels, annotations))
}

fn entries(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flatten()
}
