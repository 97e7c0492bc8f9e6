//! Values of labels and annotations that can be read and hardly do what was meant: words that are not known, numbers below their bound,
//! sets of CPUs that are none, and fields that do not exist.

use std::{collections::HashMap, sync::LazyLock};

use koord_resource::{Duration, Quantity};
use koord_scheduling::CpuSet;
use serde_json::Value;

use super::{
    doubt::Doubt,
    fields::{Unknown, member, nearest},
    rules::{RULES, Rule, Rules},
};

/// How much is said of one text.
const DOUBTS_MAX: usize = 8;

/// What hardly does what was meant in a text that can be read, under the label or annotation of this name. Whether it can be read is a
/// matter of [`Entry::check`](super::Entry::check).
pub fn doubts(name: &str, text: &str) -> Vec<Doubt> {
    static BY_KEY: LazyLock<HashMap<&str, &Rules>> =
        LazyLock::new(|| RULES.iter().map(|rules| (rules.key, rules)).collect());
    let Some(rules) = BY_KEY.get(name) else { return Vec::new() };
    let value = match rules.unknown {
        None => Value::String(text.to_owned()),
        Some(_) => serde_json::from_str(text).unwrap_or_default(),
    };
    let unknown = rules.unknown.map(|unknown| unknown(&value)).unwrap_or_default();
    let mut doubts: Vec<Doubt> = unknown.into_iter().map(of_unknown).collect();
    for (path, rule) in rules.values {
        let steps: Vec<&str> = path.split('.').filter(|step| !step.is_empty()).collect();
        let mut found = Vec::new();
        find(&value, String::new(), &steps, &mut found);
        doubts.extend(found.into_iter().filter_map(|(field, value)| rule.doubt(field, value)));
    }
    doubts.truncate(DOUBTS_MAX);
    doubts
}

fn of_unknown(Unknown { path, meant }: Unknown) -> Doubt {
    let remedy = meant.map_or_else(|| "remove it".to_owned(), |meant| format!("did you mean {meant}?"));
    Doubt::new(path, "there is no such field".to_owned(), remedy)
}

/// All values at a path, with where they are.
fn find<'v>(value: &'v Value, at: String, path: &[&str], found: &mut Vec<(String, &'v Value)>) {
    let Some((step, rest)) = path.split_first() else { return found.push((at, value)) };
    match value {
        Value::Object(members) => {
            for (name, inner) in members.iter().filter(|(name, _)| *step == "*" || name.eq_ignore_ascii_case(step)) {
                find(inner, member(&at, name), rest, found);
            }
        }
        Value::Array(items) if *step == "*" => {
            for (index, inner) in items.iter().enumerate() {
                find(inner, format!("{at}[{index}]"), rest, found);
            }
        }
        _ => {}
    }
}

impl Rule {
    /// What is wrong with a value; values of other types are errors of the whole text.
    fn doubt(&self, field: String, value: &Value) -> Option<Doubt> {
        let shown = || value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
        let (problem, remedy) = match self {
            Self::Word(words) => {
                let text = value.as_str().filter(|text| !text.is_empty() && !words.contains(text))?;
                let words = || words.iter().copied().filter(|word| !word.is_empty());
                let listed = || format!("expected one of {}", words().collect::<Vec<_>>().join(", "));
                let remedy = nearest(text, words()).map_or_else(listed, |meant| format!("did you mean {meant}?"));
                (format!("{} is not known", shown()), remedy)
            }
            Self::AtLeast(least) => {
                let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
                if number >= *least {
                    return None;
                }
                (format!("{} is below {least}", shown()), format!("expected a number of at least {least}"))
            }
            Self::Amount => {
                let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
                if !text.parse::<Quantity>().ok()?.is_negative() {
                    return None;
                }
                (format!("{} is negative", shown()), "expected an amount of at least 0".to_owned())
            }
            Self::Duration => {
                if value.as_str()?.parse::<Duration>().ok()?.as_nanos() > 0 {
                    return None;
                }
                (format!("{} is not above 0", shown()), "expected a duration such as 5m".to_owned())
            }
            Self::Cpus => {
                let error = value.as_str()?.parse::<CpuSet>().err()?;
                (format!("{} is no set of CPUs: {error}", shown()), "expected CPU numbers such as 0-3,8".to_owned())
            }
        };
        Some(Doubt::new(field, problem, remedy))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        catalogue::{KEYS, find as entry, rules::PRIORITY_CLASSES},
        priority::PRIORITY_CLASS_LABEL,
        qos::QOS_LABEL,
    };

    fn said(name: &str, text: &str) -> Vec<String> {
        doubts(name, text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_rule_is_of_a_key_and_every_key_has_one_at_most() {
        let keys: BTreeSet<&str> = RULES.iter().map(|rules| rules.key).collect();
        assert_eq!(keys.len(), RULES.len());
        let further = [QOS_LABEL, PRIORITY_CLASS_LABEL];
        let missing: Vec<&&str> = keys.iter().filter(|key| entry(key).is_none() && !further.contains(*key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn what_users_are_told_to_write_raises_no_doubt() {
        for entry in KEYS {
            let Some((_, example)) = entry.expected().split_once("such as ") else { continue };
            assert_eq!(said(entry.name(), example), [""; 0], "{}", entry.name());
        }
        for class in PRIORITY_CLASSES {
            assert!(crate::priority::PriorityClass::named(class).is_some(), "{class}");
        }
    }

    #[test]
    fn values_that_hardly_do_what_was_meant_are_found_with_a_remedy() {
        for (name, text, expected) in [
            ("koordinator.sh/qosClass", "BEST", r#""BEST" is not known; expected one of LSE, LSR, LS, BE, SYSTEM"#),
            ("koordinator.sh/qosClass", "be", r#""be" is not known; did you mean BE?"#),
            ("gang.scheduling.koordinator.sh/mode", "strict", r#""strict" is not known; did you mean Strict?"#),
            (
                "gang.scheduling.koordinator.sh/match-policy",
                "all",
                r#""all" is not known; expected one of only-waiting, waiting-and-running, once-satisfied"#,
            ),
            (
                "gang.scheduling.koordinator.sh/min-available",
                "-3",
                r#""-3" is below 0; expected a number of at least 0"#,
            ),
            (
                "gang.scheduling.koordinator.sh/waiting-time",
                "-5s",
                r#""-5s" is not above 0; expected a duration such as 5m"#,
            ),
            (
                "node.koordinator.sh/numa-allocate-strategy",
                "MostAlocated",
                r#""MostAlocated" is not known; did you mean MostAllocated?"#,
            ),
            (
                "node.koordinator.sh/resource-amplification-ratio",
                r#"{"cpu":0.5}"#,
                "cpu: 0.5 is below 1; expected a number of at least 1",
            ),
            (
                "quota.scheduling.koordinator.sh/shared-weight",
                r#"{"cpu":-1,"memory":"4Gi"}"#,
                "cpu: -1 is negative; expected an amount of at least 0",
            ),
            (
                "scheduling.koordinator.sh/device-allocate-hint",
                r#"{"rdma":{"exclusivePolicy":"PCIeLevl"}}"#,
                r#"rdma.exclusivePolicy: "PCIeLevl" is not known; did you mean PCIeLevel?"#,
            ),
            (
                "scheduling.koordinator.sh/device-joint-allocate",
                r#"{"deviceTypes":["gpu"],"requiredscope":"SameNode"}"#,
                r#"requiredscope: "SameNode" is not known; expected one of SamePCIe"#,
            ),
            (
                "scheduling.koordinator.sh/numa-topology-spec",
                r#"{"numaTopologyPolcy":"Restricted"}"#,
                "numaTopologyPolcy: there is no such field; did you mean numaTopologyPolicy?",
            ),
            ("scheduling.koordinator.sh/resource-spec", r#"{"bind":true}"#, "bind: there is no such field; remove it"),
        ] {
            assert_eq!(said(name, text), [expected], "{name}");
        }
        let cpus = said("scheduling.koordinator.sh/resource-status", r#"{"cpuset":"zero"}"#);
        assert!(cpus.len() == 1 && cpus[0].starts_with(r#"cpuset: "zero" is no set of CPUs: "#), "{cpus:?}");
    }

    #[test]
    fn a_text_that_cannot_be_read_or_has_many_faults_does_not_say_much() {
        assert_eq!(said("scheduling.koordinator.sh/resource-spec", "{"), [""; 0]);
        assert_eq!(said("example.com/other", "{"), [""; 0]);
        let members: Vec<String> = (0..100).map(|index| format!(r#""field{index}":1"#)).collect();
        let text = format!("{{{}}}", members.join(","));
        assert_eq!(said("scheduling.koordinator.sh/resource-spec", &text).len(), DOUBTS_MAX);
    }
}
