//! The merge of server-side apply: what the applied configuration says wins, lists are merged by identity.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use super::{Step, value::is_leaf};
use crate::typed::{Shape, TypeNode};

/// Merges an applied configuration into an object of the same type.
pub fn merge<N: TypeNode>(live: &Value, applied: &Value, node: &N) -> Value {
    merge_place(live, applied, Some(node))
}

fn merge_place<N: TypeNode>(live: &Value, applied: &Value, node: Option<&N>) -> Value {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) if !is_leaf(&Value::Object(Map::new()), node) => {
            let mut merged = live.clone();
            for (name, field) in applied {
                let field_node = node.and_then(|node| node.field(name));
                let value = match live.get(name) {
                    Some(current) => merge_place(current, field, field_node.as_ref()),
                    None => field.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(applied)) => match node {
            Some(node) if matches!(node.shape(), Shape::SetList | Shape::KeyedList) => {
                Value::Array(merge_items(live, applied, node))
            }
            _ => Value::Array(applied.clone()),
        },
        // A null says nothing about an object or a list that is merged part by part.
        (Value::Object(_) | Value::Array(_), Value::Null) if !is_leaf(live, node) && !is_empty(live) => live.clone(),
        _ => applied.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// The items of both lists: those of the applied list in its order, the others where they stood among them.
fn merge_items<N: TypeNode>(live: &[Value], applied: &[Value], node: &N) -> Vec<Value> {
    let item_node = node.item();
    let identities =
        |items: &[Value]| -> Vec<Option<Step>> { items.iter().map(|item| Step::of_item(node, item)).collect() };
    let (live_steps, applied_steps) = (identities(live), identities(applied));
    let index = |steps: &[Option<Step>]| -> HashMap<Step, usize> {
        let mut places = HashMap::with_capacity(steps.len());
        for (place, step) in steps.iter().enumerate() {
            if let Some(step) = step {
                places.entry(step.clone()).or_insert(place);
            }
        }
        places
    };
    let (live_places, applied_places) = (index(&live_steps), index(&applied_steps));
    let is_applied = |step: &Option<Step>| step.as_ref().is_some_and(|step| applied_places.contains_key(step));
    let merged_item = |place: usize| {
        let current = applied_steps[place].as_ref().and_then(|step| live_places.get(step)).map(|place| &live[*place]);
        match current {
            Some(current) => merge_place(current, &applied[place], item_node.as_ref()),
            None => applied[place].clone(),
        }
    };
    // The items of both lists, in the applied order: the next one that the live list is searched for.
    let mut shared: VecDeque<&Step> =
        applied_steps.iter().flatten().filter(|step| live_places.contains_key(*step)).collect();
    let mut done: HashSet<&Step> = HashSet::new();
    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let (mut next_live, mut next_applied) = (0, 0);
    while next_live < live.len() || next_applied < applied.len() {
        if next_live < live.len() && next_applied < applied.len() {
            if live_steps[next_live].is_some() && live_steps[next_live] == applied_steps[next_applied] {
                merged.push(merged_item(next_applied));
                done.extend(applied_steps[next_applied].as_ref());
                (next_live, next_applied) = (next_live + 1, next_applied + 1);
                shared.pop_front();
                continue;
            }
            if is_applied(&live_steps[next_live])
                && shared.front().is_some_and(|next| Some(*next) != live_steps[next_live].as_ref())
            {
                next_live += 1;
                continue;
            }
        }
        if next_live < live.len() {
            if !is_applied(&live_steps[next_live]) {
                merged.push(live[next_live].clone());
                next_live += 1;
                continue;
            }
            if live_steps[next_live].as_ref().is_some_and(|step| done.contains(step)) {
                next_live += 1;
            }
        }
        if next_applied < applied.len() {
            merged.push(merged_item(next_applied));
            let step = applied_steps[next_applied].as_ref();
            done.extend(step);
            if shared.front().copied() == step && step.is_some() {
                shared.pop_front();
            }
            next_applied += 1;
        } else if next_live < live.len() {
            // Whatever is left of the live list is applied already.
            next_live += 1;
        }
    }
    merged
}
