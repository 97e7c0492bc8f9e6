//! Objects that say what nobody understands. Nothing else may suffer from that.

use http::Method;
use koord_runtime::random::Random;
use koord_types::catalogue::KEYS;
use serde_json::{Value, json};

use super::{DEVICES, GANGS, METRICS, Machine, QUOTAS, RESERVATIONS, Share, TOPOLOGIES, objects};
use crate::{
    Stage,
    people::name_of,
    scheduling::{NODES, PODS},
};

/// Values of annotations and labels.
const TEXTS: [&str; 10] = ["{", "[]", "null", "{}", "-1", "9E", "", "nonsense", "0-", r#"{"a":[{"b":null}]}"#];
/// What fields are set to, where the server lets it pass.
const FIELDS: [&str; 6] = [
    r#"{"spec": {"devices": [{"type": "gpu", "minor": 7}, {"type": "tpu", "minor": -1, "health": true}]}}"#,
    r#"{"spec": {"devices": [{"type": "gpu", "minor": 0, "health": true, "resources": {"koordinator.sh/gpu-core": "-9E"}}]}}"#,
    r#"{"zones": [{"name": "node-9999999", "type": "Node", "resources": [{"name": "cpu", "capacity": "9E", "allocatable": "-1", "available": "9E"}]}]}"#,
    r#"{"spec": {"minMember": -5, "scheduleTimeoutSeconds": -1, "owners": [], "ttl": "-3h"}}"#,
    r#"{"spec": {"max": {"cpu": "9E"}, "min": {"cpu": "-9E", "memory": "9E"}}}"#,
    r#"{"status": {"nodeMetric": {"nodeUsage": {"resources": {"cpu": "9E", "memory": "-1"}}}, "updateTime": null}}"#,
];
/// An annotation that is as long as annotations may be.
const LONG: usize = 200_000;

pub(super) struct Nonsense {
    pub(super) what: String,
    object: Value,
    collection: &'static str,
    patch: Value,
}

impl Nonsense {
    pub(super) fn draw(random: &Random) -> Self {
        let pick = |length: usize| usize::try_from(random.below(length as u64)).unwrap_or_default();
        let odd = Machine::of(Machine::COUNT - 1);
        let amount = 1 + random.below(4);
        let renamed = |mut object: Value| {
            object["metadata"]["name"] = json!("x");
            object
        };
        let (collection, object) = match random.below(8) {
            0 | 1 => {
                let number = random.below(3);
                (PODS, Share::of(random.below(16)).pod(&format!("x{number}"), amount, random))
            }
            2 => (NODES, odd.node()),
            3 => (DEVICES, odd.device()),
            4 => (TOPOLOGIES, odd.topology()),
            5 => (METRICS, objects::usage(&odd.name, amount, &jiff::Timestamp::UNIX_EPOCH)),
            6 => (QUOTAS, renamed(objects::quota(9, amount))),
            _ if amount < 3 => (GANGS, renamed(objects::gang())),
            _ => (RESERVATIONS, renamed(objects::reservation(9, amount, random))),
        };
        let (key, text) = (KEYS[pick(KEYS.len())].name(), TEXTS[pick(TEXTS.len())]);
        let (what, patch) = match random.below(8) {
            0..=4 => (format!("{key}={text}"), json!({"metadata": {"annotations": {key: text}}})),
            5 => (format!("label {key}={text}"), json!({"metadata": {"labels": {key: text}}})),
            6 if amount == 1 => (key.to_owned(), json!({"metadata": {"annotations": {key: "x".repeat(LONG)}}})),
            _ => {
                let patch = FIELDS[pick(FIELDS.len())];
                (patch.to_owned(), serde_json::from_str(patch).unwrap_or_default())
            }
        };
        let what = format!("{} of {collection}: {what}", name_of(&object));
        Self { what, object, collection, patch }
    }

    /// Creates the object with nonsense, or makes what is there say it; the code of the answer.
    pub(super) fn write(&self, stage: &mut Stage, random: &Random) -> u16 {
        let path = format!("{}/{}", self.collection, name_of(&self.object));
        if random.below(2) == 0 {
            let said = koord_resource::schema::patch::merge::apply(self.object.clone(), &self.patch);
            let created = stage.person(&Method::POST, self.collection, &said);
            if created != 409 {
                return created;
            }
        }
        let code = stage.person(&Method::PATCH, &path, &self.patch);
        if self.collection == METRICS {
            return stage.person(&Method::PATCH, &format!("{path}/status"), &self.patch).min(code);
        }
        code
    }
}
