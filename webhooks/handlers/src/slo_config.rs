//! The rules of the ConfigMap `slo-controller-config`, for its own webhook and for that of nodes.

mod bounds;
mod conflict;
mod network;
mod overlap;
mod selector;

use std::collections::BTreeMap;

pub(crate) use conflict::{Example, conflict};
use koord_resource::{admission::Denial, go_json};
use koord_types::slo_config::{
    COLOCATION_CONFIG, CPU_BURST_CONFIG, Draft, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG,
};
use selector::Chosen;
use serde::Serialize;

/// A ConfigMap as far as its checks need it.
#[derive(Clone, Copy)]
pub(crate) struct Checked<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) data: &'a BTreeMap<String, String>,
    /// Whether strategies for some nodes must have a name that no other has.
    pub(crate) names_needed: bool,
}

/// Checks one key. Gives its strategies for some nodes, to be compared with the nodes that there are.
pub(crate) fn check(key: &'static str, map: &Checked<'_>) -> Result<Chosen, Denial> {
    let draft = read(key, map)?;
    let network = if key == RESOURCE_QOS_CONFIG { Some(network::network(map)?) } else { None };
    let chosen = selector::choose(key, &draft)?;
    let broken = bounds::broken(key, &draft);
    if !broken.is_empty() {
        return Err(refuse("ConfigParamInvalid", &broken));
    }
    if let Some(network) = &network {
        network::check(&draft, network)?;
    }
    if map.names_needed {
        check_names(key, &chosen)?;
    }
    overlap::check(key, &draft, &chosen)?;
    Ok(chosen)
}

/// The strategies of a key for some nodes; none where the key is absent or would be refused.
pub(crate) fn strategies(key: &'static str, data: &BTreeMap<String, String>) -> Option<Chosen> {
    let draft = Draft::read(key, data.get(key).filter(|text| !text.is_empty())?).ok()?;
    selector::choose(key, &draft).ok()
}

/// Reads a key that must be there.
fn read(key: &'static str, map: &Checked<'_>) -> Result<Draft, Denial> {
    let text = map.data.get(key).map_or("", String::as_str);
    Draft::read(key, text).map_err(|error| {
        let what = match key {
            COLOCATION_CONFIG => "colocation",
            RESOURCE_THRESHOLD_CONFIG => "resourceThreshold",
            RESOURCE_QOS_CONFIG => "ResourceQOS",
            CPU_BURST_CONFIG => "CpuBurst",
            _ => "System",
        };
        let (namespace, name) = (map.namespace, map.name);
        refuse(
            "ParseConfigFail",
            &format!("Failed to parse {what} config in configmap {namespace}/{name}, err: {error}"),
        )
    })
}

fn check_names(key: &str, chosen: &Chosen) -> Result<(), Denial> {
    let mut known: Vec<&str> = Vec::new();
    for (name, _) in chosen {
        if name.is_empty() {
            return Err(refuse("ConfigParamInvalid", &format!("nodeConfig Name need! configType:{key}")));
        }
        if known.contains(&name.as_str()) {
            let text = format!("nodeConfig Name confilict, configType:{key},nodeConfig Name:{name}! ");
            return Err(refuse("ConfigParamInvalid", &text));
        }
        known.push(name);
    }
    Ok(())
}

/// The refusal that clients of the original take apart.
fn refuse<T: Serialize>(reason: &str, message: &T) -> Denial {
    #[derive(Serialize)]
    struct Refusal<'a, T> {
        reason: &'a str,
        message: &'a T,
    }
    match go_json::to_string(&Refusal { reason, message }) {
        Ok(text) => Denial::bad_request(format!("___{text}___")),
        Err(error) => error.into(),
    }
}
