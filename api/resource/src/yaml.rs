//! YAML and JSON texts, in and out.

mod continuation;
pub mod place;

use std::{
    io::{self, Read},
    sync::LazyLock,
};

use koord_schema::{nesting, strict};
use regex::Regex;
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;

/// Most bytes of one text.
pub const TEXT_BYTES_MAX: u64 = 256 << 20;
/// Deepest nesting of YAML. The parser recurses, and unoptimised it needs some 16 KB of stack for each level, so this is
/// less than what JSON may have.
const DEPTH_MAX: usize = 64;
/// Most documents of one text.
const DOCUMENTS_MAX: usize = 100_000;
/// What the parser says of a quoted scalar that goes on no further right than its key. Go's YAML, and so every file that
/// controller-gen ever wrote, allows that.
const SHALLOW_CONTINUATION: &str = "invalid indentation in multiline quoted scalar";

/// Why a text cannot be read, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    message: String,
    /// Line of the mistake, from 1; 0 when it has no place.
    pub line: u64,
}

/// Reads a whole text that is no longer than [`TEXT_BYTES_MAX`], so that an endless input is refused.
pub fn read_text(source: impl Read) -> io::Result<String> {
    read_text_up_to(TEXT_BYTES_MAX, source)
}

/// Reads a whole text of at most so many bytes, a multiple of 1 MiB.
pub fn read_text_up_to(bytes_max: u64, source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_long(bytes_max)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// What is wrong with a text of more bytes than these, a multiple of 1 MiB.
pub fn too_long(bytes_max: u64) -> String {
    format!("it is longer than {} MiB", bytes_max >> 20)
}

/// Reads one document.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    match json(text) {
        Some(value) => Ok(value),
        None => as_go_reads(text, |text, options| serde_saphyr::from_str_with_options(text, options)),
    }
}

/// Reads every document of a text; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    if let Some(value) = json(text) {
        return Ok(vec![value]);
    }
    let documents: Vec<Value> =
        as_go_reads(text, |text, options| serde_saphyr::from_multiple_with_options(text, options))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// A text that is JSON, read as such: a fraction of the work. What YAML refuses of it is left to YAML.
fn json(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    (nesting::depth(&value) <= nesting::DEPTH_MAX && strict::duplicates(text.as_bytes()).is_empty()).then_some(value)
}

/// Reads YAML, once more with the continuation lines of quoted scalars moved to the right where the parser wants that.
fn as_go_reads<T>(
    text: &str,
    read: impl Fn(&str, serde_saphyr::Options) -> Result<T, serde_saphyr::Error>,
) -> Result<T, YamlError> {
    let error = match read(text, limits(text)) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if !is_shallow_continuation(&error) {
        return Err(YamlError::of(&error));
    }
    match continuation::indented(text) {
        Some(moved) => read(&moved, limits(&moved)).map_err(|error| YamlError::of(&error)),
        None => Err(YamlError::of(&error)),
    }
}

/// A text can hold no more events and nodes than bytes; only what aliases multiply needs a limit of its own.
fn limits(text: &str) -> serde_saphyr::Options {
    let most = text.len().saturating_mul(2).saturating_add(64);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: most,
            max_nodes: most,
            max_total_scalar_bytes: most,
            max_total_comment_bytes: most,
            max_documents: DOCUMENTS_MAX,
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
        },
    }
}

/// What the parser says of flow collections that nest too deep.
const FLOW_TOO_DEEP: &str = "recursion limit exceeded";

fn is_shallow_continuation(error: &serde_saphyr::Error) -> bool {
    matches!(error.without_snippet(), serde_saphyr::Error::ExternalMessage { msg, .. } if msg == SHALLOW_CONTINUATION)
}

// === impl YamlError ===

impl YamlError {
    fn of(error: &serde_saphyr::Error) -> Self {
        use serde_saphyr::Error;
        let error = match error.without_snippet() {
            Error::AliasError { error, .. } => error.without_snippet(),
            error => error,
        };
        let location = error.location();
        let own = match error {
            Error::Budget { breach, .. } => Some(of_breach(breach)),
            Error::ExternalMessage { msg, .. } if msg == FLOW_TOO_DEEP => Some(too_deep()),
            Error::AliasReplayCounterOverflow { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. } => Some(TOO_MANY_ALIASES.to_owned()),
            Error::DuplicateMappingKey { key, .. } => Some(match key {
                Some(key) => format!("the key {key:?} stands twice in one mapping"),
                None => "a key stands twice in one mapping".to_owned(),
            }),
            Error::MultipleDocuments { .. } => Some("more than one document, where one is expected".to_owned()),
            _ => None,
        };
        let message = match (own, location) {
            (Some(own), Some(at)) => format!("{own} at line {}, column {}", at.line(), at.column()),
            (Some(own), None) => own,
            (None, _) => {
                let text = error.to_string();
                let text = text.lines().next().unwrap_or_default();
                text.strip_prefix("error: ").unwrap_or(text).to_owned()
            }
        };
        Self { message, line: location.map_or(0, |at| at.line()) }
    }
}

const TOO_MANY_ALIASES: &str = "its aliases stand for too much";

fn too_deep() -> String {
    format!("nested deeper than {DEPTH_MAX} levels")
}

fn of_breach(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => too_deep(),
        BudgetBreach::Documents { .. } => format!("more than {DOCUMENTS_MAX} documents"),
        // The others are bounded by the text itself, unless aliases repeat parts of it.
        _ => TOO_MANY_ALIASES.to_owned(),
    }
}

/// Writes an object with sorted keys, as kubectl and the API server do.
pub fn to_text(value: &Value) -> String {
    let text = serde_saphyr::to_string(value).unwrap_or_default();
    match &*FIELD_KEYS {
        Some(keys) => keys.replace_all(&text, "$1$2:").into_owned(),
        None => text,
    }
}

/// Keys of `fieldsV1`: the library quotes them, Go's YAML does not.
static FIELD_KEYS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?m)^( *(?:- )?)"(\.|f:[A-Za-z0-9_./-]+)":"#).ok());

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};
    use serde_json::json;

    use super::*;

    #[test]
    fn quoted_texts_may_go_on_below_their_key() {
        let text = "a:\n  description: 'one\n  two\n  three'\n  other: \"four\n\n  five\"\nb: 'six\nseven'\n";
        let expected = json!({"a": {"description": "one two three", "other": "four\nfive"}, "b": "six seven"});
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(documents(&format!("---\n{text}---\n{text}")).unwrap(), [expected.clone(), expected]);
    }

    #[test]
    fn other_mistakes_are_reported_where_they_are() {
        let error = parse("a: 'one\ntwo'\nb: [1\nc: 2\n").unwrap_err();
        assert!(error.line >= 3, "{error}");
        assert_eq!(parse("a: [").unwrap_err().to_string(), "unclosed bracket '[' at line 1, column 4");
    }

    #[test]
    fn mistakes_name_no_option_of_a_library() {
        let nested = "[".repeat(130) + &"]".repeat(130);
        let blocks: String = (0..130).map(|depth| " ".repeat(depth) + "a:\n").collect();
        let bomb: String = (1..=9)
            .map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(",")))
            .fold("a0: &a0 [x]\n".to_owned(), |text, line| text + &line);
        for (text, words) in [
            (nested.as_str(), "nested deeper than 64 levels"),
            (blocks.as_str(), "nested deeper than 64 levels"),
            (bomb.as_str(), "its aliases stand for too much"),
            ("a: 1\na: 2\n", "the key \"a\" stands twice in one mapping at line 2, column 1"),
            ("{\"a\": 1, \"a\": 2}", "the key \"a\" stands twice in one mapping at line 1, column 10"),
            ("a: 1\n---\nb: 2\n", "more than one document, where one is expected"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
            for word in ["budget", "Options", "Policy", "max_", "from_", "limit"] {
                assert!(!message.contains(word), "{message}");
            }
        }
    }

    #[test]
    fn thousands_of_pods_are_read_as_json_and_as_yaml() {
        let pod = |n: usize| {
            json!({"kind": "Pod", "metadata": {"name": format!("p{n}"), "labels": {"a": "b"}},
            "spec": {"containers": (0..8).map(|n| json!({"name": n.to_string(), "args": ["x", "y"]})).collect::<Vec<_>>()}})
        };
        let list = json!({"kind": "List", "items": (0..3_000).map(pod).collect::<Vec<_>>()});
        assert_eq!(parse(&list.to_string()).unwrap(), list);
        assert_eq!(parse(&to_text(&list)).unwrap(), list);
    }

    /// Most that a text of ten times the size may cost; a quadratic one would cost a hundred times as much.
    const RATIO_MAX: u32 = 40;

    #[test]
    fn the_work_for_shallow_continuation_lines_grows_with_the_text_and_no_faster() {
        let text = |count: usize| (0..count).map(|n| format!("k{n}: 'one\ntwo'\n")).collect::<Vec<_>>().concat();
        // Of this thread: how busy the machine is does not count.
        let cpu = || std::time::Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let work = |count: usize| {
            let text = text(count);
            let start = cpu();
            assert_eq!(parse(&text).unwrap()["k0"], "one two");
            cpu().saturating_sub(start)
        };
        let (small, large) = (work(1_000), work(10_000));
        assert!(large < small * RATIO_MAX, "{small:?} for 1000 texts, {large:?} for 10000");
    }

    #[test]
    fn an_endless_input_is_refused() {
        let error = read_text(io::repeat(b' ')).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 256 MiB");
        assert_eq!(read_text("a: 1".as_bytes()).unwrap(), "a: 1");
        let limited =
            |text: &[u8]| read_text_up_to(1 << 20, text).map(|text| text.len()).map_err(|error| error.to_string());
        assert_eq!(limited(" ".repeat(1 << 20).as_bytes()), Ok(1 << 20));
        // The limit lies within a letter: the length is what is wrong.
        let letters = "\u{e4}".repeat((1 << 19) + 1);
        assert_eq!(limited(&letters.as_bytes()[1..]), Err("it is longer than 1 MiB".to_owned()));
        assert_eq!(limited(&[0xff]), Err("it is not UTF-8".to_owned()));
    }
}
