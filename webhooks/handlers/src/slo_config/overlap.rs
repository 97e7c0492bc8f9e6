//! Strategies for some nodes must not be for the same ones, as far as follows from their selectors alone.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_api::slo_config::Draft;
use koord_resource::admission::Denial;
use serde::Serialize;

use super::{Chosen, conflict::selecting, refuse};

/// Most sets of labels that are tried for one selector.
const SETS_MAX: usize = 1000;

#[derive(Serialize)]
struct Overlap<'a> {
    config: &'a str,
    strategies: Vec<&'a str>,
}

/// Makes up nodes that the selectors ask for, and refuses when one of them has several strategies.
pub(super) fn check(key: &str, draft: &Draft, chosen: &Chosen) -> Result<(), Denial> {
    let selectors = draft.nodes.iter().filter_map(|node| node.profile.node_selector.as_ref());
    for labels in selectors.flat_map(label_sets) {
        let strategies = selecting(chosen, |key| labels.get(key).copied());
        if strategies.len() > 1 {
            return Err(refuse("NodeStrategiesOverlap", &Overlap { config: key, strategies }));
        }
    }
    Ok(())
}

/// Labels of nodes that a selector may be meant for. What an expression does with its values is not looked at.
fn label_sets(selector: &LabelSelector) -> impl Iterator<Item = BTreeMap<&str, &str>> {
    let lists: Vec<(&str, &[String])> = selector
        .match_expressions
        .iter()
        .flatten()
        .map(|term| (term.key.as_str(), term.values.as_deref().unwrap_or_default()))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    let sets = lists.iter().fold(1usize, |product, (_, values)| product.saturating_mul(values.len()));
    (0..sets.min(SETS_MAX)).map(move |index| {
        let labels = selector.match_labels.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
        let listed = lists.iter().map(|(key, values)| (*key, values[index % values.len()].as_str()));
        labels.chain(listed).collect()
    })
}

#[cfg(test)]
mod tests {
    use koord_api::slo_config::CPU_BURST_CONFIG;

    use super::*;
    use crate::slo_config::selector::choose;

    fn refused(selectors: &[&str]) -> Option<String> {
        let strategies: Vec<String> = ["a", "b", "c"]
            .iter()
            .zip(selectors)
            .map(|(name, selector)| format!(r#"{{"name":"{name}","nodeSelector":{selector}}}"#))
            .collect();
        let text = format!(r#"{{"nodeStrategies":[{}]}}"#, strategies.join(","));
        let draft = Draft::read(CPU_BURST_CONFIG, &text).unwrap();
        let chosen = choose(CPU_BURST_CONFIG, &draft).unwrap();
        check(CPU_BURST_CONFIG, &draft, &chosen).err().map(|denial| denial.message)
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
