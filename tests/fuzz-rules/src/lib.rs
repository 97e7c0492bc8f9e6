//! What must hold of any input. Each function is one fuzz target; it panics where something does not hold.
//!
//! Where an input has several parts, its first byte chooses and the rest is text. The programs that libFuzzer runs are in
//! `fuzz/`, outside the workspace; the tests here run the same functions on the seeds. The crate knows no fuzzer.
//!
//! Read first: [`quantity`] (a rule of one function), [`review`] (of a whole webhook), [`scheduler`] (of a cluster).
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

mod descheduling;
mod extending;
mod node_protocols;
mod scheduling;

pub use descheduling::descheduler;
pub use extending::extender;
pub use node_protocols::node_protocols;
pub use scheduling::{configuration, explanation, scheduler};
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration as Span,
};

use koord_core::{
    clock::Moment,
    projection::Labels,
    random::Random,
    reflector::{Failure, Initial, Reflector, Selection},
    store::Store,
};
use koord_profile::{Excerpt, Overlay, POD, PodNode, typed_patch};
use koord_resource::{Duration, Projection, Quantity, admission::Patch, go_json};
use koord_schema::{Schema, cel::Rules, field::Path, patch, pattern, typed::SchemaNode};
use koord_types::{
    catalogue::KEYS,
    slo_config::{
        self, COLOCATION_CONFIG, CPU_NORMALIZATION_CONFIG, ColocationConfig, CpuNormalizationConfig, NodeSloConfig,
        RESOURCE_AMPLIFICATION_CONFIG, ResourceAmplificationConfig, SectionError,
    },
};
use koord_webhook_handlers::{Ctx, HANDLERS};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// No work may cost more than [`SLOWEST`] of this thread's CPU time: how busy the machine is does not count.
pub(crate) fn in_time(work: impl FnOnce()) {
    let cpu = || Span::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it is not negative");
    let start = cpu();
    work();
    let cost = cpu().saturating_sub(start);
    assert!(cost < SLOWEST, "{cost:?}");
}

/// No input may cost more than this, however slow the sanitizer makes it.
const SLOWEST: Span = Span::from_secs(5);

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// A choice and a text.
fn chosen<'d, T: Copy>(data: &'d [u8], among: &[T]) -> Option<(T, &'d str)> {
    let (first, rest) = data.split_first()?;
    Some((*among.get(usize::from(*first) % among.len())?, text(rest)?))
}

/// A quantity that is read is written and read again as the same amount, and its text is stable.
pub fn quantity(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(amount) = text.parse::<Quantity>() else { return };
    let written = amount.to_string();
    let again: Quantity = written.parse().expect("a quantity reads what it wrote");
    // QUIRK: 1.953125Ki is written without a suffix, as 2000, and that is a decimal quantity, which is written as 2k.
    let is_binary = text.contains('i');
    let stable: Quantity = if is_binary { again.to_string().parse().expect("a quantity") } else { again.clone() };
    assert_eq!(stable.to_string(), if is_binary { again.to_string() } else { written.clone() });
    // QUIRK: there is no suffix beyond exa, and Go writes none: 1000E is written as 1.
    let [least, most] = ["-1e21", "1e21"].map(|bound| bound.parse::<Quantity>().expect("a quantity"));
    let has_suffix = (amount > least && amount < most) || written.contains('e');
    assert!(again == amount || !has_suffix, "{amount:?} became {again:?}");
}

/// A duration that is read is written and read again as the same span.
pub fn duration(data: &[u8]) {
    let Some(Ok(span)) = text(data).map(str::parse::<Duration>) else { return };
    let again: Duration = span.to_string().parse().expect("a duration reads what it wrote");
    assert_eq!(again, span);
}

/// JSON by Go's rules: what is read is written and read again unchanged; what serde reads, Go reads.
pub fn go_json(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let checked = go_json::check(text);
    match go_json::from_str::<Value>(text) {
        Ok(value) => {
            assert!(checked.is_ok(), "it is read and yet refused: {checked:?}");
            let written = go_json::to_string(&value).expect("a value has JSON");
            let again: Value = go_json::from_str(&written).expect("Go's JSON reads what it wrote");
            let [again, value] = [again, value].map(|value| go_json::to_string(&without_negative_zeros(value)).ok());
            assert_eq!(again, value);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if serde_json::from_str::<Value>(text).is_ok() {
        assert!(checked.is_ok(), "serde reads it: {checked:?}");
    }
}

/// A float that is a negative zero is written as `-0`, which is an integer, whose zero has no sign.
fn without_negative_zeros(value: Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) => json!(0),
        Value::Array(items) => items.into_iter().map(without_negative_zeros).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, without_negative_zeros(value))).collect()
        }
        value => value,
    }
}

/// Every label and annotation: a text is refused with the key's name, or written and read again unchanged.
pub fn annotation(data: &[u8]) {
    let Some((entry, text)) = chosen(data, KEYS) else { return };
    match entry.rewrite(text) {
        Ok(written) => assert_eq!(entry.rewrite(&written).as_ref(), Ok(&written)),
        Err(error) => assert!(error.to_string().starts_with(entry.name())),
    }
}

/// A key of the ConfigMap is read or refused, and leaves the other keys alone.
pub fn slo_config(data: &[u8]) {
    let Some((key, text)) = chosen(data, &slo_config::KEYS) else { return };
    let (labels, annotations) = (BTreeMap::new(), BTreeMap::new());
    match key {
        COLOCATION_CONFIG => {
            if let Ok(config) = ColocationConfig::parse(Some(text)) {
                config.for_node(&labels, &annotations);
            }
        }
        CPU_NORMALIZATION_CONFIG => {
            if let Ok(config) = CpuNormalizationConfig::parse(Some(text)) {
                config.for_node(&labels);
            }
        }
        RESOURCE_AMPLIFICATION_CONFIG => {
            if let Ok(config) = ResourceAmplificationConfig::parse(Some(text)) {
                config.for_node(&labels);
            }
        }
        key => {
            let data = BTreeMap::from([(key.to_owned(), text.to_owned())]);
            let before = NodeSloConfig::default();
            let (config, errors) = before.update(&data);
            assert!(errors.iter().all(|error| error.key() == key));
            let unreadable = errors.iter().any(|error| matches!(error, SectionError::Unreadable { .. }));
            assert!(!unreadable || config == before, "a key that cannot be read changed something");
        }
    }
}

static LISTS: LazyLock<Schema> = LazyLock::new(|| {
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {
        "keyed": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "atomic": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "inner": {"type": "object", "properties": {"keyed": {"type": "array", "items": item}}},
    }});
    serde_json::from_value(schema).expect("the schema of this target")
});

/// A patch is applied or refused; a merge patch that was applied twice changes nothing when it is applied again.
pub fn patch(data: &[u8]) {
    let Some((choice, text)) = chosen(data, &[0, 1, 2, 3]) else { return };
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (Some(Ok(document)), Some(Ok(change))) = (values.next(), values.next()) else { return };
    match choice {
        0 => {
            // QUIRK: nulls in an array that took the place of an object are dropped by the second application.
            let once = patch::merge::apply(document, &change);
            let twice = patch::merge::apply(once, &change);
            assert_eq!(patch::merge::apply(twice.clone(), &change), twice);
        }
        1 => {
            let _ = patch::json::apply(document, &change);
        }
        2 => {
            let _ = patch::strategic::apply(document, &change, &SchemaNode::of_object(&LISTS));
        }
        _ => {
            // Of documents that are both objects, or both lists.
            if (document.is_object() && change.is_object()) || (document.is_array() && change.is_array()) {
                let difference = Patch::between(&document, &change).expect("values are written as JSON");
                assert_eq!(difference.is_empty(), document == change);
                if !difference.is_empty() {
                    let operations = serde_json::from_slice(difference.as_bytes()).expect("a patch is JSON");
                    assert_eq!(patch::json::apply(document, &operations).ok(), Some(change));
                }
            }
        }
    }
}

/// A profile's patch that is prepared changes a pod as the general merge does, or both refuse it.
pub fn overlay(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (Some(Ok(pod)), Some(Ok(change))) = (values.next(), values.next()) else { return };
    let overlay = Overlay::new(&change);
    if !pod.is_object() || !overlay.is_apart_from(&Excerpt::Fields(Vec::new())) {
        return;
    }
    // Labels and annotations are changed elsewhere.
    let mut rest = typed_patch(&change, POD, &PodNode::ROOT);
    if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !["labels", "annotations"].contains(&name.as_str()));
    }
    let mut written = Patch::default();
    let outcome = overlay.write(&pod.to_string(), &mut written);
    match patch::strategic::apply(pod.clone(), &rest, &PodNode::ROOT) {
        Ok(merged) => {
            outcome.expect("the general merge takes it");
            let operations = serde_json::from_slice(written.as_bytes()).unwrap_or_else(|_| json!([]));
            assert_eq!(patch::json::apply(pod, &operations).ok(), Some(merged), "{written:?}");
        }
        Err(error) => assert_eq!(outcome.map_err(|refused| refused.to_string()), Err(error.to_string())),
    }
}

/// A pattern is compiled or refused in short time, and then matches in short time.
pub fn pattern(data: &[u8]) {
    let Some(text) = text(data) else { return };
    in_time(|| {
        if let Ok(regex) = pattern::compile(text) {
            regex.is_match(text);
            regex.is_match(&"a".repeat(1000));
        }
    });
}

/// A rule is compiled or refused, and evaluated within its limit.
pub fn cel(data: &[u8]) {
    let Some((choice, rule)) = chosen(data, &[0, 1, 2]) else { return };
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "s": {"type": "string", "maxLength": 32}, "b": {"type": "boolean"},
        "l": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 16}},
        "m": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
        "q": {"x-kubernetes-int-or-string": true}, "f": {"type": "number"},
    }, "x-kubernetes-validations": [match choice {
        0 => json!({"rule": rule}),
        1 => json!({"rule": "self.n > 1", "messageExpression": rule}),
        _ => json!({"rule": rule, "optionalOldSelf": true}),
    }]});
    let schema: Schema = serde_json::from_value(schema).expect("the schema of this target");
    in_time(|| {
        let (rules, errors) = Rules::compile(&schema, &Path::root("schema"));
        if errors.iter().next().is_none() {
            let object = json!({"n": 1, "s": "text", "b": true, "l": ["a", "b"], "m": {"x": 1}, "q": "5", "f": 1.5});
            rules.evaluate(&object, Some(&object), Span::from_millis(200));
        }
    });
}

/// A posted review is answered with JSON, whatever stands in it.
pub fn review(data: &[u8]) {
    static CTX: LazyLock<Ctx> = LazyLock::new(|| Ctx::detached(|_| true));
    let Some((first, body)) = data.split_first() else { return };
    let handler = &HANDLERS[usize::from(*first) % HANDLERS.len()];
    let answer = match koord_webhook_server::review::decode("application/json", body) {
        Ok(review) => review.answer(&(handler.call)(&review.request, &CTX)),
        Err(denial) => koord_webhook_server::review::refuse(denial),
    };
    let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
    assert!(answer["response"]["allowed"].is_boolean());
}

/// What a cache keeps: one part as text, one decoded.
#[derive(PartialEq, Projection)]
#[koord(kind = koord_types::node_slo::NodeSLO, runtime = koord_core)]
struct View {
    spec: Arc<str>,
    labels: Labels,
}

/// The cache's protocol takes any list and any line, goes on afterwards, and never waits for ever.
pub fn watch(data: &[u8]) {
    let Some((choice, text)) = chosen(data, &[0, 1, 2]) else { return };
    let store: Store<View> = Store::default();
    let random = Random::seeded(1);
    let mut now = Moment::at(Span::from_secs(1));
    let initial = if choice == 0 { Initial::Stream } else { Initial::Pages };
    let mut reflector = Reflector::new(Selection::default(), initial);
    for line in text.lines() {
        reflector.ask(now, &random, &store);
        if choice == 2 {
            let _ = reflector.page(line, now, &random, &store);
        }
        if reflector.line(line, now, &random, &store).is_err() {
            let failure = Failure { code: Some(410), ..Failure::default() };
            reflector.failed(&failure, now, &random);
        }
        now = now + Span::from_mins(1);
    }
    let _ = reflector.closed(now, &random);
    reflector.ask(now, &random, &store);
}

/// A protobuf body is read as an object with its kind, or refused.
pub fn protobuf(data: &[u8]) {
    if let Ok(object) = envtest::protobuf::to_json(data) {
        assert!(object["kind"].is_string() && object["apiVersion"].is_string(), "{object}");
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    /// The name of a program, and what it calls.
    type Target = (&'static str, fn(&[u8]));

    const TARGETS: [Target; 18] = [
        ("annotation", super::annotation),
        ("cel", super::cel),
        ("configuration", super::configuration),
        ("descheduler", super::descheduler),
        ("duration", super::duration),
        ("explanation", super::explanation),
        ("extender", super::extender),
        ("go_json", super::go_json),
        ("node_protocols", super::node_protocols),
        ("overlay", super::overlay),
        ("patch", super::patch),
        ("pattern", super::pattern),
        ("protobuf", super::protobuf),
        ("quantity", super::quantity),
        ("review", super::review),
        ("scheduler", super::scheduler),
        ("slo_config", super::slo_config),
        ("watch", super::watch),
    ];

    fn names(folder: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn fuzz() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"))
    }

    /// The programs are built by cargo-fuzz alone; each is one call of its function, so their text says whether they would compile.
    #[test]
    fn every_target_has_a_program_and_seeds() {
        let expected: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names(&fuzz().join("fuzz_targets")), expected);
        assert_eq!(names(&fuzz().join("seeds")), expected);
        let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
        for name in expected {
            let program = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs"))).unwrap();
            let call = format!("libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_rules::{name}(data));");
            assert_eq!(program, format!("#![no_main]\n\n{call}\n"));
            assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n")), "{name}");
        }
    }

    /// The seeds, everything that they begin with, and what one wrong bit in each of their bytes makes of them.
    #[test]
    fn seeds_and_what_is_near_them_hold() {
        let seeds = fuzz().join("seeds");
        for (name, target) in TARGETS {
            for seed in names(&seeds.join(name)) {
                let mut input = fs::read(seeds.join(name).join(seed)).unwrap();
                (0..=input.len()).for_each(|length| target(&input[..length]));
                for at in 0..input.len() {
                    let bit = 1 << (at % 8);
                    input[at] ^= bit;
                    target(&input);
                    input[at] ^= bit;
                }
            }
        }
    }
}
