//! By what factors a node promises more than it has.

use std::collections::BTreeMap;

use koord_types::{
    node_annotations::{AmplificationRatios, CPU_NORMALIZATION_RATIO},
    protocol::ProtocolError,
    slo_config::RESOURCE_AMPLIFICATION_CONFIG,
};

use super::{
    cpu_normalization::of_ratio,
    facts::Facts,
    waterfall::{Listener, Operation, Source, add_term},
};

/// Why a node's factors are unknown; those that stand on the node stay.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AmplificationError {
    /// The configuration could never be taken.
    #[error("{RESOURCE_AMPLIFICATION_CONFIG} cannot be decoded")]
    NoConfiguration,
    /// The annotation with the normalization ratio makes no sense.
    #[error(transparent)]
    Text(#[from] ProtocolError),
    /// A node cannot promise less than it has.
    #[error("{RESOURCE_AMPLIFICATION_CONFIG}: the ratio {ratio} of {resource} is below 1")]
    BelowOne { resource: String, ratio: f64 },
}

/// The factors of a node, by resource; none where it promises what it has.
///
/// QUIRK: the CPU factor is multiplied with the normalization ratio that stands on the node, which is the one of the
/// round before (spec/manager.md 4.1.6).
pub fn ratios(facts: &Facts<'_>, to: &mut impl Listener) -> Result<AmplificationRatios, AmplificationError> {
    let strategy = facts.amplification.as_ref().ok_or(AmplificationError::NoConfiguration)?;
    let mut ratios = match strategy.enable {
        Some(true) => strategy.resource_amplification_ratio.clone(),
        _ => BTreeMap::new(),
    };
    for (resource, ratio) in &ratios {
        add_term(to, Operation::Start, of_ratio(*ratio), format!("ratio of {resource}"), || Source {
            object: RESOURCE_AMPLIFICATION_CONFIG.into(),
            field: format!("resourceAmplificationRatio.{resource}").into(),
        });
    }
    if let Some(normalization) = CPU_NORMALIZATION_RATIO.get(&facts.annotations)? {
        let configured = ratios.get("cpu").copied().filter(|ratio| *ratio > 0.0).unwrap_or(1.0);
        let product = configured * normalization.value();
        if product > 1.0 {
            ratios.insert("cpu".to_owned(), product);
            add_term(to, Operation::Times, of_ratio(product), "ratio of cpu times the normalization ratio", || {
                let name = CPU_NORMALIZATION_RATIO.name();
                facts.node_source(format!("annotation {name}: {:.2}", normalization.value()))
            });
        }
    }
    match ratios.iter().find(|(_, ratio)| **ratio < 1.0) {
        Some((resource, ratio)) => Err(AmplificationError::BelowOne { resource: resource.clone(), ratio: *ratio }),
        None => Ok(AmplificationRatios(ratios)),
    }
}
