//! What changed between two objects, as sets of fields.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{FieldSet, Step, value::is_leaf};
use crate::typed::{Shape, TypeNode};

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Only the new object has them.
    pub added: FieldSet,
    /// Only the old object has them.
    pub removed: FieldSet,
    /// Leaves whose value differs.
    pub modified: FieldSet,
}

impl Comparison {
    /// The comparison without some fields and all that is below them.
    #[must_use]
    pub fn without(&self, ignored: &FieldSet) -> Comparison {
        Comparison {
            added: self.added.difference_below(ignored),
            removed: self.removed.difference_below(ignored),
            modified: self.modified.difference_below(ignored),
        }
    }

    /// The fields that the new object brought.
    pub fn changed(&self) -> FieldSet {
        self.added.clone().union(&self.modified)
    }
}

/// Compares two objects of one type.
pub fn compare<N: TypeNode>(old: &Value, new: &Value, node: &N) -> Comparison {
    let mut walk = Walk { path: Vec::new(), found: Comparison::default() };
    walk.children(Some(old), Some(new), Some(node));
    walk.found
}

struct Walk {
    path: Vec<Step>,
    found: Comparison,
}

impl Walk {
    fn step<N: TypeNode>(&mut self, step: Step, old: Option<&Value>, new: Option<&Value>, node: Option<&N>) {
        self.path.push(step);
        self.place(old, new, node);
        self.path.pop();
    }

    fn place<N: TypeNode>(&mut self, old: Option<&Value>, new: Option<&Value>, node: Option<&N>) {
        match (old, new) {
            (None, None) => return,
            (None, Some(_)) => self.found.added.insert(&self.path),
            (Some(_), None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) => {
                let one_value = |value: &Value| is_leaf(value, node);
                let both_empty = is_empty(old) && is_empty(new);
                if (one_value(old) && one_value(new)) || both_empty {
                    if !same(old, new) {
                        self.found.modified.insert(&self.path);
                    }
                    return;
                }
                if std::mem::discriminant(old) != std::mem::discriminant(new) && !old.is_null() && !new.is_null() {
                    self.found.modified.insert(&self.path);
                }
            }
        }
        self.children(old, new, node);
    }

    fn children<N: TypeNode>(&mut self, old: Option<&Value>, new: Option<&Value>, node: Option<&N>) {
        let shape = node.map_or(Shape::Untyped, TypeNode::shape);
        let fields = |value: Option<&'_ Value>| value.is_some_and(Value::is_object);
        if (fields(old) || fields(new)) && matches!(shape, Shape::Object | Shape::Untyped) {
            self.fields(old, new, node);
        }
        if matches!(shape, Shape::SetList | Shape::KeyedList)
            && let Some(node) = node
        {
            self.items(old, new, node);
        }
    }

    fn fields<N: TypeNode>(&mut self, old: Option<&Value>, new: Option<&Value>, node: Option<&N>) {
        let old = old.and_then(Value::as_object);
        let new = new.and_then(Value::as_object);
        for (name, old_field) in old.into_iter().flatten() {
            let new_field = new.and_then(|new| new.get(name));
            // Most fields stay as they are in most writes: no path is made for them.
            if new_field == Some(old_field) {
                continue;
            }
            let field_node = node.and_then(|node| node.field(name));
            self.step(Step::field(name), Some(old_field), new_field, field_node.as_ref());
        }
        for (name, new_field) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                let field_node = node.and_then(|node| node.field(name));
                self.step(Step::field(name), None, Some(new_field), field_node.as_ref());
            }
        }
    }

    /// Items are compared by identity; items that share one are compared together, as one value.
    fn items<N: TypeNode>(&mut self, old: Option<&Value>, new: Option<&Value>, node: &N) {
        let mut pairs: BTreeMap<Step, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old.and_then(Value::as_array).into_iter().flatten() {
            if let Some(step) = Step::of_item(node, item) {
                pairs.entry(step).or_default().0.push(item);
            }
        }
        for item in new.and_then(Value::as_array).into_iter().flatten() {
            if let Some(step) = Step::of_item(node, item) {
                pairs.entry(step).or_default().1.push(item);
            }
        }
        let item_node = node.item();
        for (step, (old, new)) in pairs {
            if old.len() <= 1 && new.len() <= 1 {
                self.step(step, old.first().copied(), new.first().copied(), item_node.as_ref());
                continue;
            }
            self.path.push(step);
            match (old.is_empty(), new.is_empty()) {
                (true, _) => self.found.added.insert(&self.path),
                (_, true) => self.found.removed.insert(&self.path),
                _ if old != new => self.found.modified.insert(&self.path),
                _ => {}
            }
            self.path.pop();
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Equality in which 1 and 1.0 are the same number.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}
