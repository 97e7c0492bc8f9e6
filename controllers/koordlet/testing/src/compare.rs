//! Compares what was seen with a recording.
//!
//! Members that are empty and members that are missing are equal, except among files, where an unchanged file is not a removed one. Numbers in texts are
//! equal by value, `cpuset.cpus` as a set, JSON texts by content. CPUs that a cpuset named before, in another text, are a needless write, and those
//! are not compared. Numbers within 15 % are near: enough in a NodeMetric (there also within 0.15), in
//! metrics, and where the case says so.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::case::Case;

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// JSON pointer into the recording.
    pub pointer: String,
    pub recorded: Value,
    pub seen: Value,
    /// The numbers agree within 15 %.
    is_near: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &Value| if value == ABSENT { "nothing".to_owned() } else { value.to_string() };
        write!(f, "{}: recorded {}, seen {}", self.pointer, shown(&self.recorded), shown(&self.seen))
    }
}

/// Stands for a member that is missing.
const ABSENT: &str = "(absent)";

/// What differs from the recording of a case, and counts.
pub fn compare(case: &Case, seen: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    diff(&case.recorded, seen, "", &mut all);
    all.retain(|difference| counts(case, difference) && !is_rewritten(seen, difference));
    if case.reference_crash || (case.defect.is_some() && !all.is_empty()) {
        if seen["alive"] != false {
            return Vec::new();
        }
        if all.is_empty() {
            all.push(Difference {
                pointer: "/alive".to_owned(),
                recorded: true.into(),
                seen: false.into(),
                is_near: false,
            });
        }
    }
    all
}

/// The member of a state with what cpusets said before the agent.
pub(crate) const BEFORE: &str = "before";

/// Whether a path is that of a list of CPUs.
pub(crate) fn is_cpuset(path: &str) -> bool {
    path.rsplit('/').next() == Some("cpuset.cpus")
}

/// Whether two texts of a cpuset name the same CPUs.
pub fn names_the_same_cpus(path: &str, one: &str, other: &str) -> bool {
    is_cpuset(path) && !one.trim().is_empty() && cpus(one).is_some_and(|cpus_of_one| cpus(other) == Some(cpus_of_one))
}

/// Whether the original has only written the CPUs that the file named already.
fn is_rewritten(seen: &Value, difference: &Difference) -> bool {
    let Some((state, path)) = difference.pointer.split_once("/files/") else { return false };
    let path = path.replace("~1", "/").replace("~0", "~");
    let before = seen.pointer(state).map(|state| &state[BEFORE][&path]).and_then(Value::as_str);
    let recorded = difference.recorded.as_str();
    difference.seen == ABSENT
        && recorded.zip(before).is_some_and(|(recorded, before)| names_the_same_cpus(&path, recorded, before))
}

fn counts(case: &Case, difference: &Difference) -> bool {
    let Difference { pointer, recorded, seen, is_near } = difference;
    if *pointer == format!("/{BEFORE}")
        || pointer.ends_with(&format!("/{BEFORE}")) && pointer.starts_with("/snapshots/")
    {
        return false;
    }
    if is_covered(pointer, &case.unstable) {
        return false;
    }
    let parts: Vec<&str> = pointer.split('/').collect();
    let is_write = parts.iter().any(|part| part.starts_with("rewritten") || part.starts_with("resctrlWrites"));
    if is_write && !case.strict_writes {
        return false;
    }
    if pointer == "/stopExit" && seen == ABSENT {
        return false;
    }
    // Any failure equals any other.
    if matches!(pointer.as_str(), "/exit" | "/stopExit") && is_failure(recorded) && is_failure(seen) {
        return false;
    }
    if pointer.starts_with("/metrics/") && pointer.ends_with("/value") && recorded.is_null() {
        return false;
    }
    let is_rough =
        is_covered(pointer, &case.approx) || pointer.contains("/NodeMetric/") || pointer.starts_with("/metrics/");
    !(*is_near && is_rough)
}

fn is_failure(code: &Value) -> bool {
    code.as_i64().is_some_and(|code| code != 0)
}

fn is_covered(pointer: &str, covers: &[String]) -> bool {
    covers
        .iter()
        .any(|cover| pointer.strip_prefix(cover.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn diff(recorded: &Value, seen: &Value, pointer: &str, found: &mut Vec<Difference>) {
    let mut add = |recorded: &Value, seen: &Value, pointer: &str, is_near: bool| {
        found.push(Difference { pointer: pointer.to_owned(), recorded: recorded.clone(), seen: seen.clone(), is_near });
    };
    match (recorded, seen) {
        (Value::Object(one), Value::Object(other)) => return diff_members(one, other, pointer, found),
        (Value::Array(one), Value::Array(other)) => {
            if one.len() != other.len() {
                // What both have is left out, so that what differs can be read.
                let only = |these: &[Value], those: &[Value]| {
                    these.iter().filter(|item| !those.contains(item)).cloned().collect()
                };
                return add(&Value::Array(only(one, other)), &Value::Array(only(other, one)), pointer, false);
            }
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                diff(one, other, &format!("{pointer}/{index}"), found);
            }
            return;
        }
        _ => {}
    }
    if recorded == seen || (is_empty(recorded) && is_empty(seen)) {
        return;
    }
    if let (Some(one), Some(other)) = (recorded.as_str(), seen.as_str()) {
        if pointer.ends_with("cpuset.cpus") && cpus(one).is_some_and(|cpus_of_one| cpus(other) == Some(cpus_of_one)) {
            return;
        }
        if number(recorded).is_none() || number(seen).is_none() {
            if are_near_words(one, other) {
                return add(recorded, seen, pointer, true);
            }
            let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
            if (one.starts_with(['{', '[']) || other.starts_with(['{', '[']))
                && parsed(one).is_some()
                && parsed(one) == parsed(other)
            {
                return;
            }
        }
    }
    match (number(recorded), number(seen)) {
        (Some(one), Some(other)) if one.total_cmp(&other).is_eq() => {}
        (Some(one), Some(other)) => {
            let is_near = is_close(one, other) || (pointer.contains("/NodeMetric/") && (one - other).abs() <= 0.15);
            add(recorded, seen, pointer, is_near);
        }
        _ => add(recorded, seen, pointer, false),
    }
}

fn diff_members(recorded: &Map<String, Value>, seen: &Map<String, Value>, pointer: &str, found: &mut Vec<Difference>) {
    let keys: BTreeSet<&String> = recorded.keys().chain(seen.keys()).collect();
    for key in keys {
        let inner = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
        if let (Some(one), Some(other)) = (recorded.get(key), seen.get(key)) {
            diff(one, other, &inner, found);
            continue;
        }
        let nothing = [recorded, seen].into_iter().filter_map(|members| members.get(key)).all(is_empty);
        if !nothing || pointer.contains("/files") || inner.contains("/evicted") {
            let or_absent = |members: &Map<String, Value>| members.get(key).cloned().unwrap_or_else(|| ABSENT.into());
            found.push(Difference {
                pointer: inner,
                recorded: or_absent(recorded),
                seen: or_absent(seen),
                is_near: false,
            });
        }
    }
}

/// Texts of several words that differ only in numbers within 15 %.
fn are_near_words(one: &str, other: &str) -> bool {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.split_whitespace().collect(), other.split_whitespace().collect());
    let mut pairs = one.iter().zip(&other).filter(|(one, other)| one != other).peekable();
    one.len() > 1
        && one.len() == other.len()
        && pairs.peek().is_some()
        && pairs.all(|(one, other)| matches!((number_of(one), number_of(other)), (Some(one), Some(other)) if is_close(one, other)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.15 * one.abs().max(other.abs())
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_of(text),
        _ => None,
    }
}

/// The value of a number with a suffix such as `m` or `Gi`.
fn number_of(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches('-');
    let end = digits.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(digits.len());
    let (amount, suffix) = digits.split_at(end);
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        _ => return None,
    };
    let is_whole = amount.starts_with(|character: char| character.is_ascii_digit()) && !amount.ends_with('.');
    if !is_whole || text.len() - digits.len() > 1 {
        return None;
    }
    let amount: f64 = amount.parse().ok()?;
    Some(if text.starts_with('-') { -amount } else { amount } * factor)
}

/// The CPUs of a list such as `0-2,5`; `None` of a text that is none.
fn cpus(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?);
    }
    Some(cpus)
}

/// Differences in one line each, shortened.
pub fn lines(differences: &[Difference]) -> Vec<String> {
    let short =
        |line: String| if line.chars().count() > 400 { line.chars().take(400).chain(['…']).collect() } else { line };
    differences.iter().map(|difference| short(difference.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(recorded: &Value, seen: &Value) -> Vec<String> {
        let case = Case {
            recorded: recorded.clone(),
            approx: vec!["/files/a~1cpu.max".to_owned()],
            unstable: vec!["/files/u".to_owned()],
            ..Case::default()
        };
        compare(&case, seen).into_iter().map(|difference| difference.pointer).collect()
    }

    #[test]
    fn values_are_equal_by_what_they_mean() {
        for (path, one, other) in [
            ("a/cpuset.cpus", "1,5,2-3", "1-3,5"),
            ("a/x", "1024", "1Ki"),
            ("a/x", r#"{"a":1,"b":[2]}"#, r#"{ "b": [2], "a": 1 }"#),
            ("u", "1", "2"),
            ("a/cpu.max", "100000 100000", "110000 100000"),
        ] {
            assert_eq!(
                pointers(&json!({"files": {path: one}}), &json!({"files": {path: other}})),
                [""; 0],
                "{path} {one} {other}"
            );
        }
    }

    #[test]
    fn what_differs_is_named_by_its_pointer() {
        let table = [
            (json!({"files": {"a/b": "1"}}), json!({"files": {}}), "/files/a~1b"),
            (json!({"files": {"a": null}}), json!({"files": {}}), "/files/a"),
            (json!({"files": {}}), json!({"files": {"a": "x"}}), "/files/a"),
            (json!({"files": {"a/b": "100"}}), json!({"files": {"a/b": "101"}}), "/files/a~1b"),
            (
                json!({"files": {"a/cpuset.cpus": "0-1"}}),
                json!({"files": {"a/cpuset.cpus": "0-2"}}),
                "/files/a~1cpuset.cpus",
            ),
            (json!({"files": {"a/cpu.max": "100 1"}}), json!({"files": {"a/cpu.max": "200 1"}}), "/files/a~1cpu.max"),
            (
                json!({"objects": {"NodeMetric": {"cpu": "2"}}}),
                json!({"objects": {"NodeMetric": {"cpu": "3"}}}),
                "/objects/NodeMetric/cpu",
            ),
            (json!({"alive": true}), json!({"alive": false}), "/alive"),
            (json!({"exit": 2}), json!({"exit": 0}), "/exit"),
        ];
        for (recorded, seen, pointer) in table {
            assert_eq!(pointers(&recorded, &seen), [pointer], "{recorded} {seen}");
        }
    }

    #[test]
    fn numbers_of_reports_are_compared_roughly_and_needless_writes_not_at_all() {
        let table = [
            (json!({"objects": {"NodeMetric": {"cpu": "1900m"}}}), json!({"objects": {"NodeMetric": {"cpu": "2"}}})),
            (json!({"objects": {"NodeMetric": {"cpu": "0"}}}), json!({"objects": {"NodeMetric": {"cpu": "140m"}}})),
            (json!({"metrics": {"/metrics": {"value": 10.0}}}), json!({"metrics": {"/metrics": {"value": 11}}})),
            (json!({"metrics": {"/metrics": {"value": null}}}), json!({"metrics": {"/metrics": {"value": 11}}})),
            (json!({"rewritten": ["a"], "exit": 255}), json!({"rewritten": [], "exit": 1})),
            (json!({"nri": {"update": []}}), json!({"nri": {}})),
        ];
        for (recorded, seen) in table {
            assert_eq!(pointers(&recorded, &seen), [""; 0], "{recorded} {seen}");
        }
    }

    #[test]
    fn cpus_that_are_written_again_in_another_text_are_no_difference() {
        let table = [
            ("a/memory.high", "9223372036854775807", "9223372036854771712\n", false),
            ("a/cpuset.cpus", "0-1,4-5,2-3", "0-5\n", true),
            ("a/memory.high", "9223372036854775807", "1024\n", false),
            ("a/cpuset.cpus", "0-3", "\n", false),
            ("a/cpuset.cpus", "0-3", "0-5\n", false),
            ("a/cpu.shares", "1024", "1024\n", false),
        ];
        for (path, recorded, before, is_same) in table {
            let seen = json!({"files": {}, "before": {path: before}});
            let found = pointers(&json!({"files": {path: recorded}}), &seen);
            assert_eq!(found.is_empty(), is_same, "{path} {recorded} {before}");
            let (recorded, seen) =
                (json!({"snapshots": {"s": {"files": {path: recorded}}}}), json!({"snapshots": {"s": seen}}));
            assert_eq!(pointers(&recorded, &seen).is_empty(), is_same, "{path}");
        }
        assert_eq!(pointers(&json!({"files": {"a/memory.high": "max"}}), &json!({"files": {}})).len(), 1);
    }

    #[test]
    fn a_crash_of_the_original_need_not_be_repeated() {
        let crashed = json!({"alive": false, "exit": 2, "files": {"a": "1"}});
        let case = Case { recorded: crashed.clone(), reference_crash: true, ..Case::default() };
        assert!(compare(&case, &json!({"alive": true, "files": {}})).is_empty());
        assert_eq!(compare(&case, &crashed).len(), 1);
    }
}
