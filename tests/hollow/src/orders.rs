//! Orders for a hollow node: annotations of its NodeMetric, which its koordlet reads with every report.
//!
//! ```console
//! $ kubectl annotate nodemetric hollow-0 hollow.koordinator.sh/load=0.9
//! $ kubectl annotate nodemetric hollow-0 hollow.koordinator.sh/koordlet=stopped
//! ```

use serde_json::Value;

/// The share of its load from 0 to 1, in place of the node's usage model.
pub const LOAD: &str = "hollow.koordinator.sh/load";

/// `stopped` keeps the koordlet from reporting until the annotation is taken away.
pub const KOORDLET: &str = "hollow.koordinator.sh/koordlet";

/// The orders of a node. An order that cannot be read counts as none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Orders {
    /// The load to report.
    pub load: Option<f64>,
    /// Whether to keep silent.
    pub stopped: bool,
}

impl Orders {
    /// Reads the annotations of a NodeMetric.
    pub fn read(node_metric: &Value) -> Self {
        let annotation = |name: &str| node_metric["metadata"]["annotations"][name].as_str();
        let load = annotation(LOAD).and_then(|text| text.parse().ok());
        Self { load: load.filter(|load| (0.0..=1.0).contains(load)), stopped: annotation(KOORDLET) == Some("stopped") }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_load_is_a_share_and_only_stopped_stops() {
        let read = |load: &str, koordlet: &str| {
            Orders::read(&json!({"metadata": {"annotations": {LOAD: load, KOORDLET: koordlet}}}))
        };
        assert_eq!(read("0.9", "stopped"), Orders { load: Some(0.9), stopped: true });
        for (load, koordlet) in [("1.5", "stop"), ("-0.1", ""), ("NaN", "Stopped"), ("much", "true")] {
            assert_eq!(read(load, koordlet), Orders::default(), "{load} {koordlet}");
        }
        assert_eq!(Orders::read(&Value::Null), Orders::default());
    }
}
