//! Every rule that a kind declares denies something that nothing else denies: in the schema and in the derived validator
//! alike.
//!
//! The rules are enumerated from the schemas, and an object is made for each that breaks this rule alone. `rules.txt` lists
//! them, so that a marker that is taken away is missed: `UPDATE_RULES=1 cargo test -p koord-types --test it rules` writes it.

use std::{fmt::Write as _, fs, path::Path};

use koord_resource::{
    Resource, Schema, Validate,
    declare::Emit,
    field::{Errors, FieldError, Path as FieldPath},
    schema::{self, AdditionalProperties, SchemaType},
};
use koord_schema::structural::validate_object;
use koord_types::{
    KINDS, cluster_colocation_profile::ClusterColocationProfile, cluster_network_topology::ClusterNetworkTopology,
    device::Device, elastic_quota::ElasticQuota, elastic_quota_profile::ElasticQuotaProfile, node_metric::NodeMetric,
    node_resource_topology, node_slo::NodeSLO, pod_group::PodGroup, pod_migration_job::PodMigrationJob,
    recommendation::Recommendation, reservation::Reservation, schedule_explanation::ScheduleExplanation,
};
use serde_json::{Number, Value, json};

/// One kind: its name, its schemas and its derived validator.
struct Kind {
    name: String,
    /// The schema of the CRD, and the same with the rules of admission.
    schemas: [schema::Schema; 2],
    /// What the derived validator says of an object: the rules of the schema, and those of admission. An object that
    /// cannot be decoded is denied by the decoder.
    validate: fn(&Value) -> Result<[Errors; 2], String>,
}

fn kind<T: Resource + Schema + Validate>() -> Kind {
    Kind {
        name: format!("{}/{}", T::INFO.kind, T::INFO.version),
        schemas: [T::schema(Emit::default()), T::schema(Emit::default().with_admission())],
        validate: |object| {
            let object: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
            let (mut schema, mut admission) = (Errors::new(), Errors::new());
            object.validate_schema(&FieldPath::root(""), &mut schema);
            object.validate_admission(&FieldPath::root(""), &mut admission);
            Ok([schema, admission])
        },
    }
}

fn kinds() -> Vec<Kind> {
    let kinds = vec![
        kind::<Recommendation>(),
        kind::<ClusterColocationProfile>(),
        kind::<ElasticQuotaProfile>(),
        kind::<ClusterNetworkTopology>(),
        kind::<Device>(),
        kind::<PodMigrationJob>(),
        kind::<Reservation>(),
        kind::<ScheduleExplanation>(),
        kind::<ElasticQuota>(),
        kind::<PodGroup>(),
        kind::<NodeMetric>(),
        kind::<NodeSLO>(),
        kind::<node_resource_topology::v1alpha1::NodeResourceTopology>(),
        kind::<node_resource_topology::v1alpha2::NodeResourceTopology>(),
    ];
    assert_eq!(kinds.len(), KINDS.iter().map(|versions| versions.len()).sum::<usize>());
    kinds
}

// === rules ===

/// A step from a value to one inside of it.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Item,
    Entry,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Keyword {
    Minimum,
    Maximum,
    MinLength,
    MaxLength,
    Pattern,
    Enumeration,
    MinItems,
    MinProperties,
}

/// A keyword at one place of a schema.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    steps: Vec<Step>,
    keyword: Keyword,
    text: String,
}

/// Every rule of a schema, in the order of its fields.
fn rules(schema: &schema::Schema, steps: &mut Vec<Step>, found: &mut Vec<Rule>) {
    let mut add = |keyword, value: Option<String>| {
        let rule = value.map(|value| Rule { steps: steps.clone(), keyword, text: format!("{keyword:?} {value}") });
        found.extend(rule);
    };
    let bound = |number: &Option<Number>, exclusive: bool| {
        number.as_ref().map(|number| format!("{number}{}", if exclusive { " excluded" } else { "" }))
    };
    add(Keyword::Minimum, bound(&schema.minimum, schema.exclusive_minimum));
    add(Keyword::Maximum, bound(&schema.maximum, schema.exclusive_maximum));
    add(Keyword::MinLength, schema.min_length.map(|length| length.to_string()));
    add(Keyword::MaxLength, schema.max_length.map(|length| length.to_string()));
    add(Keyword::Pattern, schema.pattern.clone());
    add(Keyword::MinItems, schema.min_items.map(|count| count.to_string()));
    add(Keyword::MinProperties, schema.min_properties.map(|count| count.to_string()));
    let words: Vec<String> = schema.enum_.iter().map(ToString::to_string).collect();
    add(Keyword::Enumeration, (!words.is_empty()).then(|| words.join(" ")));
    let unknown = schema.multiple_of.is_some()
        || schema.max_items.is_some()
        || schema.max_properties.is_some()
        || !schema.validations.is_empty();
    assert!(!unknown, "this test does not know a rule at {steps:?}");
    let below: Vec<(Step, &schema::Schema)> = below(schema);
    for (step, schema) in below {
        steps.push(step);
        rules(schema, steps, found);
        steps.pop();
    }
}

fn below(schema: &schema::Schema) -> Vec<(Step, &schema::Schema)> {
    let fields = schema.properties.iter().map(|(name, schema)| (Step::Field(name.clone()), schema));
    let items = schema.items.as_deref().map(|items| (Step::Item, items));
    let entries = match &schema.additional_properties {
        Some(AdditionalProperties::Schema(values)) => Some((Step::Entry, &**values)),
        _ => None,
    };
    fields.chain(items).chain(entries).collect()
}

/// The same schema without one rule.
fn without(schema: &schema::Schema, rule: &Rule) -> schema::Schema {
    let mut changed = schema.clone();
    let mut place = &mut changed;
    for step in &rule.steps {
        place = match step {
            Step::Field(name) => place.properties.get_mut(name).unwrap(),
            Step::Item => place.items.as_deref_mut().unwrap(),
            Step::Entry => match &mut place.additional_properties {
                Some(AdditionalProperties::Schema(values)) => &mut **values,
                _ => unreachable!("the rule was found there"),
            },
        };
    }
    match rule.keyword {
        Keyword::Minimum => (place.minimum, place.exclusive_minimum) = (None, false),
        Keyword::Maximum => (place.maximum, place.exclusive_maximum) = (None, false),
        Keyword::MinLength => place.min_length = None,
        Keyword::MaxLength => place.max_length = None,
        Keyword::Pattern => place.pattern = None,
        Keyword::Enumeration => place.enum_.clear(),
        Keyword::MinItems => place.min_items = None,
        Keyword::MinProperties => place.min_properties = None,
    }
    changed
}

// === objects ===

/// A small value that a schema accepts, with whatever lies on the way of `steps`; `last` is the value at their end.
fn value(schema: &schema::Schema, steps: &[Step], last: Option<&Value>) -> Value {
    let Some((step, rest)) = steps.split_first() else { return last.cloned().unwrap_or_else(|| legal(schema)) };
    let (_, inner) = below(schema).into_iter().find(|(below, _)| below == step).unwrap();
    let inner = value(inner, rest, last);
    match step {
        Step::Item => json!([inner]),
        Step::Entry => json!({"a": inner}),
        Step::Field(name) => {
            let mut object = required(schema);
            object[name] = inner;
            object
        }
    }
}

fn required(schema: &schema::Schema) -> Value {
    let fields = schema.required.iter().map(|name| (name.clone(), legal(&schema.properties[name])));
    Value::Object(fields.collect())
}

fn legal(schema: &schema::Schema) -> Value {
    if let Some(word) = schema.enum_.first() {
        return word.clone();
    }
    if schema.int_or_string {
        return json!(1);
    }
    match schema.type_ {
        Some(SchemaType::Boolean) => json!(false),
        Some(SchemaType::Integer | SchemaType::Number) => number(schema.minimum.as_ref(), 1),
        Some(SchemaType::String) if schema.format.as_deref() == Some("date-time") => json!("2024-01-01T00:00:00Z"),
        Some(SchemaType::String) => {
            let pattern = schema.pattern.as_deref().map(|pattern| koord_schema::pattern::compile(pattern).unwrap());
            let shortest = usize::try_from(schema.min_length.unwrap_or_default()).unwrap();
            let legal = |text: &&str| text.len() >= shortest && pattern.as_ref().is_none_or(|p| p.is_match(text));
            json!(["", "A", "1"].into_iter().find(legal).unwrap())
        }
        Some(SchemaType::Array) => {
            let items = schema.items.as_deref().unwrap();
            (0..schema.min_items.unwrap_or_default()).map(|_| legal(items)).collect()
        }
        Some(SchemaType::Object) => {
            let mut object = required(schema);
            let missing = schema.min_properties.unwrap_or_default() > object.as_object().unwrap().len() as u64;
            if let Some((name, field)) = schema.properties.first().filter(|_| missing) {
                object[name] = legal(field);
            }
            object
        }
        None => json!({}),
    }
}

/// The number beside a bound.
fn number(bound: Option<&Number>, beside: i32) -> Value {
    let Some(bound) = bound else { return json!(0) };
    match bound.as_i64() {
        Some(bound) => json!(bound + i64::from(beside)),
        None => json!(bound.as_f64().map(|bound| bound + f64::from(beside))),
    }
}

/// A value that breaks one rule of a schema.
fn broken(schema: &schema::Schema, keyword: Keyword) -> Value {
    match keyword {
        Keyword::Minimum => number(schema.minimum.as_ref(), if schema.exclusive_minimum { 0 } else { -1 }),
        Keyword::Maximum => number(schema.maximum.as_ref(), i32::from(!schema.exclusive_maximum)),
        Keyword::MinLength => json!(""),
        Keyword::MaxLength => json!("A".repeat(usize::try_from(schema.max_length.unwrap()).unwrap() + 1)),
        Keyword::Pattern => json!("?"),
        Keyword::Enumeration => json!("none of these"),
        Keyword::MinItems => json!([]),
        Keyword::MinProperties => json!({}),
    }
}

fn at<'s>(schema: &'s schema::Schema, steps: &[Step]) -> &'s schema::Schema {
    steps.iter().fold(schema, |schema, step| {
        below(schema).into_iter().find(|(below, _)| below == step).map(|(_, schema)| schema).unwrap()
    })
}

fn object(schema: &schema::Schema, steps: &[Step], last: Option<&Value>) -> Value {
    let mut object = value(schema, steps, last);
    object["metadata"] = json!({"name": "x"});
    object
}

// === the laws ===

/// The errors that the valid object does not have.
fn new_errors(broken: &Errors, valid: &Errors) -> Vec<FieldError> {
    broken.iter().filter(|error| !valid.iter().any(|old| old == *error)).cloned().collect()
}

/// The conditions of Kubernetes have a shortest length and a pattern that says the same.
fn implied(schema: &schema::Schema, keyword: Keyword) -> bool {
    let pattern = schema.pattern.as_deref().map(|pattern| koord_schema::pattern::compile(pattern).unwrap());
    keyword == Keyword::MinLength && pattern.is_some_and(|pattern| !pattern.is_match(""))
}

/// Shows that a rule denies an object which nothing else denies.
fn check(kind: &Kind, rule: &Rule, admission: bool) {
    let [crd, full] = &kind.schemas;
    let schema = if admission { full } else { crd };
    let place = at(schema, &rule.steps);
    let valid = object(schema, &rule.steps, Some(&legal(place)));
    let wrong = object(schema, &rule.steps, Some(&broken(place, rule.keyword)));
    let context = format!("{} {} {wrong}", kind.name, rule.text);

    assert_eq!(validate_object(schema, &valid, None), Errors::new(), "{context}");
    let by_schema: Vec<FieldError> = validate_object(schema, &wrong, None).iter().cloned().collect();
    assert_eq!(by_schema.len(), 1, "{context}: {by_schema:?}");
    let implied = implied(place, rule.keyword);
    if !implied {
        assert_eq!(validate_object(&without(schema, rule), &wrong, None), Errors::new(), "{context}");
    }
    if admission {
        assert_eq!(validate_object(crd, &wrong, None), Errors::new(), "{context}: the CRD has the rule as well");
    }

    let valid = (kind.validate)(&valid).unwrap_or_else(|error| panic!("{context}: {error}"));
    match (kind.validate)(&wrong) {
        Ok(wrong) => {
            let part = usize::from(admission);
            let by_rust = new_errors(&wrong[part], &valid[part]);
            // The API server names the first broken rule of a string.
            let by_rust = if implied { &by_rust[..1] } else { &by_rust };
            assert_eq!(by_rust, by_schema, "{context}");
        }
        // Exact types read only what their pattern allows.
        Err(error) => assert!(place.int_or_string, "{context}: {error}"),
    }
}

#[test]
fn every_rule_denies_what_nothing_else_denies() {
    let mut lines = String::new();
    for kind in kinds() {
        let [mut crd, mut full] = [Vec::new(), Vec::new()];
        rules(&kind.schemas[0], &mut Vec::new(), &mut crd);
        rules(&kind.schemas[1], &mut Vec::new(), &mut full);
        let of_admission: Vec<&Rule> = full.iter().filter(|rule| !crd.contains(rule)).collect();
        for (rule, admission) in crd.iter().map(|rule| (rule, false)).chain(of_admission.into_iter().map(|r| (r, true)))
        {
            check(&kind, rule, admission);
            let steps: Vec<&str> = rule.steps.iter().map(Step::text).collect();
            let part = if admission { "admission" } else { "CRD" };
            writeln!(lines, "{} {} {} ({part})", kind.name, steps.join("."), rule.text).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules.txt");
    if std::env::var_os("UPDATE_RULES").is_some() {
        fs::write(&path, &lines).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap();
    let missing: Vec<&str> = listed.lines().filter(|line| !lines.lines().any(|now| now == *line)).collect();
    let unlisted: Vec<&str> = lines.lines().filter(|line| !listed.lines().any(|old| old == *line)).collect();
    assert!(missing.is_empty(), "rules that nothing declares any more:\n{}", missing.join("\n"));
    assert!(unlisted.is_empty(), "rules that tests/rules.txt does not list:\n{}", unlisted.join("\n"));
}

impl Step {
    fn text(&self) -> &str {
        match self {
            Step::Field(name) => name,
            Step::Item => "[]",
            Step::Entry => "*",
        }
    }
}

// === what the page says ===

/// The sources below a folder, without the configuration's types, which are no kinds.
fn sources(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("slo_config") {
            texts.extend(sources(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            texts.push(fs::read_to_string(entry).unwrap());
        }
    }
    texts
}

/// How often a word of the vocabulary is used: `word = …` or `word(…)` in an attribute.
fn uses(sources: &[String], words: &[&str]) -> usize {
    let attributes =
        sources.iter().flat_map(|text| text.split("#[koord(").skip(1)).map(|text| text.split(")]").next().unwrap());
    let count = |attribute: &str| {
        let tokens = attribute.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '"'));
        tokens.filter(|token| words.contains(token)).count()
    };
    attributes.map(count).sum()
}

#[test]
fn the_page_says_how_many_rules_are_markers_functions_and_written_by_hand() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let types = sources(&root.join("api/types/src"));
    let bounds = ["minimum", "maximum", "min_items", "min_properties", "enumeration"];
    let markers = uses(&types, &bounds);
    let closed = types.iter().map(|text| text.matches("\n    pub enum ").count()).sum::<usize>();
    let attached = uses(&types, &["check", "check_update"]);
    let by_hand = sources(&root.join("webhooks/handlers/src"));
    let by_hand = by_hand.iter().map(|text| text.matches("declared = ").count()).sum::<usize>();
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let sentence = format!(
        "{markers} markers and {closed} closed lists of words, {attached} attached functions, and {by_hand} handlers written by hand"
    );
    assert!(page.contains(&sentence), "docs/architecture.md should say: {sentence}");
}
