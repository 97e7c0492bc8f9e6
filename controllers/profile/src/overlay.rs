//! A profile's own strategic merge patch, prepared: most patches set a few fields, and such a patch is carried out
//! by looking at these fields in the text of a pod.
//!
//! What only the general merge knows (directives, lists of scalars, lists whose order changes) becomes a tree, but
//! only that field.

mod compile;
mod glance;

use koord_resource::{admission::Patch, field::Path};
use koord_schema::patch::{PatchError, strategic};
use serde_json::{Map, Value, value::RawValue};

use self::glance::{equals, glance, keys};
use crate::{Excerpt, PodNode, Texts};

/// A strategic merge patch of a pod.
#[derive(Debug, PartialEq)]
pub struct Overlay {
    patch: Value,
    touched: Excerpt,
    /// What it changes in labels and annotations; none where it does more to them than to set and remove.
    texts: Option<(TextChanges, TextChanges)>,
    /// Everything else; none when the patch is no object or has directives at its root.
    fields: Option<Fields>,
    beside: Excerpt,
    type_error: Option<String>,
}

/// A patch that cannot be carried out on a pod.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// The pod is no JSON, or a value cannot be written.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The patch does not fit the pod.
    #[error(transparent)]
    Patch(#[from] PatchError),
}

/// New values by key; none removes the key.
type TextChanges = Vec<(String, Option<String>)>;
type Fields = Vec<(String, Change)>;

/// What becomes of a field.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Remove,
    /// Whatever is there gives way to this value.
    Put(Value),
    /// An object is changed field by field; what is no object gives way to `fresh`.
    Inside {
        fields: Fields,
        fresh: Value,
    },
    Items(Keyed),
    General(General),
}

/// A list whose items are distinguished by a key.
#[derive(Clone, Debug, PartialEq)]
struct Keyed {
    key: &'static str,
    /// No two have one key.
    items: Vec<Item>,
    /// The list where there is none.
    fresh: Vec<Value>,
    general: General,
}

#[derive(Clone, Debug, PartialEq)]
struct Item {
    /// The key as JSON text.
    identity: String,
    /// The key of a text.
    name: Option<String>,
    fields: Fields,
}

/// A field that is merged as a tree.
#[derive(Clone, Debug, PartialEq)]
struct General {
    parent: PodNode,
    /// An object of this one field, with what the patch says about it.
    patch: Value,
}

// === impl Overlay ===

impl Overlay {
    /// Merges the patch into a pod.
    pub fn merge(&self, pod: Value) -> Result<Value, PatchError> {
        strategic::apply(pod, &self.patch, &PodNode::ROOT)
    }

    /// What of a pod the patch may read or change.
    pub fn touched(&self) -> &Excerpt {
        &self.touched
    }

    /// Why no pod can be decoded once it is merged with the patch; none where it can.
    pub fn type_error(&self) -> Option<&str> {
        self.type_error.as_deref()
    }

    /// Whether [`apply_texts`](Self::apply_texts) and [`write`](Self::write) do together what the patch says, for a
    /// pod that has `metadata` and `spec` and of which nobody else reads or changes more than `others` beside labels
    /// and annotations. Lists of which both concern items must [keep their places](Self::keeps_places).
    pub fn is_apart_from(&self, others: &Excerpt) -> bool {
        self.fields.is_some() && self.texts.is_some() && self.beside.is_apart_from(others)
    }

    /// Whether each item that the patch names in this list of the spec is one of these, found once and in the same
    /// order: then no item moves.
    pub fn keeps_places<'n>(&self, list: &str, names: impl Iterator<Item = &'n str>) -> bool {
        let Some(Change::Items(Keyed { items, .. })) = self.field("spec").and_then(|spec| spec.field(list)) else {
            return true;
        };
        let mut wanted = items.iter();
        let mut next = wanted.next();
        for name in names {
            if name.is_empty() {
                return false;
            }
            if next.is_some_and(|item| item.name.as_deref() == Some(name)) {
                next = wanted.next();
            } else if items.iter().any(|item| item.name.as_deref() == Some(name)) {
                return false;
            }
        }
        next.is_none()
    }

    fn field(&self, name: &str) -> Option<&Change> {
        self.fields.iter().flatten().find(|(known, _)| known == name).map(|(_, change)| change)
    }

    /// Changes labels and annotations.
    pub fn apply_texts<'a>(&'a self, labels: &mut Texts<'a>, annotations: &mut Texts<'a>) {
        let Some((of_labels, of_annotations)) = &self.texts else { return };
        for (changes, texts) in [(of_labels, labels), (of_annotations, annotations)] {
            for (key, value) in changes {
                match value {
                    Some(value) => texts.set(key.as_str(), value.as_str()),
                    None => texts.remove(key),
                }
            }
        }
    }

    /// Adds to `patch` what else changes in the pod of this text.
    pub fn write(&self, pod: &str, patch: &mut Patch) -> Result<(), OverlayError> {
        let Some(fields) = &self.fields else { return Ok(()) };
        write_fields(fields, pod, &Path::root(""), patch)
    }
}

impl Change {
    fn field(&self, name: &str) -> Option<&Change> {
        let Self::Inside { fields, .. } = self else { return None };
        fields.iter().find(|(known, _)| known == name).map(|(_, change)| change)
    }

    fn write(
        &self,
        name: &str,
        at: &Path<'_>,
        current: Option<&RawValue>,
        patch: &mut Patch,
    ) -> Result<(), OverlayError> {
        let text = current.map(RawValue::get);
        match (self, text) {
            (Self::Remove, Some(_)) => patch.remove(at)?,
            (Self::Remove, None) => {}
            (Self::Put(value), Some(text)) if equals(value, text) => {}
            (Self::Inside { fields, .. }, Some(text)) if text.starts_with('{') => {
                write_fields(fields, text, at, patch)?;
            }
            (Self::Items(list), Some(text)) if text.starts_with('[') => list.write(name, at, text, patch)?,
            (Self::Put(fresh) | Self::Inside { fresh, .. }, Some(_)) => patch.replace(at, fresh)?,
            (Self::Put(fresh) | Self::Inside { fresh, .. }, None) => patch.add(at, fresh)?,
            (Self::Items(Keyed { fresh, .. }), Some(_)) => patch.replace(at, fresh)?,
            (Self::Items(Keyed { fresh, .. }), None) => patch.add(at, fresh)?,
            (Self::General(general), text) => general.write(name, at, text, patch)?,
        }
        Ok(())
    }
}

fn write_fields(fields: &Fields, text: &str, at: &Path<'_>, patch: &mut Patch) -> Result<(), OverlayError> {
    let current = glance(text, fields)?;
    for ((name, change), current) in fields.iter().zip(current) {
        change.write(name, &at.key(name), current, patch)?;
    }
    Ok(())
}

impl Keyed {
    fn write(&self, name: &str, at: &Path<'_>, text: &str, patch: &mut Patch) -> Result<(), OverlayError> {
        let current: Vec<&RawValue> = serde_json::from_str(text)?;
        let Some(keys) = keys(&current, self.key) else { return self.general.write(name, at, Some(text), patch) };
        let place = |item: &Item| keys.iter().position(|key| *key == item.identity);
        if !self.items.iter().any(|item| place(item).is_some()) {
            // New items come first, in the patch's order.
            for (index, item) in self.fresh.iter().enumerate() {
                patch.add(&at.index(index), item)?;
            }
            return Ok(());
        }
        let places = || self.items.iter().map(place);
        if !places().is_sorted_by(|one, next| one.is_some() && one < next) || places().any(|place| place.is_none()) {
            return self.general.write(name, at, Some(text), patch);
        }
        for (item, place) in self.items.iter().zip(places()) {
            let Some((place, current)) = place.and_then(|place| Some((place, current.get(place)?))) else { continue };
            write_fields(&item.fields, current.get(), &at.index(place), patch)?;
        }
        Ok(())
    }
}

impl General {
    fn write(&self, name: &str, at: &Path<'_>, text: Option<&str>, patch: &mut Patch) -> Result<(), OverlayError> {
        let mut document = Map::new();
        if let Some(text) = text {
            document.insert(name.to_owned(), serde_json::from_str(text)?);
        }
        let document = Value::Object(document);
        let merged = strategic::apply(document.clone(), &self.patch, &self.parent)?;
        match (document.get(name), merged.get(name)) {
            (Some(before), Some(after)) => patch.differences(at, before, after)?,
            (None, Some(after)) => patch.add(at, after)?,
            (Some(_), None) => patch.remove(at)?,
            (None, None) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use koord_schema::patch::json;
    use serde_json::json;

    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"name": "n", "labels": {"a": "1"}, "finalizers": ["x"], "odd": null},
            "spec": {
                "containers": [
                    {"name": "a", "image": "a:1", "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}],
                     "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81}, {"containerPort": 80, "protocol": "UDP"}]},
                    {"name": "b", "image": "b:1"}
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "tolerations": [{"key": "x", "operator": "Exists"}],
                "nodeSelector": {"pool": "general", "zone": "a"},
                "hostNetwork": true, "terminationGracePeriodSeconds": 30, "dnsPolicy": "Default"
            }
        })
    }

    /// The pod after the overlay, and as the general merge has it.
    fn both_ways(patch: &Value, pod: &Value) -> (Value, Value) {
        let overlay = Overlay::of(patch.clone(), None);
        let mut changes = Patch::default();
        overlay.write(&pod.to_string(), &mut changes).unwrap();
        let after = match serde_json::from_slice(changes.as_bytes()) {
            Ok(operations) => json::apply(pod.clone(), &operations).unwrap(),
            Err(_) => pod.clone(),
        };
        (after, strategic::apply(pod.clone(), patch, &PodNode::ROOT).unwrap())
    }

    #[test]
    fn what_the_overlay_writes_is_what_the_merge_gives() {
        let of_spec = [
            json!({"terminationGracePeriodSeconds": 5, "hostNetwork": null, "hostPID": null, "dnsPolicy": "Default"}),
            json!({"nodeSelector": {"pool": "batch", "zone": null, "arch": "arm64"}, "dnsConfig": {"nameservers": ["10.0.0.1"], "options": null}}),
            json!({"tolerations": [{"operator": "Exists", "key": "x"}]}),
            json!({"tolerations": [{"key": "y", "none": null}], "nodeSelector": "odd", "dnsPolicy": {"a": {"b": null}}}),
            json!({"containers": [{"name": "a", "image": "a:2", "env": [{"name": "E", "value": "9"}]}]}),
            json!({"containers": [{"name": "a", "env": [{"name": "G", "value": "3"}, {"name": "H", "value": "4"}]}, {"name": "b", "env": [{"name": "E"}]}]}),
            json!({"containers": [{"name": "a", "env": [{"name": "G", "value": "3"}, {"name": "F", "value": "4"}]}]}),
            json!({"containers": [{"name": "a", "env": [{"name": "F", "value": "3"}, {"name": "E", "value": "4"}]}]}),
            json!({"containers": [{"name": "b", "image": "b:2"}, {"name": "a", "image": "a:2"}]}),
            json!({"containers": [{"name": "c", "image": "c:1"}, {"name": "d", "image": null}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 82}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "hostPort": 1}]}]}),
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"volumes": [{"name": "w", "configMap": {"name": "c", "none": null}}], "hostAliases": [{"ip": "10.0.0.1"}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/p"}}]}),
            json!({"volumes": {"name": "odd"}, "containers": "odd"}),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
            json!({"affinity": {"nodeAffinity": {"x": [1]}}, "initContainers": [{"name": "i"}], "imagePullSecrets": []}),
        ];
        let mut patches: Vec<Value> = of_spec.into_iter().map(|spec| json!({ "spec": spec })).collect();
        patches.push(json!({"metadata": {"finalizers": ["y"], "odd": {"a": 1}, "generateName": "g-"}, "status": {"phase": "Pending"}}));
        patches.push(json!({"metadata": {"ownerReferences": [{"uid": "u", "name": "o"}], "odd": null}}));
        for patch in &patches {
            let (overlaid, merged) = both_ways(patch, &pod());
            assert_eq!(overlaid, merged, "{patch}");
            let (again, _) = both_ways(patch, &merged);
            assert_eq!(again, merged, "{patch} once more");
        }
    }

    #[test]
    fn what_is_there_already_is_not_written() {
        let patch = json!({"spec": {
            "tolerations": [{"operator": "Exists", "key": "x"}], "terminationGracePeriodSeconds": 30, "hostPID": null,
            "containers": [{"name": "a", "image": "a:1", "env": [{"name": "F", "value": "2"}]}], "nodeSelector": {"zone": "a"},
        }});
        let mut changes = Patch::default();
        Overlay::new(&patch).write(&pod().to_string(), &mut changes).unwrap();
        assert_eq!(changes.as_str(), "");
    }

    #[test]
    fn labels_are_set_beside_the_rest_unless_more_is_done_to_them() {
        let overlay = Overlay::new(&json!({"metadata": {"labels": {"a": null, "b": "2"}, "annotations": {"c": "3"}}}));
        let shown = Excerpt::fields([("metadata", Excerpt::whole_fields(&["labels", "annotations"]))]);
        assert!(overlay.is_apart_from(&shown));
        let mut labels: Texts<'_> = serde_json::from_str(r#"{"a":"1"}"#).unwrap();
        let mut annotations = Texts::default();
        overlay.apply_texts(&mut labels, &mut annotations);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("b", "2")]);
        assert_eq!(annotations.get("c"), Some("3"));
        for more in [
            json!({"labels": null}),
            json!({"labels": {"a": 1}}),
            json!({"labels": {"$patch": "delete"}}),
            json!({"annotations": "odd"}),
        ] {
            assert!(
                !Overlay::new(&json!({ "metadata": more })).is_apart_from(&Excerpt::whole_fields(&["x"])),
                "{more}"
            );
        }
    }

    #[test]
    fn items_keep_their_places_when_each_is_found_once_and_in_order() {
        let overlay = Overlay::new(&json!({"spec": {"containers": [{"name": "a"}, {"name": "c"}]}}));
        let keeps = |names: &[&str]| overlay.keeps_places("containers", names.iter().copied());
        assert!(keeps(&["a", "b", "c"]) && keeps(&["a", "c", "d"]));
        for moved in [&["c", "a"][..], &["a"], &["a", "c", "a"], &["a", "", "c"], &[]] {
            assert!(!keeps(moved), "{moved:?}");
        }
        assert!(overlay.keeps_places("initContainers", [].into_iter()));
    }
}
