//! Schemas with one CEL rule each, made from a number: what is compared with Kubernetes' estimate of their cost.
//!
//! The same numbers give the same cases everywhere, so that only the costs need be recorded.

mod expressions;

use serde_json::{Map, Value, json};

/// How many cases are compared.
pub(crate) const CASES: u64 = 2_400;

/// One case: the schema of a custom resource in which one rule stands.
pub(crate) struct Case {
    pub(crate) schema: Value,
    pub(crate) rule: String,
}

/// A source of choices that are the same for the same seed.
pub(crate) struct Choices(u64);

impl Choices {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn of<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or_default();
        &choices[index]
    }
}

/// What a field holds, as rules see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    IntOrText,
    List(Box<Kind>),
    Map(Box<Kind>),
    Object(Vec<(String, Kind)>),
}

/// The case of a number.
pub(crate) fn case(number: u64) -> Case {
    let mut choices = Choices(number.wrapping_mul(0x1000_0000_01B3));
    let (kind, mut schema) = object(&mut choices, 0);
    let old = choices.one_in(8);
    let optional = old && choices.one_in(2);
    let correlates = old;
    let mut writer = expressions::Writer::new(&mut choices, &kind, old, optional);
    let rule = writer.rule();
    let mut validation = json!({"rule": rule, "message": "no"});
    // What does not use the old value may not ask for an optional one.
    if optional && rule.contains("oldSelf") {
        validation["optionalOldSelf"] = json!(true);
    }
    schema["x-kubernetes-validations"] = json!([validation]);
    for _ in 0..choices.below(3) {
        schema = around(&mut choices, &schema, correlates);
    }
    Case { schema: json!({"type": "object", "properties": {"spec": schema}}), rule }
}

/// What one rule may cost.
const LIMIT: u64 = 10_000_000;

/// The same rules at so many places that they cost about as much as a rule may: from nine tenths of it to eleven.
/// `recorded` are the costs of [`case`], which are known by then.
pub(crate) fn near_the_limit(recorded: &str) -> Vec<Case> {
    let costs = recorded.lines().filter_map(|line| line.split_once('\t')).map(|(cost, _)| cost.parse::<u64>().ok());
    let small = (0..)
        .zip(costs)
        .filter_map(|(number, cost)| Some((number, cost.filter(|cost| (1..=LIMIT / 50).contains(cost))?)));
    let place = |(number, cost): (u64, u64)| {
        let mut case = case(number);
        let spec = case.schema["properties"]["spec"].take();
        let places = LIMIT * (90 + number % 21) / 100 / cost;
        case.schema["properties"]["spec"] =
            json!({"type": "object", "additionalProperties": spec, "maxProperties": places});
        case
    };
    small.map(place).collect()
}

/// Something that holds values of a schema.
fn around(choices: &mut Choices, inner: &Value, correlates: bool) -> Value {
    match choices.below(3) {
        0 => {
            let mut outer = json!({"type": "object", "properties": {"inner": inner, "other": {"type": "string"}}});
            if choices.one_in(2) {
                outer["required"] = json!(["inner"]);
            }
            outer
        }
        1 if !correlates => {
            let mut list = json!({"type": "array", "items": inner});
            bound(choices, &mut list, "maxItems", &[0, 1, 5, 64, 1_000, 4_096, 100_000]);
            list
        }
        _ => {
            let mut map = json!({"type": "object", "additionalProperties": inner});
            bound(choices, &mut map, "maxProperties", &[0, 2, 16, 128, 5_000]);
            map
        }
    }
}

fn bound(choices: &mut Choices, schema: &mut Value, keyword: &str, bounds: &[u64]) {
    if !choices.one_in(5) {
        schema[keyword] = json!(choices.of(bounds));
    }
}

/// The names of fields, one of which is a reserved word and two of which are written otherwise in rules.
const NAMES: [&str; 10] =
    ["name", "count", "namespace", "tags", "with-dash", "dotted.name", "a__b", "limits", "Kind", "x1"];

fn object(choices: &mut Choices, depth: u64) -> (Kind, Value) {
    let mut fields = Vec::new();
    let mut properties = Map::new();
    let mut required = Vec::new();
    let first = choices.below(NAMES.len() as u64);
    for offset in 0..3 + choices.below(5) {
        let name = NAMES[usize::try_from((first + offset) % NAMES.len() as u64).unwrap_or_default()];
        let (kind, mut schema) = field(choices, depth + 1);
        if choices.one_in(3) {
            required.push(name);
            if kind == Kind::Int && choices.one_in(2) {
                schema["default"] = json!(1);
            }
        }
        properties.insert(name.to_owned(), schema);
        fields.push((name.to_owned(), kind));
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    (Kind::Object(fields), schema)
}

fn field(choices: &mut Choices, depth: u64) -> (Kind, Value) {
    let deepest = depth >= 3;
    match choices.below(if deepest { 9 } else { 16 }) {
        0 => (Kind::Bool, json!({"type": "boolean"})),
        1 => (Kind::Int, json!({"type": "integer"})),
        2 => (Kind::Double, json!({"type": "number"})),
        3 => (Kind::Bytes, text(choices, Some("byte"))),
        4 if choices.one_in(2) => (Kind::Time, text(choices, Some("date-time"))),
        4 => (Kind::Time, text(choices, Some("date"))),
        5 => (Kind::Duration, text(choices, Some("duration"))),
        6 => {
            let mut schema = json!({"x-kubernetes-int-or-string": true});
            bound(choices, &mut schema, "maxLength", &[3, 20]);
            (Kind::IntOrText, schema)
        }
        7 => (Kind::Text, json!({"type": "string", "enum": ["a", "bcd", "second"]})),
        8 | 9 => (Kind::Text, text(choices, None)),
        10..=12 => {
            let (kind, items) = field(choices, depth + 1);
            let mut schema = json!({"type": "array", "items": items});
            bound(choices, &mut schema, "maxItems", &[0, 1, 4, 20, 100, 1_000, 60_000]);
            (Kind::List(Box::new(kind)), schema)
        }
        13 | 14 => {
            let (kind, values) = field(choices, depth + 1);
            let mut schema = json!({"type": "object", "additionalProperties": values});
            bound(choices, &mut schema, "maxProperties", &[0, 3, 50, 700]);
            (Kind::Map(Box::new(kind)), schema)
        }
        _ => object(choices, depth + 1),
    }
}

fn text(choices: &mut Choices, format: Option<&str>) -> Value {
    let mut schema = json!({"type": "string"});
    if let Some(format) = format {
        schema["format"] = json!(format);
    }
    bound(choices, &mut schema, "maxLength", &[0, 1, 10, 63, 253, 4_096]);
    schema
}
