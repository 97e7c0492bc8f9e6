//! The entries of `managedFields`: read, changed, written in the API server's order.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::Writer;
use crate::fieldset::FieldSet;

const ANCIENT: &str = "ancient-changes";

/// What distinguishes two entries. Appliers are the same manager in every version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub manager: String,
    pub applies: bool,
    /// Empty for appliers.
    pub api_version: String,
    pub subresource: String,
}

/// What one manager owns.
#[derive(Clone, Debug)]
pub(super) struct Ownership {
    pub set: FieldSet,
    pub api_version: String,
    pub time: Option<String>,
}

/// All entries of one object; none is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(BTreeMap<Identity, Ownership>);

impl Identity {
    pub(super) fn of_update(writer: &Writer<'_>) -> Self {
        Identity {
            manager: named(writer.manager),
            applies: false,
            api_version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
        }
    }

    pub(super) fn of_apply(writer: &Writer<'_>) -> Self {
        Identity { applies: true, api_version: String::new(), ..Self::of_update(writer) }
    }
}

fn named(manager: &str) -> String {
    if manager.is_empty() { "unknown".to_owned() } else { manager.to_owned() }
}

impl Entries {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Identity, &Ownership)> {
        self.0.iter()
    }

    pub(super) fn insert(&mut self, identity: Identity, ownership: Ownership) {
        if ownership.set.is_empty() {
            self.0.remove(&identity);
        } else {
            self.0.insert(identity, ownership);
        }
    }

    pub(super) fn remove(&mut self, identity: &Identity) -> Option<Ownership> {
        self.0.remove(identity)
    }

    /// Takes fields from every manager; managers without fields go.
    pub(super) fn take_from_all(&mut self, lost: &FieldSet) {
        if lost.is_empty() {
            return;
        }
        for ownership in self.0.values_mut() {
            ownership.set.subtract(lost);
        }
        self.0.retain(|_, ownership| !ownership.set.is_empty());
    }

    /// Merges the oldest updaters of a version into one entry until no more than `max` are left.
    pub(super) fn cap_updaters(&mut self, max: usize) {
        let mut updaters: Vec<(Option<String>, Identity)> = self
            .0
            .iter()
            .filter(|(identity, _)| !identity.applies)
            .map(|(id, entry)| (entry.time.clone(), id.clone()))
            .collect();
        let mut count = updaters.len();
        updaters.sort();
        let mut first_of_version: HashMap<String, Identity> = HashMap::new();
        for (time, identity) in updaters {
            if count <= max {
                break;
            }
            let Some(ownership) = self.0.get(&identity).cloned() else { continue };
            let version = ownership.api_version.clone();
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, identity);
                continue;
            };
            let bucket = Identity {
                manager: ANCIENT.to_owned(),
                applies: false,
                api_version: version,
                subresource: String::new(),
            };
            if !self.0.contains_key(&bucket)
                && let Some(oldest) = self.0.remove(&first.clone())
            {
                self.0.insert(bucket.clone(), oldest);
            }
            if identity != bucket {
                self.0.remove(&identity);
            }
            if let Some(merged) = self.0.get_mut(&bucket) {
                merged.set = std::mem::take(&mut merged.set).union(&ownership.set);
                merged.time = time;
            }
            count -= 1;
        }
    }

    /// Writes `metadata.managedFields`, or removes it where there is nothing to say.
    pub(super) fn write_to(&self, object: &mut Value) {
        let mut sorted: Vec<(&Identity, &Ownership)> = self.0.iter().collect();
        // "Apply" stands before "Update", older entries before newer ones.
        sorted.sort_by(|(left_id, left), (right_id, right)| {
            let key = |id: &Identity, entry: &Ownership| {
                (!id.applies, entry.time.clone(), id.manager.clone(), entry.api_version.clone(), id.subresource.clone())
            };
            key(left_id, left).cmp(&key(right_id, right))
        });
        let entries: Vec<Value> = sorted.into_iter().map(|(identity, ownership)| entry(identity, ownership)).collect();
        let Some(object) = object.as_object_mut() else { return };
        if entries.is_empty() {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            return;
        }
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }
}

fn entry(identity: &Identity, ownership: &Ownership) -> Value {
    let mut entry = json!({
        "manager": identity.manager,
        "operation": if identity.applies { "Apply" } else { "Update" },
        "apiVersion": ownership.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": ownership.set.to_json(),
    });
    if let Some(time) = &ownership.time {
        entry["time"] = Value::from(time.as_str());
    }
    if !identity.subresource.is_empty() {
        entry["subresource"] = Value::from(identity.subresource.as_str());
    }
    entry
}

/// The entries of an object; `None` where they are malformed.
pub(super) fn of(object: &Value) -> Option<Entries> {
    let Some(list) = object.pointer("/metadata/managedFields").and_then(Value::as_array) else {
        return Some(Entries::default());
    };
    let mut entries = Entries::default();
    for entry in list {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text("fieldsType") != "FieldsV1" {
            return None;
        }
        let applies = match text("operation").as_str() {
            "Apply" => true,
            "Update" => false,
            _ => return None,
        };
        let set = FieldSet::from_json(entry.get("fieldsV1")?).ok()?;
        let api_version = text("apiVersion");
        let identity = Identity {
            manager: text("manager"),
            applies,
            api_version: if applies { String::new() } else { api_version.clone() },
            subresource: text("subresource"),
        };
        let time = Some(text("time")).filter(|time| !time.is_empty());
        entries.insert(identity, Ownership { set, api_version, time });
    }
    Some(entries)
}

/// The entries that a write starts from. Clients may change them, or empty them by `[]` or `[{}]`; what is malformed or
/// absent in the request falls back to the stored ones, so that clients which do not know them keep them.
pub(super) fn of_live_or_new(live: &Value, new: &Value, is_subresource: bool) -> Entries {
    let of_live = || of(live).unwrap_or_default();
    if is_subresource {
        return of_live();
    }
    match new.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => return Entries::default(),
        Some([only]) if only.as_object().is_some_and(Map::is_empty) => return Entries::default(),
        _ => {}
    }
    match of(new) {
        Some(entries) if !entries.is_empty() => entries,
        _ => of_live(),
    }
}

/// Takes `managedFields` out of an object.
pub(super) fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}
