//! LoadAwareScheduling: pods stay away from nodes that use much, by what is reported of them and estimated of new pods.

mod decide;
mod dimensions;
mod estimate;
mod metric;
mod node_load;
mod settings;
mod thresholds;

pub use self::{
    decide::{Incoming, TooBusy, View},
    dimensions::{Amounts, Dimensions},
    estimate::{Demand, Estimator},
    metric::{NodeMetric, NodeUsage, PodUsage, Usage},
    node_load::{AssignedPod, NodeLoad},
    settings::{Expired, Settings},
    thresholds::{Aggregated, Measure, Thresholds},
};
