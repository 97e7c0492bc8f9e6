//! Network QoS: shares of the node's bandwidth for classes and pods.

pub mod terway;
pub mod traffic;

use koord_resource::{IntOrString, Quantity};
use koord_types::node_slo::{NetworkQosCfg, ResourceQos};

/// Bandwidths in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bandwidths {
    pub(crate) ingress_request: i64,
    pub(crate) ingress_limit: i64,
    pub(crate) egress_request: i64,
    pub(crate) egress_limit: i64,
}

/// A bandwidth: an integer is a percentage of all, a text is a quantity of bits per second. `None` when it is not given; an integer outside of 0 to 100 is 0.
pub(crate) fn bandwidth(value: Option<&IntOrString>, total_bits: i64) -> Result<Option<i64>, String> {
    Ok(match value {
        None => None,
        Some(IntOrString::Int(percent)) if !(0..=100).contains(percent) => Some(0),
        Some(IntOrString::Int(percent)) => {
            let bits = i128::from(total_bits.max(0)) * i128::from(*percent) / 100;
            Some(i64::try_from(bits).unwrap_or(i64::MAX))
        }
        Some(IntOrString::String(text)) => {
            let bits: Quantity = text.parse().map_err(|_| format!("{text:?} is no bandwidth such as 50M"))?;
            Some(bits.value().max(0))
        }
    })
}

impl Bandwidths {
    /// The bandwidths of a configuration, whether it is enabled or not.
    pub(crate) fn of(network: &NetworkQosCfg, total_bits: i64) -> Result<Self, String> {
        let bits = |value: &Option<IntOrString>| Ok::<_, String>(bandwidth(value.as_ref(), total_bits)?.unwrap_or(0));
        Ok(Self {
            ingress_request: bits(&network.ingress_request)?,
            ingress_limit: bits(&network.ingress_limit)?,
            egress_request: bits(&network.egress_request)?,
            egress_limit: bits(&network.egress_limit)?,
        })
    }

    /// The bandwidths of a class; `None` when it is not enabled.
    pub(crate) fn of_class(class: Option<&ResourceQos>, total_bits: i64) -> Result<Option<Self>, String> {
        let network = class.and_then(|class| class.network_qos.as_ref());
        network.filter(|network| network.enable == Some(true)).map(|network| Self::of(network, total_bits)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_percentages_and_texts_are_bits() {
        for (value, bits) in [
            (None, Ok(None)),
            (Some(IntOrString::Int(50)), Ok(Some(500_000_000))),
            (Some(IntOrString::Int(101)), Ok(Some(0))),
            (Some(IntOrString::Int(-1)), Ok(Some(0))),
            (Some(IntOrString::from("50M")), Ok(Some(50_000_000))),
            (Some(IntOrString::from("-5")), Ok(Some(0))),
            (Some(IntOrString::from("fast")), Err("\"fast\" is no bandwidth such as 50M".to_owned())),
        ] {
            assert_eq!(bandwidth(value.as_ref(), 1_000_000_000), bits, "{value:?}");
        }
    }
}
