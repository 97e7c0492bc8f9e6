//! Which names of a definition are accepted, and what its conditions say.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::registry::ResourceDef;

/// The names that other definitions of the same group have been given.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

// === impl Taken ===

impl Taken {
    /// Adds the names of what is served.
    pub(crate) fn add_served(&mut self, served: &ResourceDef) {
        self.resources.extend([served.plural.clone(), served.singular.clone()]);
        self.resources.extend(served.short_names.iter().cloned());
        self.kinds.extend([served.kind.clone(), served.list_kind.clone()]);
    }

    /// Adds the accepted names of a definition.
    pub(crate) fn add(&mut self, definition: &Value) {
        let names = &definition["status"]["acceptedNames"];
        let short_names = names["shortNames"].as_array().into_iter().flatten();
        let resources = [&names["plural"], &names["singular"]].into_iter().chain(short_names);
        self.resources
            .extend(resources.filter_map(Value::as_str).filter(|name| !name.is_empty()).map(ToOwned::to_owned));
        let kinds = [&names["kind"], &names["listKind"]];
        self.kinds
            .extend(kinds.into_iter().filter_map(Value::as_str).filter(|name| !name.is_empty()).map(ToOwned::to_owned));
    }
}

/// The names that a definition has from now on, and the condition `NamesAccepted`, without its time.
pub(crate) fn accept(definition: &Value, taken: &Taken) -> (Value, Value) {
    let wanted = &definition["spec"]["names"];
    let held = &definition["status"]["acceptedNames"];
    let mut accepted = held.as_object().cloned().unwrap_or_default();
    let mut conflict: Option<(&str, String)> = None;
    let fields = [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ];
    for (field, reason, in_use) in fields {
        let value = &wanted[field];
        let clash = |name: &Value| {
            let name = name.as_str()?;
            (in_use.contains(name)).then(|| format!("\"{name}\" is already in use"))
        };
        let clashes: Vec<String> = match value {
            _ if *value == held[field] => Vec::new(),
            Value::Array(names) => {
                let known = held[field].as_array().map(Vec::as_slice).unwrap_or_default();
                names.iter().filter(|name| !known.contains(name)).filter_map(clash).collect()
            }
            name => clash(name).into_iter().collect(),
        };
        match clashes.len() {
            0 => set(&mut accepted, field, value),
            1 => conflict = Some((reason, clashes.concat())),
            _ => conflict = Some((reason, format!("[{}]", clashes.join(", ")))),
        }
    }
    set(&mut accepted, "categories", &wanted["categories"]);
    for field in ["plural", "kind"] {
        accepted.entry(field).or_insert_with(|| json!(""));
    }
    let condition = match conflict {
        None => condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", false, reason, &message),
    };
    (Value::Object(accepted), condition)
}

fn set(names: &mut Map<String, Value>, field: &str, value: &Value) {
    match value {
        Value::Null => names.remove(field),
        value => names.insert(field.to_owned(), value.clone()),
    };
}

/// A condition without its time.
pub(crate) fn condition(type_: &str, status: bool, reason: &str, message: &str) -> Value {
    let status = if status { "True" } else { "False" };
    json!({"type": type_, "status": status, "reason": reason, "message": message})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str) -> Value {
        let list_kind = format!("{kind}List");
        json!({"spec": {"names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": list_kind}},
            "status": {"acceptedNames": {"plural": "", "kind": ""}}})
    }

    #[test]
    fn free_names_are_accepted() {
        let (names, condition) = accept(&definition("widgets", "Widget"), &Taken::default());
        assert_eq!(names, definition("widgets", "Widget")["spec"]["names"]);
        assert_eq!(condition["reason"], "NoConflicts");
    }

    #[test]
    fn the_last_conflict_is_told_and_free_names_are_still_taken() {
        let mut taken = Taken::default();
        let (names, _) = accept(&definition("widgets", "Widget"), &taken);
        taken.add(&json!({"status": {"acceptedNames": names}}));
        let (names, condition) = accept(&definition("gizmos", "Widget"), &taken);
        assert_eq!(names, json!({"plural": "gizmos", "kind": ""}));
        assert_eq!(condition["reason"], "ListKindConflict");
        assert_eq!(condition["message"], "\"WidgetList\" is already in use");
    }
}
