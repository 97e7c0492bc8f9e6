//! CEL rules (`x-kubernetes-validations`): checked when a CRD is created, evaluated when an object is written.
//!
//! The language is that of the `cel` crate with the Kubernetes libraries of `kube-cel`. What this module adds is what an
//! API server wraps around it: the types that a schema gives to `self`, an estimate of what a rule may cost, transition
//! rules with their correlation of old and new, ratcheting, the wording of errors, and a bounded place to run.

mod check;
mod condition;
mod constant;
mod cost;
mod declared;
mod device;
mod estimate;
mod evaluate;
mod executor;
mod formatting;
mod functions;
mod library;
mod macros;
mod source;
mod types;
mod typing;
mod value;

use std::{collections::BTreeMap, sync::Arc};

use kube_cel::cel::IdedExpr;

pub use condition::Condition;
pub use device::{Attribute, Device, DeviceSelector, Overrun};
pub use executor::{STACK_BYTES, STUCK_MAX};

use crate::{
    AdditionalProperties, Rule, Schema,
    field::{Errors, Path},
};

/// The checked rules of a schema, ready to be evaluated.
///
/// ```
/// use koord_schema::{Schema, cel::Rules, field::Path};
/// use serde_json::json;
/// let schema: Schema = serde_json::from_value(json!({
///     "type": "object", "properties": {"n": {"type": "integer"}},
///     "x-kubernetes-validations": [{"rule": "self.n > 0", "message": "n must be positive"}],
/// })).unwrap();
/// let (rules, errors) = Rules::compile(&schema, &Path::root("openAPIV3Schema"));
/// assert!(errors.is_empty());
/// let wrong = rules.evaluate(&json!({"n": 0}), None, std::time::Duration::from_secs(1));
/// assert_eq!(wrong.to_string(), r#"<nil>: Invalid value: "object": n must be positive"#);
/// ```
#[derive(Clone, Debug)]
pub struct Rules {
    root: Arc<RuleNode>,
    schema: Arc<Schema>,
}

/// The rules at one place of a schema, and those below it. Places without rules at or below them are not kept.
#[derive(Debug, Default)]
struct RuleNode {
    rules: Vec<Compiled>,
    fields: BTreeMap<String, RuleNode>,
    values: Option<Box<RuleNode>>,
    items: Option<Box<RuleNode>>,
}

/// One rule with its parsed expressions.
#[derive(Debug)]
struct Compiled {
    rule: Rule,
    expression: IdedExpr,
    message: Option<IdedExpr>,
    uses_old: bool,
}

impl RuleNode {
    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.fields.is_empty() && self.values.is_none() && self.items.is_none()
    }
}

impl Rules {
    /// Compiles and checks all rules of a schema that stands at `at`. The mistakes are those for which an API server
    /// refuses the CRD; rules with mistakes are left out.
    pub fn compile(schema: &Schema, at: &Path<'_>) -> (Rules, Errors) {
        let mut checking = check::Checking::default();
        let root = compile_node(schema, &check::Scope::root(schema), at, &mut checking);
        checking.report_total(at);
        (Rules { root: Arc::new(root), schema: Arc::new(schema.clone()) }, checking.errors)
    }

    /// Whether there is nothing to evaluate.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }
}

fn compile_node(schema: &Schema, scope: &check::Scope, at: &Path<'_>, checking: &mut check::Checking) -> RuleNode {
    let mut node = RuleNode::default();
    if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
        let inner = scope.values(schema, at, values);
        let child = compile_node(values, &inner, &at.child("additionalProperties"), checking);
        node.values = Some(Box::new(child)).filter(|child| !child.is_empty());
    }
    for (name, field) in &schema.properties {
        let inner = scope.field(schema, at, name, field);
        let child = compile_node(field, &inner, &at.child("properties").key(name), checking);
        if !child.is_empty() {
            node.fields.insert(name.clone(), child);
        }
    }
    if let Some(items) = schema.items.as_deref() {
        let inner = scope.items(schema, at, items);
        let child = compile_node(items, &inner, &at.child("items"), checking);
        node.items = Some(Box::new(child)).filter(|child| !child.is_empty());
    }
    node.rules = checking.rules(schema, scope, at);
    node
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn compiled(schema: Value) -> (Rules, String) {
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let (rules, errors) = Rules::compile(&schema, &Path::root("s"));
        (rules, errors.to_string())
    }

    fn with_rule(rule: Value) -> Value {
        json!({"type": "object", "properties": {
            "a": {"type": "integer"}, "s": {"type": "string", "maxLength": 20}, "my_field": {"type": "string"}, "foo-bar": {"type": "boolean"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 10},
            "l": {"type": "array", "items": {"type": "integer"}, "maxItems": 10},
            "t": {"type": "string", "format": "date-time"}},
            "x-kubernetes-validations": [rule]})
    }

    fn mistake(rule: &str) -> String {
        let (_, errors) = compiled(with_rule(json!({"rule": rule})));
        errors.split_once("\"OptionalOldSelf\":null}: ").map_or(errors.clone(), |(_, detail)| detail.to_owned())
    }

    fn failures(rule: Value, object: Value, old: Option<Value>) -> String {
        let (rules, errors) = compiled(with_rule(rule));
        assert_eq!(errors, "[]");
        rules.evaluate(&object, old.as_ref(), LIMIT).to_string()
    }

    #[test]
    fn an_optional_field_may_be_absent() {
        let rule = json!({"rule": "self.?a.orValue(1) != 13 && self.?m[?'k'].orValue('x') != 'y'"});
        assert_eq!(failures(rule.clone(), json!({}), None), "[]");
        assert_eq!(failures(rule.clone(), json!({"a": 1, "m": {"k": "v"}}), None), "[]");
        assert!(failures(rule.clone(), json!({"a": 13}), None).contains("failed rule"));
        assert!(failures(rule, json!({"m": {"k": "y"}}), None).contains("failed rule"));
    }

    #[test]
    fn rules_with_mistakes_are_refused_as_recorded() {
        let (_, errors) = compiled(with_rule(json!({"rule": "self.zz > 1"})));
        assert_eq!(
            errors,
            "s.x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.zz \\u003e 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz > 1\n | ....^"
        );
        let table = [
            ("self.a", "cel expression must evaluate to a bool"),
            (
                "self.a <",
                "compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.a <\n | ........^",
            ),
            (
                "self.a > 'x'",
                "compilation failed: ERROR: <input>:1:8: found no matching overload for '_>_' applied to '(int, string)'\n | self.a > 'x'\n | .......^",
            ),
            (
                "foo == 1",
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
            ),
            (
                "self.l.all(x, x.y > 1)",
                "compilation failed: ERROR: <input>:1:16: type 'int' does not support field selection\n | self.l.all(x, x.y > 1)\n | ...............^",
            ),
            ("has(self.zz)", "compilation failed: ERROR: <input>:1:4: undefined field 'zz'\n | has(self.zz)\n | ...^"),
        ];
        for (rule, detail) in table {
            assert_eq!(mistake(rule), detail, "{rule}");
        }
    }

    #[test]
    fn rules_without_mistakes_pass() {
        for rule in [
            "self.a > 1 && self.s.startsWith('x')",
            "self.l.all(x, x > 0) || self.l.exists_one(x, x == 3)",
            "self.m.all(k, self.m[k] != '')",
            "self.my_field == 'x' && self.foo__dash__bar",
            "self.t > timestamp('2024-01-01T00:00:00Z')",
            "self.l.map(x, x * 2).size() == 3",
            "self.metadata.name.size() < 10 && self.kind == 'W'",
            "self.a > 1.5",
            "!has(self.s) || quantity(self.s).isGreaterThan(quantity('1'))",
            "self.s in ['a', 'b'] ? true : self.a == 1",
        ] {
            assert_eq!(mistake(rule), "[]", "{rule}");
        }
    }

    #[test]
    fn oldself_needs_correlation() {
        let (_, errors) = compiled(json!({"type": "object", "properties": {"l": {"type": "array", "items": {
            "type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}}}}));
        assert!(
            errors
                .ends_with("oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[l]"),
            "{errors}"
        );
        let (_, errors) = compiled(with_rule(json!({"rule": "self.a > 1", "optionalOldSelf": true})));
        assert_eq!(
            errors,
            "s.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
        );
    }

    #[test]
    fn rules_that_cost_too_much_are_refused() {
        let unbounded = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": "self.l.all(x, self.l.all(y, x == y))"}]});
        let (_, errors) = compiled(unbounded);
        assert!(errors.contains("s.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule"), "{errors}");
        let bounded = json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}}},
            "x-kubernetes-validations": [{"rule": "self.l.all(x, self.l.all(y, x == y))"}]});
        assert_eq!(compiled(bounded).1, "[]");
    }

    #[test]
    fn failures_are_worded_as_recorded() {
        let table = [
            (
                json!({"rule": "self.a > 0"}),
                json!({"a": 0}),
                r#"<nil>: Invalid value: "object": failed rule: self.a > 0"#,
            ),
            (
                json!({"rule": "self.m['k'] == 'v'"}),
                json!({"m": {}}),
                r#"<nil>: Invalid value: "object": no such key: k evaluating rule: self.m['k'] == 'v'"#,
            ),
            (
                json!({"rule": "self.a < 5", "reason": "FieldValueForbidden", "fieldPath": ".a", "messageExpression": "'a is not ' + self.s"}),
                json!({"a": 9, "s": "less"}),
                "a: Forbidden: a is not less",
            ),
            (
                json!({"rule": "self.a < 5", "message": "too much"}),
                json!({"a": 9}),
                r#"<nil>: Invalid value: "object": too much"#,
            ),
            (
                json!({"rule": "self.a < 5", "reason": "FieldValueRequired", "fieldPath": ".m['k']"}),
                json!({"a": 9}),
                "m[k]: Required value: failed rule: self.a < 5",
            ),
            (json!({"rule": "self.my_field == 'x'"}), json!({"my_field": "x"}), "[]"),
            (json!({"rule": "self.t < timestamp('2024-01-01T00:00:00Z')"}), json!({"t": "2020-01-01T00:00:00Z"}), "[]"),
            (
                json!({"rule": "10 / self.a > 0"}),
                json!({"a": 0}),
                r#"<nil>: Invalid value: "object": division by zero evaluating rule: 10 / self.a > 0"#,
            ),
        ];
        for (rule, object, message) in table {
            assert_eq!(failures(rule.clone(), object, None), message, "{rule}");
        }
    }

    #[test]
    fn transitions_compare_with_the_old_value() {
        let grows = json!({"rule": "self.a >= oldSelf.a"});
        assert_eq!(failures(grows.clone(), json!({"a": 1}), None), "[]", "nothing to compare on create");
        assert_eq!(failures(grows.clone(), json!({"a": 2}), Some(json!({"a": 1}))), "[]");
        assert_ne!(failures(grows, json!({"a": 1}), Some(json!({"a": 2}))), "[]");
        let first = json!({"rule": "oldSelf.hasValue() || self.a == 0", "optionalOldSelf": true});
        assert_ne!(failures(first.clone(), json!({"a": 1}), None), "[]");
        assert_eq!(failures(first, json!({"a": 1}), Some(json!({"a": 5}))), "[]");
        let plain = json!({"rule": "self.a < 5"});
        assert_eq!(failures(plain.clone(), json!({"a": 9}), Some(json!({"a": 9}))), "[]", "what did not change passes");
        assert_ne!(failures(plain, json!({"a": 9}), Some(json!({"a": 8}))), "[]");
    }

    #[test]
    fn items_of_keyed_lists_are_compared_by_key() {
        let (rules, errors) = compiled(json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 5,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                      "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "v must not shrink"}]}}}}));
        assert_eq!(errors, "[]");
        let old = json!({"l": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]});
        let wrong = |new: Value| rules.evaluate(&new, Some(&old), LIMIT).to_string();
        assert_eq!(wrong(json!({"l": [{"k": "b", "v": 5}, {"k": "c", "v": 0}]})), "[]");
        assert_eq!(wrong(json!({"l": [{"k": "b", "v": 4}]})), r#"l[0]: Invalid value: "object": v must not shrink"#);
    }

    #[test]
    fn matches_means_re2() {
        let digits = json!({"rule": "self.s.matches('^\\\\d+$')"});
        assert_eq!(failures(digits.clone(), json!({"s": "12"}), None), "[]");
        assert_ne!(failures(digits, json!({"s": "\u{661}"}), None), "[]");
    }

    #[test]
    fn set_lists_compare_in_order() {
        let (rules, errors) = compiled(json!({"type": "object", "properties": {
            "l": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set", "items": {"type": "integer"}}},
            "x-kubernetes-validations": [{"rule": "self.l == [1, 2]"}]}));
        assert_eq!(errors, "[]");
        assert_eq!(rules.evaluate(&json!({"l": [2, 1]}), None, LIMIT).len(), 1);
    }

    #[test]
    fn an_evaluation_that_takes_too_long_refuses_the_object() {
        let (rules, errors) = compiled(json!({"type": "object", "properties": {
            "l": {"type": "array", "maxItems": 60, "items": {"type": "integer"}}},
            "x-kubernetes-validations": [{"rule": "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0 || x == y)))"}]}));
        assert_eq!(errors, "[]");
        let object = json!({"l": vec![1; 60]});
        let wrong = rules.evaluate(&object, None, Duration::from_millis(1)).to_string();
        assert_eq!(
            wrong,
            r#"<nil>: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run"#
        );
        assert!(rules.evaluate(&object, None, LIMIT).is_empty(), "and passes when it has the time");
    }
}
