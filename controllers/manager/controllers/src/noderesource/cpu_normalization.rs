//! How much faster than the reference the CPUs of a node are.

use koord_types::{
    node_annotations::{CPU_BASIC_INFO, CPU_NORMALIZATION_ENABLED, NormalizationRatio},
    protocol::ProtocolError,
    slo_config::CPU_NORMALIZATION_CONFIG,
};

use super::{
    facts::Facts,
    waterfall::{Listener, Operation, Source, add_term},
};
use crate::amount::Amount;

/// The ratios that are accepted.
const RATIOS: std::ops::RangeInclusive<f64> = 1.0..=5.0;

/// Why a node's ratio is unknown; the one that stands on the node stays.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NormalizationError {
    /// The configuration could never be taken.
    #[error("{CPU_NORMALIZATION_CONFIG} cannot be decoded")]
    NoConfiguration,
    /// A label or annotation makes no sense.
    #[error(transparent)]
    Text(#[from] ProtocolError),
    /// The kind of CPU is unknown.
    #[error("the NodeResourceTopology has no annotation {}; is koordlet running?", CPU_BASIC_INFO.name())]
    UnknownCpu,
    /// The configuration has no ratio for it.
    #[error("{CPU_NORMALIZATION_CONFIG} has no ratio for the CPU model {model:?} and no defaultRatio")]
    NoRatio { model: String },
    /// It is not accepted.
    #[error("{CPU_NORMALIZATION_CONFIG}: the ratio {ratio} for the CPU model {model:?} is not between 1 and 5")]
    OutOfRange { ratio: f64, model: String },
}

/// The ratio of a node; 1 where normalization is off.
pub fn ratio(facts: &Facts<'_>, to: &mut impl Listener) -> Result<f64, NormalizationError> {
    let strategy = facts.normalization.as_ref().ok_or(NormalizationError::NoConfiguration)?;
    let labelled = CPU_NORMALIZATION_ENABLED.get(&facts.labels)?;
    if !labelled.or(strategy.enable).unwrap_or(false) {
        add_term(to, Operation::Start, Amount::from_units(1), "normalization is off", || match labelled {
            Some(_) => facts.node_source(format!("label {}", CPU_NORMALIZATION_ENABLED.name())),
            None => Source { object: CPU_NORMALIZATION_CONFIG.into(), field: "enable".into() },
        });
        return Ok(1.0);
    }
    let text = facts.topology.and_then(|topology| topology.cpu()).ok_or(NormalizationError::UnknownCpu)?;
    let cpu = CPU_BASIC_INFO.read(text)?;
    let ratio = strategy.ratio(&cpu).ok_or_else(|| NormalizationError::NoRatio { model: cpu.cpu_model.clone() })?;
    if !RATIOS.contains(&ratio) {
        return Err(NormalizationError::OutOfRange { ratio, model: cpu.cpu_model });
    }
    add_term(to, Operation::Start, of_ratio(ratio), format!("ratio of the CPU model {}", cpu.cpu_model), || {
        let switches = format!("hyper-threading {}, turbo {}", cpu.hyper_thread_enabled, cpu.turbo_enabled);
        Source { object: CPU_NORMALIZATION_CONFIG.into(), field: switches.into() }
    });
    Ok(ratio)
}

/// A ratio among terms.
pub(super) fn of_ratio(ratio: f64) -> Amount {
    Amount::from_milli((ratio * 1000.0).round() as i64)
}

/// Whether the text of a ratio is worth writing over another.
pub(super) fn is_worth_writing(old: Option<&str>, new: &str) -> bool {
    use koord_types::node_annotations::CPU_NORMALIZATION_RATIO as KEY;
    let Ok(new): Result<NormalizationRatio, _> = KEY.read(new) else { return false };
    match old.map(|old| KEY.read(old)) {
        Some(Ok(old)) => old.is_different(new),
        Some(Err(_)) | None => true,
    }
}
