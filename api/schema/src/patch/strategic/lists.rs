//! Lists: which items are the same item, what directives among them say, and in which order they stand.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{DIRECTIVE, Fields, Strategy, merge_objects, strategy, unknown_directive};
use crate::{go_text, patch::PatchError, typed::TypeNode};

/// How items of a list are distinguished: by one field, or, for scalars, by themselves.
#[derive(Clone, Copy)]
pub(super) struct MergeKey<'a>(Option<&'a str>);

impl<'a> MergeKey<'a> {
    pub(super) fn of<N: TypeNode>(node: Option<&'a N>) -> Self {
        MergeKey(node.and_then(TypeNode::patch_merge_key))
    }

    /// A text that is equal for items which are the same item.
    pub(super) fn identity(self, item: &Value) -> Result<String, PatchError> {
        match self.0 {
            None => Ok(item.to_string()),
            Some(key) => match item.as_object().map(|fields| fields.get(key)) {
                Some(Some(value)) => Ok(value.to_string()),
                Some(None) => Err(no_merge_key(item, key)),
                None => Err(PatchError::Unmergeable(format!("{} is not a map", go_text::plain(item)))),
            },
        }
    }
}

pub(super) fn merge_lists<N: TypeNode>(
    current: Vec<Value>,
    change: Vec<Value>,
    node: Option<&N>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if strategy(node) != Strategy::Merge {
        return Ok(change);
    }
    if current.is_empty() && change.is_empty() {
        return Ok(current);
    }
    if !of_one_kind(current.iter().chain(&change))? {
        return merge_scalars(current, &change, deletes);
    }
    let key = MergeKey::of(node);
    let Some(key_name) = key.0 else {
        return Err(PatchError::Unmergeable("cannot merge lists without merge key for type struct".to_owned()));
    };
    let (live, change) = run_item_directives(current, change, key, key_name)?;
    let item_node = node.and_then(TypeNode::item);
    let mut merged = live.clone();
    let mut places: HashMap<String, usize> = HashMap::with_capacity(merged.len());
    for (place, item) in merged.iter().enumerate() {
        if let Ok(identity) = key.identity(item) {
            places.entry(identity).or_insert(place);
        }
    }
    for item in &change {
        let identity = key.identity(item)?;
        let Value::Object(fields) = item.clone() else { continue };
        let place = places.get(&identity).copied();
        if let Some((place, Value::Object(original))) = place.map(|place| (place, merged[place].take())) {
            merged[place] = Value::Object(merge_objects(original, fields, item_node.as_ref())?);
        } else {
            places.insert(identity, merged.len());
            merged.push(Value::Object(merge_objects(Fields::new(), fields, item_node.as_ref())?));
        }
    }
    in_order(merged, &change, &live, key)
}

/// Carries out `$patch` in list items; gives what is left of the list and of the patch.
fn run_item_directives(
    current: Vec<Value>,
    change: Vec<Value>,
    key: MergeKey<'_>,
    key_name: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(change.len());
    let mut gone = HashSet::new();
    let mut replace = false;
    for item in change {
        let Some(fields) = item.as_object() else { continue };
        match fields.get(DIRECTIVE) {
            None => plain.push(item),
            Some(Value::String(word)) if word == "delete" => {
                gone.insert(key.identity(&item)?);
            }
            Some(Value::String(word)) if word == "replace" => replace = true,
            Some(Value::String(word)) if word == "merge" => {
                return Err(PatchError::Unmergeable("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(directive) => return Err(unknown_directive(directive, fields)),
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    let is_gone = |item: &Value| item.get(key_name).is_some_and(|value| gone.contains(&value.to_string()));
    Ok((current.into_iter().filter(|item| !is_gone(item)).collect(), plain))
}

fn merge_scalars(current: Vec<Value>, change: &[Value], deletes: bool) -> Result<Vec<Value>, PatchError> {
    if deletes {
        let gone: HashSet<String> = change.iter().map(Value::to_string).collect();
        return Ok(current.into_iter().filter(|item| !gone.contains(&item.to_string())).collect());
    }
    let mut seen = HashSet::new();
    let all = current.iter().chain(change).filter(|item| seen.insert(item.to_string())).cloned().collect();
    in_order(all, change, &current, MergeKey(None))
}

/// Orders `items`: those that the patch names in the patch's order, the others in the live order, and between the
/// two kinds the live order decides as far as it knows both.
pub(super) fn in_order(
    items: Vec<Value>,
    patch_order: &[Value],
    live_order: &[Value],
    key: MergeKey<'_>,
) -> Result<Vec<Value>, PatchError> {
    let in_patch = ranks(patch_order, key)?;
    let in_live = ranks(live_order, key)?;
    let mut of_patch = Vec::new();
    let mut of_live = Vec::new();
    for item in items {
        let identity = key.identity(&item)?;
        match in_patch.get(&identity) {
            Some(rank) => of_patch.push((*rank, in_live.get(&identity).copied(), item)),
            None => of_live.push((in_live.get(&identity).copied(), item)),
        }
    }
    of_patch.sort_by_key(|(rank, ..)| *rank);
    of_live.sort_by_key(|(rank, _)| rank.unwrap_or(usize::MAX));

    let mut ordered = Vec::with_capacity(of_patch.len() + of_live.len());
    let mut live = of_live.into_iter().peekable();
    for (_, patch_rank, item) in of_patch {
        while let Some((_, earlier)) = live.next_if(|(live_rank, _)| match (live_rank, patch_rank) {
            (Some(live_rank), Some(patch_rank)) => *live_rank < patch_rank,
            _ => false,
        }) {
            ordered.push(earlier);
        }
        ordered.push(item);
    }
    ordered.extend(live.map(|(_, item)| item));
    Ok(ordered)
}

fn ranks(order: &[Value], key: MergeKey<'_>) -> Result<HashMap<String, usize>, PatchError> {
    let mut ranks = HashMap::with_capacity(order.len());
    for (rank, item) in order.iter().enumerate() {
        ranks.entry(key.identity(item)?).or_insert(rank);
    }
    Ok(ranks)
}

/// Whether all items are objects; scalars of one kind are the other legal case.
fn of_one_kind<'v>(items: impl Iterator<Item = &'v Value>) -> Result<bool, PatchError> {
    let mut kind = None;
    for item in items {
        if item.is_array() {
            return Err(PatchError::DoesNotApply("lists of lists are not supported".to_owned()));
        }
        let this = std::mem::discriminant(item);
        if kind.replace((this, item.is_object())).is_some_and(|(other, _)| other != this) {
            return Err(PatchError::Unmergeable("list element types are not identical".to_owned()));
        }
    }
    Ok(kind.is_some_and(|(_, are_objects)| are_objects))
}

fn no_merge_key(item: &Value, key: &str) -> PatchError {
    PatchError::Unmergeable(format!("map: {} does not contain declared merge key: {key}", go_text::plain(item)))
}
