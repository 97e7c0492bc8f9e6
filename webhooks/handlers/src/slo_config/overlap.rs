//! Strategies for some nodes must not be for the same ones, as far as follows from their selectors alone.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_resource::admission::Denial;
use koord_types::slo_config::Draft;
use serde::Serialize;

use super::{Chosen, conflict::selecting, refuse};

/// How often at the most a selector is compared with a set of labels.
const COMPARISONS_MAX: usize = 1_000_000;

#[derive(Serialize)]
struct Overlap<'a> {
    config: &'a str,
    strategies: Vec<&'a str>,
}

/// Makes up nodes that the selectors ask for, and refuses when one of them has several strategies.
pub(super) fn check(key: &str, draft: &Draft, chosen: &Chosen) -> Result<(), Denial> {
    match overlap(draft, chosen, COMPARISONS_MAX) {
        Some(strategies) => Err(refuse("NodeStrategiesOverlap", &Overlap { config: key, strategies })),
        None => Ok(()),
    }
}

/// The strategies that select one of the nodes.
fn overlap<'c>(draft: &Draft, chosen: &'c Chosen, comparisons_max: usize) -> Option<Vec<&'c str>> {
    let mut sets_left = comparisons_max / chosen.len().max(1);
    for selector in draft.nodes.iter().filter_map(|node| node.profile.node_selector.as_ref()) {
        let labels = Labels::of(selector);
        let sets = labels.sets().min(sets_left);
        sets_left -= sets;
        let mut strategies = (0..sets).map(|index| selecting(chosen, |key| labels.get(key, index)));
        if let Some(strategies) = strategies.find(|strategies| strategies.len() > 1) {
            return Some(strategies);
        }
    }
    None
}

/// Labels of nodes that a selector may be meant for. What an expression does with its values is not looked at.
struct Labels<'a> {
    selector: &'a LabelSelector,
    lists: Vec<(&'a str, &'a [String])>,
}

impl<'a> Labels<'a> {
    fn of(selector: &'a LabelSelector) -> Self {
        let terms = selector.match_expressions.iter().flatten();
        let lists = terms.map(|term| (term.key.as_str(), term.values.as_deref().unwrap_or_default()));
        Self { selector, lists: lists.filter(|(_, values)| !values.is_empty()).collect() }
    }

    /// How many different sets of labels there are: a set has of each list the value at its own index.
    fn sets(&self) -> usize {
        let lengths = self.lists.iter().map(|(_, values)| values.len());
        lengths.fold(1, |sets, length| (sets / greatest_common_divisor(sets, length)).saturating_mul(length))
    }

    /// The value of a label in one of the sets.
    fn get(&self, key: &str, index: usize) -> Option<&'a str> {
        let listed = self.lists.iter().rfind(|(listed, _)| *listed == key);
        match listed {
            Some((_, values)) => Some(values[index % values.len()].as_str()),
            None => self.selector.match_labels.as_ref()?.get(key).map(String::as_str),
        }
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use koord_types::slo_config::CPU_BURST_CONFIG;
    use serde_json::json;

    use super::*;
    use crate::slo_config::selector::choose;

    fn read(selectors: &[&str]) -> (Draft, Chosen) {
        let strategies: Vec<String> = ["a", "b", "c"]
            .iter()
            .zip(selectors)
            .map(|(name, selector)| format!(r#"{{"name":"{name}","nodeSelector":{selector}}}"#))
            .collect();
        let text = format!(r#"{{"nodeStrategies":[{}]}}"#, strategies.join(","));
        let draft = Draft::read(CPU_BURST_CONFIG, &text).unwrap();
        let chosen = choose(CPU_BURST_CONFIG, &draft).unwrap();
        (draft, chosen)
    }

    fn refused(selectors: &[&str]) -> Option<String> {
        let (draft, chosen) = read(selectors);
        check(CPU_BURST_CONFIG, &draft, &chosen).err().map(|denial| denial.message)
    }

    /// A selector with two lists of values, and one for the last node that it asks for.
    fn last_of(values: [usize; 2]) -> [String; 2] {
        let values = values.map(|count| (0..count).map(|value| format!("v{value}")).collect::<Vec<_>>());
        let [x, y] = &values;
        let lists = json!([
            {"key": "x", "operator": "In", "values": x}, {"key": "y", "operator": "In", "values": y},
        ]);
        let all = json!({"matchLabels": {"pool": "a"}, "matchExpressions": lists});
        let last = json!({"matchLabels": {"x": x.last(), "y": y.last()}});
        [all.to_string(), last.to_string()]
    }

    #[test]
    fn every_set_of_values_is_tried_within_a_limit_of_comparisons() {
        let [all, last] = last_of([31, 37]);
        assert!(refused(&[&all, &last]).is_some(), "the last of 1147");
        let (draft, chosen) = read(&[&all, &last]);
        assert_eq!(overlap(&draft, &chosen, 2 * 1147), Some(vec!["a", "b"]));
        assert_eq!(overlap(&draft, &chosen, 2 * 1146), None);
        let [all, last] = last_of([1000, 1000]);
        let (draft, chosen) = read(&[&all, &last]);
        assert_eq!(
            overlap(&draft, &chosen, 2 * 1000),
            Some(vec!["a", "b"]),
            "values of lists of one length go together"
        );
    }

    #[test]
    fn a_node_that_two_selectors_ask_for_is_found() {
        let overlap = |names: &str| {
            Some(format!(
                r#"___{{"reason":"NodeStrategiesOverlap","message":{{"config":"cpu-burst-config","strategies":[{names}]}}}}___"#
            ))
        };
        let (aa, aabb, bb) = (
            r#"{"matchLabels":{"aa":"true"}}"#,
            r#"{"matchLabels":{"aa":"true","bb":"true"}}"#,
            r#"{"matchLabels":{"bb":"true"}}"#,
        );
        assert_eq!(refused(&[aa, aabb]), overlap(r#""a","b""#));
        assert_eq!(refused(&[aa, bb]), None);
        assert_eq!(refused(&[aa, aa, aa]), overlap(r#""a","b","c""#));
        let listed = r#"{"matchExpressions":[{"key":"bb","operator":"In","values":["no","true"]}]}"#;
        assert_eq!(refused(&[listed, bb]), overlap(r#""a","b""#));
        assert_eq!(refused(&[listed, aa]), None);
    }
}
