//! Which nodes a strategy is for.

use std::fmt::Write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_resource::admission::Denial;
use koord_scheduling::Selector;
use koord_types::slo_config::Draft;

use super::refuse;

/// The strategies of a key for some nodes, by name, in the order of the configuration.
pub(crate) type Chosen = Vec<(String, Selector)>;

/// Understands the selectors of a key. None may be missing or empty.
pub(super) fn choose(key: &str, draft: &Draft) -> Result<Chosen, Denial> {
    draft.nodes.iter().map(|node| choose_one(key, &node.profile.name, node.profile.node_selector.as_ref())).collect()
}

fn choose_one(key: &str, name: &str, selector: Option<&LabelSelector>) -> Result<(String, Selector), Denial> {
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else {
        let text = format!("nodeConfigs NodeSelector must not empty error! configType: {key},nodeConfig name:{name}");
        return Err(refuse("ConfigParamInvalid", &text));
    };
    let understood = Selector::new(selector).map_err(|error| {
        let shown = go_text(selector);
        let text =
            format!("failed to parse node selector {shown},configType: {key},nodeConfig name:{name}, err: {error}");
        refuse("ConfigParamInvalid", &text)
    })?;
    Ok((name.to_owned(), understood))
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.iter().flatten().next().is_none()
        && selector.match_expressions.iter().flatten().next().is_none()
}

/// A selector as Go prints it.
fn go_text(selector: &LabelSelector) -> String {
    let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
    for (key, value) in selector.match_labels.iter().flatten() {
        // Writing to a text cannot fail.
        let _ = write!(text, "{key}: {value},");
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for term in selector.match_expressions.iter().flatten() {
        let values = term.values.as_deref().unwrap_or_default().join(" ");
        let (key, operator) = (&term.key, &term.operator);
        let _ = write!(text, "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},");
    }
    text.push_str("},}");
    text
}
