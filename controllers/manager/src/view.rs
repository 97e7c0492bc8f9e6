//! What the manager keeps of each object: one projection per kind.

mod config_map;
mod node;
mod node_metric;
mod node_slo;

pub use config_map::ConfigMapView;
pub use node::NodeView;
pub use node_metric::NodeMetricView;
pub use node_slo::NodeSloView;
