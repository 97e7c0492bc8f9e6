//! Lists and maps that are written out: their items are of one type.

use kube_cel::cel::common::ast::{EntryExpr, ListExpr, MapExpr};

use super::{Checker, Typed};
use crate::cel::types::Type;

impl Checker<'_> {
    /// The type of several items together.
    fn join(&mut self, before: Option<Type>, item: &Typed) -> Type {
        match before {
            None => item.type_.clone(),
            Some(before) if self.bindings.assign(&before, &item.type_) => before.most_general(item.type_.clone()),
            Some(before) => self.mismatch(&before, item),
        }
    }

    /// What an optional item adds to a list or map: the value in it.
    fn unwrapped(&mut self, item: Typed) -> Typed {
        let type_ = match item.type_ {
            Type::Optional(value) => (*value).clone(),
            Type::Dyn => Type::Dyn,
            ref other => self.mismatch(&Type::optional(other.clone()), &item),
        };
        Typed { type_, ..item }
    }

    pub(super) fn list(&mut self, list: &ListExpr) -> Typed {
        let mut joined = None;
        let mut items = Vec::new();
        for (index, element) in list.elements.iter().enumerate() {
            let mut item = self.check(element);
            if list.optional_indices.contains(&index) {
                item = self.unwrapped(item);
            }
            joined = Some(self.join(joined, &item));
            items.push((item.type_, item.place));
        }
        self.literal(items);
        let items = joined.unwrap_or_else(|| self.free());
        Typed { type_: Type::list(items), place: 0 }
    }

    pub(super) fn map(&mut self, map: &MapExpr) -> Typed {
        let (mut keys, mut values) = (None, None);
        let (mut key_items, mut value_items) = (Vec::new(), Vec::new());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.check(&entry.key);
            keys = Some(self.join(keys, &key));
            let mut value = self.check(&entry.value);
            if entry.optional {
                value = self.unwrapped(value);
            }
            values = Some(self.join(values, &value));
            key_items.push((key.type_, key.place));
            value_items.push((value.type_, value.place));
        }
        self.literal(key_items);
        self.literal(value_items);
        let keys = keys.unwrap_or_else(|| self.free());
        let values = values.unwrap_or_else(|| self.free());
        Typed { type_: Type::map(keys, values), place: 0 }
    }

    pub(super) fn literal(&mut self, items: Vec<(Type, usize)>) {
        if self.exempt == 0 {
            self.literals.push(items);
        }
    }

    /// Items of one literal have one type: what is not known is another type than what is.
    pub(super) fn check_literals(&mut self) {
        if !self.mistakes.is_empty() {
            return;
        }
        for items in std::mem::take(&mut self.literals) {
            let mut items = items.iter().map(|(type_, place)| (self.bindings.resolve_fully(type_), *place));
            let Some((first, _)) = items.next() else { continue };
            let Some((other, place)) = items.find(|(type_, _)| *type_ != first) else { continue };
            let message = format!("expected type '{}' but found '{}'", first.name(), other.name());
            self.mistake(place, message);
        }
    }
}
