//! Rules over objects: what they see and what they give.

use std::time::Duration;

use koord_schema::{Schema, cel::Rules, field::Path};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(20);

fn compiled(rule: &Value) -> (Rules, String) {
    let schema = json!({"type": "object", "properties": {
        "namespace": {"type": "string", "maxLength": 63}, "const": {"type": "integer"},
        "a": {"type": "integer"}, "s": {"type": "string", "maxLength": 20}, "port": {"x-kubernetes-int-or-string": true},
        "m": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}, "maxProperties": 5},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 5},
        "t": {"type": "string", "format": "date-time"}},
        "x-kubernetes-validations": [rule]});
    let schema: Schema = serde_json::from_value(schema).unwrap();
    let (rules, errors) = Rules::compile(&schema, &Path::root("s"));
    (rules, errors.to_string())
}

/// Whether an object follows a rule.
fn holds(rule: &str, object: &Value) -> bool {
    let (rules, errors) = compiled(&json!({"rule": rule}));
    assert_eq!(errors, "[]", "{rule}");
    let wrong = rules.evaluate(object, None, LIMIT);
    assert!(wrong.iter().all(|error| error.detail.starts_with("failed rule")), "{rule}: {wrong}");
    wrong.is_empty()
}

#[test]
fn fields_called_like_reserved_words_are_read_as_they_are_or_escaped() {
    let object = json!({"namespace": "x", "const": 3, "m": {"namespace": "y"}});
    for (rule, expected) in [
        ("self.namespace == 'x'", true),
        ("self.__namespace__ == 'x'", true),
        ("self.namespace != 'x'", false),
        ("has(self.namespace) && has(self.const) && self.const == 3", true),
        ("self.?namespace.orValue('none') == 'x'", true),
        ("self.?__namespace__.hasValue()", true),
        ("self.m.namespace == 'y' && self.m['namespace'] == 'y'", true),
        ("self.m.exists(k, k == 'namespace')", true),
    ] {
        assert_eq!(holds(rule, &object), expected, "{rule}");
    }
    assert!(!holds("has(self.namespace)", &json!({"const": 1})));
    let (_, errors) = compiled(&json!({"rule": "self.package == 1"}));
    assert!(errors.contains("undefined field 'package'"), "{errors}");
}

#[test]
fn texts_are_held_against_formats_by_name() {
    let long = "a".repeat(64);
    for (format, good, bad) in [
        ("dns1123Label", "a-b", "a.b"),
        ("dns1123Label", "a", long.as_str()),
        ("dns1123LabelPrefix", "a-", "-a"),
        ("dns1123Subdomain", "a.b-c", "a..b"),
        ("dns1123SubdomainPrefix", "a.b-", "AB-"),
        ("dns1035Label", "a1", "1a"),
        ("dns1035LabelPrefix", "a-", "12-"),
        ("qualifiedName", "a.b/c", "a/b/c"),
        ("labelValue", "A_b", "a b"),
        ("uri", "https://a/b", "::"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "x"),
        ("byte", "YQ==", "%"),
        ("date", "2024-02-29", "2024-02-30"),
        ("datetime", "2024-01-01T00:00:00Z", "2024"),
    ] {
        for (text, expected) in [(good, true), (bad, false)] {
            let rule = format!("!format.{format}().validate(self.s).hasValue()");
            assert_eq!(holds(&rule, &json!({"s": text})), expected, "{rule} of {text:?}");
            let named = format!("format.named('{format}').value().validate(self.s).orValue([]).size() == 0");
            assert_eq!(holds(&named, &json!({"s": text})), expected, "{named} of {text:?}");
        }
    }
    assert!(holds("!format.named('other').hasValue() && !(format.uuid() == format.uri())", &json!({})));
    assert!(holds("format.dns1123Label().validate('A').value().size() == 1", &json!({})));
}

#[test]
fn types_are_values() {
    let rule = "type(self.port) == int ? self.port > 5 : self.port == 'http'";
    for (port, expected) in [(json!(80), true), (json!(1), false), (json!("http"), true), (json!("x"), false)] {
        assert_eq!(holds(rule, &json!({"port": port})), expected, "{port}");
    }
    let object = json!({"a": 1, "s": "x", "l": [], "m": {}, "t": "2024-01-01T00:00:00Z"});
    for rule in [
        "type(self.a) == int && type(self.s) == string && type(self.l) == list && type(self.m) == map",
        "type(self.t) == google.protobuf.Timestamp && type(type(1)) == type && type(null) == null_type",
        "type(1.0) != int && type(1u) == uint && type(b'') == bytes && type(true) == bool && type(1.0) == double",
        "type(dyn(self.a)) == int && bool('T') && dyn(self.s) == 'x'",
    ] {
        assert!(holds(rule, &object), "{rule}");
    }
}

#[test]
fn comprehensions_have_one_variable_or_two() {
    let object = json!({"l": ["a", "b", "a"], "m": {"k": "v", "x": "y"}, "a": 1});
    for (rule, expected) in [
        ("self.l.all(i, v, i < 3 && v != '')", true),
        ("self.l.exists(i, v, i == 2 && v == 'a')", true),
        ("self.l.exists_one(i, v, v == 'a')", false),
        ("self.l.existsOne(i, v, v == 'b' && i == 1)", true),
        ("self.m.all(k, v, k != v && self.m[k] == v)", true),
        ("self.m.exists(k, v, k == 'x' && v == 'z')", false),
        ("self.l.transformList(i, v, i > 0, v + v) == ['bb', 'aa']", true),
        ("self.m.transformMap(k, v, v + k) == {'k': 'vk', 'x': 'yx'}", true),
        ("self.m.transformMap(k, v, k == 'x', size(v)) == {'x': 1}", true),
        ("self.m.transformMapEntry(k, v, {v: k}) == {'v': 'k', 'y': 'x'}", true),
        ("self.l.all(i, v, self.m.exists(i, w, i == 'k') && i < 3)", true),
        ("self.l.all(i, v, ['x', 'y'].all(j, v, v != 'a' && j < 2))", true),
    ] {
        assert_eq!(holds(rule, &object), expected, "{rule}");
    }
    for (rule, mistake) in [
        ("self.l.all(i, i, true)", "duplicate variable name: i"),
        ("self.l.all(i.x, v, true)", "argument must be a simple name"),
        ("self.m.all(k, v, v == 1)", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("self.a.all(k, v, true)", "cannot be range of a comprehension"),
    ] {
        let (_, errors) = compiled(&json!({"rule": rule}));
        assert!(errors.contains(mistake), "{rule}: {errors}");
    }
}

#[test]
fn optional_values_are_mapped() {
    for (object, expected) in [(json!({"a": 5, "s": "x"}), true), (json!({"a": 2, "s": "x"}), false), (json!({}), true)]
    {
        assert_eq!(holds("self.?a.optMap(v, v > 3).orValue(true)", &object), expected, "{object}");
    }
    let flat = "self.?s.optFlatMap(v, v == 'x' ? self.?a : optional.none()).orValue(7) == 5";
    assert!(holds(flat, &json!({"a": 5, "s": "x"})));
    assert!(!holds(flat, &json!({"a": 5, "s": "y"})));
    assert!(holds("[self.?a, optional.of(2)].unwrapOpt() == [2]", &json!({})));
}

#[test]
fn an_optional_old_value_is_of_another_type() {
    let (_, errors) = compiled(&json!({"rule": "oldSelf == self", "optionalOldSelf": true}));
    assert!(
        errors.contains("found no matching overload for '_==_' applied to '(optional_type(object), object)'"),
        "{errors}"
    );
    assert!(errors.contains("optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used"), "{errors}");
    let rule = json!({"rule": "!oldSelf.hasValue() || oldSelf.value().a <= self.a", "optionalOldSelf": true});
    let (rules, errors) = compiled(&rule);
    assert_eq!(errors, "[]");
    let wrong = |new: i64, old: Option<i64>| {
        let old = old.map(|old| json!({"a": old}));
        rules.evaluate(&json!({"a": new}), old.as_ref(), LIMIT).len()
    };
    assert_eq!([wrong(1, None), wrong(2, Some(1)), wrong(1, Some(2))], [0, 0, 1]);
    let field = json!({"rule": "oldSelf.?a.orValue(0) <= self.a", "optionalOldSelf": true});
    let (rules, errors) = compiled(&field);
    assert_eq!(errors, "[]");
    assert_eq!(rules.evaluate(&json!({"a": 1}), Some(&json!({"a": 2})), LIMIT).len(), 1);
    assert_eq!(rules.evaluate(&json!({"a": 1}), None, LIMIT).len(), 0);
}

#[test]
fn conversions_of_literals_are_made_when_a_rule_is_compiled() {
    for (rule, why) in [
        ("int('x') > 1", "type conversion error from 'string' to 'int'"),
        ("uint(-1) > 1u", "unsigned integer overflow"),
        ("string(b'\\xff') == 'a'", "invalid UTF-8 in bytes, cannot convert to string"),
    ] {
        let (_, errors) = compiled(&json!({"rule": rule}));
        assert!(
            errors.ends_with(&format!("program instantiation failed: {why}]"))
                || errors.ends_with(&format!("program instantiation failed: {why}")),
            "{errors}"
        );
    }
    let (_, errors) = compiled(&json!({"rule": "self.s == 'a'", "messageExpression": "string(int('x'))"}));
    assert!(errors.contains("messageExpression instantiation failed: type conversion error"), "{errors}");
}

#[test]
fn what_cel_cannot_see_has_no_rules() {
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true},
        "x-kubernetes-validations": [{"rule": "self.size() > 1"}]}}});
    let schema: Schema = serde_json::from_value(schema).unwrap();
    assert_eq!(
        Rules::compile(&schema, &Path::root("s")).1.to_string(),
        "s.properties[l].x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
    );
}
