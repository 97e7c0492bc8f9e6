//! The admission rules of a kind as a ValidatingAdmissionPolicy, for clusters that want them without a webhook.
//!
//! What the type states in words (`not_empty`, `immutable`, bounds, patterns, choices inside `admission(…)`) becomes CEL.
//! Functions (`check`, `check_update`) are Rust and stay with the webhook.

use koord_schema::{AdditionalProperties, ListType, Schema as Node};
use serde_json::{Value, json};

use super::{Declared, crd::sorted};
use crate::declare::escaped;

/// The policy and its binding; nothing for a kind whose admission rules are all functions.
pub fn validating_admission_policy(declared: &Declared) -> Option<[Value; 2]> {
    let info = &declared.info;
    let mut rules = Vec::new();
    let at = Walk { value: "object".to_owned(), old: Some("oldObject".to_owned()), path: String::new(), depth: 0 };
    at.node(&declared.rules(false), &declared.rules(true), &mut rules);
    if rules.is_empty() {
        return None;
    }
    let name = format!("{}.{}", info.plural, info.group);
    let validation = |Rule { expression, message, of_update }: Rule| {
        // A new object has no old one to be compared with.
        let expression =
            if of_update { format!("request.operation != 'UPDATE' || ({expression})") } else { expression };
        json!({"expression": expression, "message": message})
    };
    let validations: Vec<Value> = rules.into_iter().map(validation).collect();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [info.group],
                "apiVersions": [info.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [info.plural],
            }]},
            "validations": validations,
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    Some([sorted(policy), sorted(binding)])
}

/// One validation.
struct Rule {
    expression: String,
    message: String,
    /// Whether it compares with the old object.
    of_update: bool,
}

impl Rule {
    fn new(expression: String, message: String) -> Self {
        Rule { expression, message, of_update: false }
    }

    fn map(self, wrap: impl FnOnce(String) -> String) -> Self {
        Rule { expression: wrap(self.expression), ..self }
    }
}

/// A place in the object.
struct Walk {
    /// The CEL expression that names the value.
    value: String,
    /// The same in the old object; none inside of lists without keys, whose items have no identity.
    old: Option<String>,
    /// The path for messages.
    path: String,
    depth: usize,
}

impl Walk {
    /// The rules that `full` has beyond `base`, at this node and below.
    fn node(&self, base: &Node, full: &Node, rules: &mut Vec<Rule>) {
        if base == full {
            return;
        }
        self.own(base, full, rules);
        for name in full.required.iter().filter(|name| !base.required.contains(name)) {
            let expression = format!("has({}.{})", self.value, escaped(name));
            rules.push(Rule::new(expression, format!("{}: Required value", self.below(name))));
        }
        for (name, full) in &full.properties {
            let Some(base) = base.properties.get(name) else { continue };
            self.property(name, base, full, rules);
        }
        self.items(base, full, rules);
        self.entries(base, full, rules);
    }

    /// Rules of a list's items; an old item is found by its keys.
    fn items(&self, base: &Node, full: &Node, rules: &mut Vec<Rule>) {
        let (Some(base_items), Some(full_items)) = (&base.items, &full.items) else { return };
        let (item, old_item) = (format!("item{}", self.depth), format!("old{}", self.depth));
        let keyed = matches!(full.list_type, Some(ListType::Map)) && !full.list_map_keys.is_empty();
        let inner = Walk {
            value: item.clone(),
            old: self.old.as_ref().filter(|_| keyed).map(|_| old_item.clone()),
            path: format!("{}[]", self.path),
            depth: self.depth + 1,
        };
        rules.extend(inner.value_rules(base_items, full_items).into_iter().map(|rule| {
            let old = self.old.as_ref().filter(|_| rule.of_update).map(|old| {
                let same = |key: &String| format!("{old_item}.{0} == {item}.{0}", escaped(key));
                let same: Vec<String> = full.list_map_keys.iter().map(same).collect();
                format!("{old}.all({old_item}, !({}) || ", same.join(" && "))
            });
            let close = if old.is_some() { ")" } else { "" };
            let old = old.unwrap_or_default();
            rule.map(|inner| format!("{}.all({item}, {old}{inner}{close})", self.value))
        }));
    }

    /// Rules of a map's entries.
    fn entries(&self, base: &Node, full: &Node, rules: &mut Vec<Rule>) {
        let (Some(AdditionalProperties::Schema(base)), Some(AdditionalProperties::Schema(full))) =
            (&base.additional_properties, &full.additional_properties)
        else {
            return;
        };
        let name = format!("item{}", self.depth);
        let inner = Walk {
            value: format!("{}[{name}]", self.value),
            old: self.old.as_ref().map(|old| format!("{old}[{name}]")),
            path: format!("{}[*]", self.path),
            depth: self.depth + 1,
        };
        rules.extend(inner.value_rules(base, full).into_iter().map(|rule| {
            let old = self.old.as_ref().filter(|_| rule.of_update);
            let old = old.map(|old| format!("!({name} in {old}) || ")).unwrap_or_default();
            rule.map(|inner| format!("{}.all({name}, {old}{inner})", self.value))
        }));
    }

    /// The rules at this node and below, and that an item or entry does not change.
    fn value_rules(&self, base: &Node, full: &Node) -> Vec<Rule> {
        let mut rules = Vec::new();
        self.node(base, full, &mut rules);
        if let (true, Some(old)) = (becomes_immutable(base, full), &self.old) {
            let message = format!("{}: field is immutable", self.path);
            rules.push(Rule { expression: format!("{} == {old}", self.value), message, of_update: true });
        }
        rules
    }

    /// The rules of a field, which hold where the field is present; but that it does not change holds always.
    fn property(&self, name: &str, base: &Node, full: &Node, rules: &mut Vec<Rule>) {
        let field = escaped(name);
        let value = format!("{}.{field}", self.value);
        let inner = Walk {
            old: self.old.as_ref().map(|old| format!("{old}.{field}")),
            path: self.below(name),
            depth: self.depth,
            value,
        };
        let mut found = Vec::new();
        inner.node(base, full, &mut found);
        rules.extend(found.into_iter().map(|rule| {
            // A parent that comes or goes takes a comparison along.
            let old = self.old.as_ref().filter(|_| rule.of_update);
            let old = old.map(|old| format!("!has({old}.{field}) || ")).unwrap_or_default();
            rule.map(|inner| format!("!has({}.{field}) || {old}({inner})", self.value))
        }));
        if let (true, Some(old)) = (becomes_immutable(base, full), &self.old) {
            let (new_has, old_has) = (format!("has({}.{field})", self.value), format!("has({old}.{field})"));
            let expression =
                format!("{new_has} == {old_has} && (!{new_has} || {}.{field} == {old}.{field})", self.value);
            let message = format!("{}: field is immutable", self.below(name));
            rules.push(Rule { expression, message, of_update: true });
        }
    }

    fn own(&self, base: &Node, full: &Node, rules: &mut Vec<Rule>) {
        let value = &self.value;
        let mut rule = |expression: String, words: String| {
            rules.push(Rule::new(expression, format!("{}: {words}", self.path)));
        };
        let changed = |base: Option<u64>, full: Option<u64>| full.filter(|bound| base != Some(*bound));
        if let Some(bound) = full.minimum.as_ref().filter(|_| full.minimum != base.minimum) {
            let sign = if full.exclusive_minimum { ">" } else { ">=" };
            rule(format!("{value} {sign} {bound}"), format!("must be {sign} {bound}"));
        }
        if let Some(bound) = full.maximum.as_ref().filter(|_| full.maximum != base.maximum) {
            let sign = if full.exclusive_maximum { "<" } else { "<=" };
            rule(format!("{value} {sign} {bound}"), format!("must be {sign} {bound}"));
        }
        if let Some(factor) = full.multiple_of.as_ref().filter(|_| full.multiple_of != base.multiple_of)
            && factor.is_i64()
        {
            rule(format!("{value} % {factor} == 0"), format!("must be a multiple of {factor}"));
        }
        for (bound, noun) in [
            (changed(base.min_length, full.min_length), "characters"),
            (changed(base.min_items, full.min_items), "items"),
            (changed(base.min_properties, full.min_properties), "entries"),
        ] {
            if let Some(bound) = bound {
                rule(format!("size({value}) >= {bound}"), format!("must have at least {bound} {noun}"));
            }
        }
        for (bound, noun) in [
            (changed(base.max_length, full.max_length), "characters"),
            (changed(base.max_items, full.max_items), "items"),
            (changed(base.max_properties, full.max_properties), "entries"),
        ] {
            if let Some(bound) = bound {
                rule(format!("size({value}) <= {bound}"), format!("must have at most {bound} {noun}"));
            }
        }
        if let Some(pattern) = full.pattern.as_ref().filter(|_| full.pattern != base.pattern) {
            rule(format!("{value}.matches({})", json!(pattern)), format!("must match {pattern}"));
        }
        if !full.enum_.is_empty() && full.enum_ != base.enum_ {
            let allowed = json!(full.enum_);
            rule(format!("{value} in {allowed}"), format!("must be one of {allowed}"));
        }
        if full.unique_items && !base.unique_items {
            let once = format!("{value}.all(one, {value}.exists_one(other, one == other))");
            rule(once, "must not hold one value twice".to_owned());
        }
    }

    fn below(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

fn becomes_immutable(base: &Node, full: &Node) -> bool {
    full.validations.iter().any(|rule| rule.rule == "self == oldSelf" && !base.validations.contains(rule))
}
