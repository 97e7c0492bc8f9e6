//! Gauges of plugins. Plugins hold no clock and no counters: their state is read once in a while.

use crate::cluster::Cluster;

/// Reports gauges.
pub trait MetricSource: Send + Sync + 'static {
    /// The gauges as they are now.
    fn figures(&self, cluster: &Cluster) -> Vec<Figure>;
}

/// The value of a gauge.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of the metric.
    pub name: &'static str,
    /// The values of its labels, in their order.
    pub labels: Vec<String>,
    pub value: f64,
}
