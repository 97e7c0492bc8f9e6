use super::{check, unescaped};
use crate::expansions;

/// What is said of a rule on a struct.
fn said(rule: &str) -> String {
    let source = format!(
        "#[koord(validate(rule = {rule:?}))] #[serde(rename_all = \"camelCase\")] struct Spec {{
            min: i32, max_size: Option<i64>, name: String, on: bool, ratio: f64,
            tags: Vec<String>, ports: Vec<Port>, labels: BTreeMap<String, String>,
            pool: Option<Pool>, memory: Quantity, at: Time, namespace: String,
            #[koord(format = \"date-time\")] since: String,
            #[koord(schemaless, preserve_unknown_fields)] raw: Value,
        }}"
    );
    let tokens = expansions::item(&source, check).to_string();
    match tokens.split_once("compile_error ! {") {
        Some((_, text)) => text.trim().trim_matches(['"', '}', ' ']).replace("\\\"", "\""),
        None => tokens,
    }
}

#[test]
fn rules_that_are_right_say_nothing() {
    for rule in [
        "self.min <= self.maxSize || !has(self.maxSize)",
        "self.name.startsWith('a') && self.on && self.ratio < 1",
        "self.tags.all(tag, tag != '' && tag.size() < self.min)",
        "self.labels.all(key, self.labels[key] != '' && key.matches('^a'))",
        "self.labels.team == 'red' && 'x' in self.labels",
        "quantity(self.memory).isLessThan(quantity('1Gi')) && self.at > timestamp('2026-01-01T00:00:00Z')",
        "self.raw.anything.at.all == 3 && self.__namespace__ == self.namespace",
        "self.since < timestamp(self.at) && type(self.raw) == int",
        "self.metadata.name.size() + self.min > 2 && self.name + 'a' != 'b'",
        "oldSelf.min == self.min || self.tags.exists(a, self.tags.filter(b, b == a).size() == 1)",
        "self.tags.all(ip, ip.size() > 1 && ip.startsWith('1')) && self.tags.exists(format, format != '')",
        "cel.bind(n, self.min, n > 3) && !format.dns1123Label().validate(self.name).hasValue()",
        "self.tags.map(t, t.size()).sum() > 3 && (self.on ? self.min : 2) > 1",
        "optional.of(self.min).hasValue() && [self.min, 2].max() == 2 && [1, 2] == [self.min]",
    ] {
        assert_eq!(said(rule), "", "{rule}");
    }
}

#[test]
fn unknown_fields_and_types_that_do_not_fit_are_named() {
    for (rule, expected) in [
        ("self.mim > 0", "the rule names `mim`, but `Spec` has no such field in JSON; did you mean `min`?"),
        (
            "has(self.max_size)",
            "the rule names `max_size`, but `Spec` has no such field in JSON; did you mean `maxSize`?",
        ),
        ("oldSelf.?nme.hasValue()", "the rule names `nme`, but `Spec` has no such field in JSON; did you mean `name`?"),
        ("slef.min > 0", "a rule knows nothing by the name of `slef`; did you mean `self`?"),
        ("self.tags.all(t, tg != '')", "a rule knows nothing by the name of `tg`"),
        ("self.min == '3'", "a number is compared with a text"),
        ("self.name > 3", "a text is compared with a number"),
        ("self.tags.all(t, t > 3)", "a text is compared with a number"),
        ("self.name.first == 'a'", "`.first` is read of a text, which has no fields"),
        ("self.min && self.on", "`&&` takes a boolean, but this is a number"),
        ("!self.name", "`!` takes a boolean, but this is a text"),
        ("self.min + 1", "`rule` needs a boolean, but this is a number"),
        ("self.name", "`rule` needs a boolean, but this is a text"),
        ("self.name + self.min == ''", "a text and a number cannot be added"),
        ("self.min.size() > 1", "`size` is asked of a number"),
        ("'a' in self.name", "`in` looks into a list or a map, but this is a text"),
        ("self.min.startsWith('a')", "`startsWith` is asked of a number"),
        ("self.on ? self.min : self.name", "`? :` gives a number or a text"),
        ("self.name.startWith('a')", "CEL has no function `startWith` in Kubernetes; did you mean `startsWith`?"),
        ("sized(self.tags) > 1", "CEL has no function `sized` in Kubernetes; did you mean `size`?"),
        (
            "format.dns1132Label() == format.uri()",
            "CEL has no function `format.dns1132Label` in Kubernetes; did you mean",
        ),
        ("math.greatest(self.min, 2) == 2", "a rule knows nothing by the name of `math`"),
        ("startsWith(self.name, 'a')", "`startsWith` is asked of a value: `value.startsWith(…)`"),
        ("self.name.timestamp() > self.at", "`timestamp` is asked of no value: `timestamp(…)`"),
        ("self.tags.exist(t, t == 'a')", "CEL has no function `exist` in Kubernetes; did you mean `exists`?"),
        ("self.min <", "this is no CEL: a value was expected at the end"),
    ] {
        let text = said(rule);
        assert!(text.contains(expected), "{rule}: {text}");
    }
}

#[test]
fn fields_of_other_types_are_asked_for_in_constants() {
    let text = said("self.pool.size > 1 && self.ports.all(p, p.number > 0) && self.ports[0].name != ''");
    for (type_, name) in [("Pool", "size"), ("Port", "number"), ("Port", "name")] {
        assert!(text.contains(&format!("needs_member :: < {type_} > (\"{name}\"")), "{type_}.{name}: {text}");
    }
    assert!(!said("self.memory.size() > 1").contains("needs_member"));
}

#[test]
fn names_of_fields_are_escaped() {
    for (escaped, name) in [
        ("size", "size"),
        ("__namespace__", "namespace"),
        ("foo__dash__bar", "foo-bar"),
        ("a__dot__b__slash__c", "a.b/c"),
        ("my__underscores__name", "my__name"),
        ("__mine__", "__mine__"),
    ] {
        assert_eq!(unescaped(escaped), name);
    }
}
