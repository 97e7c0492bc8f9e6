//! A node must not have several strategies of one key.

use koord_resource::admission::Denial;
use serde::Serialize;

use super::{Chosen, refuse};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Conflict<'a> {
    config: &'a str,
    strategies: Vec<&'a str>,
    example_nodes: [&'a str; 1],
}

/// A node that there is.
#[derive(Clone, Copy)]
pub(crate) struct Example<'a, L> {
    pub(crate) name: &'a str,
    /// Finds a label by its key.
    pub(crate) label: L,
}

/// Refuses when a node has several strategies of the key.
pub(crate) fn conflict<'a>(
    key: &str,
    chosen: &Chosen,
    node: &Example<'_, impl Fn(&str) -> Option<&'a str>>,
) -> Result<(), Denial> {
    if chosen.len() < 2 {
        return Ok(());
    }
    let strategies = selecting(chosen, &node.label);
    if strategies.len() < 2 {
        return Ok(());
    }
    Err(refuse("ExistNodeConfict", &Conflict { config: key, strategies, example_nodes: [node.name] }))
}

/// The names of the strategies that select a node.
pub(super) fn selecting<'c, 'a>(chosen: &'c Chosen, label: impl Fn(&str) -> Option<&'a str>) -> Vec<&'c str> {
    chosen.iter().filter(|(_, selector)| selector.selects(&label)).map(|(name, _)| name.as_str()).collect()
}
