//! From the patch as it was written to what it does to each field.

use koord_schema::{patch::strategic, typed::TypeNode};
use serde_json::{Map, Value};

use super::{Change, Fields, General, Item, Keyed, Overlay, TextChanges};
use crate::{Excerpt, POD, PodNode, type_error, typed_patch};

impl Overlay {
    /// Prepares a patch. None is too odd for that: what cannot be carried out is refused when it meets a pod.
    pub fn new(patch: &Value) -> Self {
        let type_error = patch.as_object().and_then(|patch| type_error(patch, POD));
        Self::of(typed_patch(patch, POD, &PodNode::ROOT), type_error)
    }

    /// Prepares a patch as it stands.
    pub(super) fn of(patch: Value, type_error: Option<String>) -> Self {
        let touched = Excerpt::touched_by(&patch);
        let mut rest = patch.clone();
        let texts = take_texts(&mut rest);
        let fields = match rest.as_object() {
            Some(rest) if !has_directives(rest) => Some(fields(rest, PodNode::ROOT)),
            _ => None,
        };
        let beside = fields.as_ref().map_or(Excerpt::Whole, beside);
        Self { patch, touched, texts, fields, beside, type_error }
    }
}

/// Takes what the patch does to labels and annotations out of it; none where that is more than to set and remove.
fn take_texts(patch: &mut Value) -> Option<(TextChanges, TextChanges)> {
    let Some(metadata) = patch.get_mut("metadata") else { return Some(Default::default()) };
    let metadata = metadata.as_object_mut().filter(|metadata| !has_directives(metadata))?;
    let mut take = |name| match metadata.remove(name) {
        None => Some(TextChanges::new()),
        Some(Value::Object(changes)) if !has_directives(&changes) => changes.into_iter().map(text_change).collect(),
        Some(_) => None,
    };
    Some((take("labels")?, take("annotations")?))
}

fn text_change((key, value): (String, Value)) -> Option<(String, Option<String>)> {
    match value {
        Value::String(value) => Some((key, Some(value))),
        Value::Null => Some((key, None)),
        _ => None,
    }
}

fn has_directives(fields: &Map<String, Value>) -> bool {
    fields.keys().any(|name| name.starts_with('$'))
}

fn fields(patch: &Map<String, Value>, node: PodNode) -> Fields {
    patch.iter().map(|(name, value)| (name.clone(), change(name, value, node))).collect()
}

fn change(name: &str, value: &Value, parent: PodNode) -> Change {
    let general = || General { parent, patch: Value::Object(Map::from_iter([(name.to_owned(), value.clone())])) };
    let node = parent.field(name);
    match (value, node) {
        (Value::Null, _) => Change::Remove,
        (Value::Object(inside), Some(node)) if !has_directives(inside) => match fresh(name, &general()) {
            Some(fresh) => Change::Inside { fields: fields(inside, node), fresh },
            None => Change::General(general()),
        },
        (Value::Array(list), Some(node)) if node.patch_strategy().is_some() => {
            items(name, list, node, general()).map_or_else(|| Change::General(general()), Change::Items)
        }
        (Value::Array(list), _) if list.iter().all(is_plain) => Change::Put(value.clone()),
        (Value::Object(_) | Value::Array(_), _) => Change::General(general()),
        (scalar, _) => Change::Put(scalar.clone()),
    }
}

/// The field where there is none; none when the merge refuses that.
fn fresh(name: &str, general: &General) -> Option<Value> {
    let mut fresh = strategic::apply(Value::Object(Map::new()), &general.patch, &general.parent).ok()?;
    fresh.as_object_mut()?.remove(name)
}

fn items(name: &str, list: &[Value], node: PodNode, general: General) -> Option<Keyed> {
    let key = node.merge_key()?;
    let below = node.item()?;
    let mut items: Vec<Item> = Vec::with_capacity(list.len());
    for item in list {
        let mut item = item.as_object().filter(|item| !has_directives(item))?.clone();
        let (identity, name) = match item.remove(key)? {
            Value::String(name) => (Value::from(name.as_str()).to_string(), Some(name)),
            Value::Number(number) => (number.to_string(), None),
            _ => return None,
        };
        if items.iter().any(|known| known.identity == identity) {
            return None;
        }
        items.push(Item { identity, name, fields: fields(&item, below) });
    }
    let Some(Value::Array(fresh)) = fresh(name, &general) else { return None };
    (!items.is_empty() && fresh.len() == items.len()).then_some(Keyed { key, items, fresh, general })
}

/// Whether a new value stays as it is: `null` and directives do not enter a new object.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => !has_directives(fields) && fields.values().all(is_plain),
        _ => true,
    }
}

/// What is read or changed. Items are identified by their keys, which stay.
fn beside(fields: &Fields) -> Excerpt {
    let part = |change: &Change| match change {
        Change::Inside { fields, .. } => beside(fields),
        Change::Items(Keyed { items, .. }) => {
            let all = items.iter().map(|item| beside(&item.fields)).reduce(Excerpt::and);
            Excerpt::Items(Box::new(all.unwrap_or(Excerpt::Fields(Vec::new()))))
        }
        Change::Remove | Change::Put(_) | Change::General(_) => Excerpt::Whole,
    };
    Excerpt::fields(fields.iter().map(|(name, change)| (name.as_str(), part(change))))
}
