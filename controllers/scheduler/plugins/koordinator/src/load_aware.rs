//! LoadAwareScheduling: pods stay away from nodes that use much, by what is reported of them and estimated of new pods.
//!
//! What is reported and estimated are values, and the decisions functions of them; read [`NodeLoad`] and [`View`] first.

mod by_settings;
mod counted;
mod decide;
mod dimensions;
mod estimate;
mod loads;
mod metric;
mod node_load;
mod settings;
mod shown;
#[cfg(test)]
mod tests;
mod thresholds;

use std::{sync::Arc, time::Duration};

use koord_config::scheduler::LoadAwareSchedulingArgs;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    AllocationRestore, Diagnostics, EnqueueExtensions, Filter, NodeFilter, NodeScore, Operands, Plugin, PluginState,
    PreparedFilter, Query, Reason, ReasonCode, Refusal, Registration, Rejection, Request, Reserve, SchedulingSignature,
    Score, ServiceEndpoint, ServiceError, SignatureFields,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    hold::Holds,
    pod::Pod,
};
use koord_types::{node_metric, priority::PRIORITY_CLASS_LABEL, qos::QOS_LABEL};
use serde_json::{Value, json};

pub use self::{
    by_settings::LoadsBySettings,
    decide::{Incoming, TooBusy, View},
    dimensions::{Amounts, Dimensions},
    estimate::{Demand, Estimator},
    loads::Loads,
    metric::{NodeMetric, NodeUsage, PodUsage},
    node_load::{AssignedPod, NodeLoad},
    settings::{Expired, LoadAwareSettings},
    thresholds::{Aggregated, Measure, Thresholds},
};
use self::{
    by_settings::is_metric,
    counted::{CountedAs, PlacedAt},
};

/// Refuses nodes that would use too much with the pod, and prefers those of which the most is left. Profiles with the same
/// arguments share what is kept about nodes.
#[derive(Clone, Debug)]
pub struct LoadAwareScheduling {
    settings: Arc<LoadAwareSettings>,
}

/// Filters and scores nodes for one pod.
struct LoadFilter {
    pod: Incoming,
    /// Which loads are those of the arguments; none where nothing is kept.
    loads: Option<usize>,
}

impl LoadAwareScheduling {
    /// With these arguments, completed.
    pub fn new(args: &LoadAwareSchedulingArgs) -> Self {
        Self { settings: Arc::new(LoadAwareSettings::from(args)) }
    }

    /// The loads of nodes as its arguments count them.
    fn loads<'c>(&self, cluster: &'c Cluster) -> Option<&'c Loads> {
        let loads = cluster.state::<LoadsBySettings>()?;
        loads.at(loads.index(&self.settings)?)
    }

    fn load_filter(&self, pod: &Pod, cluster: &Cluster) -> LoadFilter {
        let loads = cluster.state::<LoadsBySettings>().and_then(|loads| loads.index(&self.settings));
        LoadFilter { pod: self.settings.incoming(&pod.template), loads }
    }
}

impl Plugin for LoadAwareScheduling {
    fn name(&self) -> &'static str {
        "LoadAwareScheduling"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<node_metric::NodeMetric>()] })
            .enqueue_extensions(&self)
            .filter(&self)
            .score(&self)
            .reserve(&self)
            .allocation_restore(&self)
            .state(&self)
            .diagnostics(&self)
            .service_endpoint(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for LoadAwareScheduling {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_ALLOCATABLE | Events::NODE_LABELS | Events::POD_REMOVED | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, cluster: &Cluster) -> bool {
        let row = match event {
            Event::NodeAdded(node) | Event::NodeChanged { new: node, .. } => cluster.row(&node.name),
            Event::Object(change) => is_metric(change).and_then(|node| cluster.row(node)),
            _ => return true,
        };
        row.is_some_and(|row| self.load_filter(pod, cluster).filter(cluster, row).is_ok())
    }
}

impl Filter for LoadAwareScheduling {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        // They run on every node, however busy it is.
        if request.pod.is_of_daemon_set {
            return PreparedFilter::Skip;
        }
        PreparedFilter::Nodes(Box::new(self.load_filter(request.pod, cluster)))
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        let resource = usize::try_from(refusal.operand).map_or("", |index| self.settings.dimensions.name(index));
        let hot = |words: String, measure: &str| {
            ReasonCode::NodeHot.reason(words).with("resource", resource).with("measure", measure).into()
        };
        match refusal.reason {
            EXPIRED => ReasonCode::NodeMetricStale.reason(TOO_OLD).with("policy", "refuse").into(),
            UNREPORTED => ReasonCode::NodeMetricMissing.reason(TOO_OLD).with("policy", "refuse").into(),
            AVERAGE => hot(format!("node(s) {resource} usage exceed threshold"), "average"),
            _ => hot(format!("node(s) {resource} aggregated usage exceed threshold"), "aggregated"),
        }
    }

    fn details(&self, refusal: &Refusal, request: &Request<'_>, cluster: &Cluster, row: Row) -> Operands {
        let load_filter = self.load_filter(request.pod, cluster);
        let view = load_filter.view(cluster, row);
        view.map(|(settings, view)| shown::details(settings, view, &load_filter.pod, refusal, cluster, row))
            .unwrap_or_default()
    }
}

impl Score for LoadAwareScheduling {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        Some(Box::new(self.load_filter(request.pod, cluster)))
    }
}

impl Reserve for LoadAwareScheduling {
    fn reserve(&self, _: &Request<'_>, cluster: &Cluster, _: Row, holds: &mut Holds) -> Result<(), Rejection> {
        holds.set(PlacedAt(cluster.time().as_second()));
        Ok(())
    }
}

impl AllocationRestore for LoadAwareScheduling {
    fn update_allocation(&self, was: &Placed, pod: &Pod, holds: &mut Holds) {
        CountedAs::keep(was, pod, holds);
    }
}

impl PluginState for LoadAwareScheduling {
    fn state(&self) -> Box<dyn State> {
        Box::new(LoadsBySettings::new(Arc::clone(&self.settings)))
    }
}

impl Diagnostics for LoadAwareScheduling {
    fn remarks(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<Reason> {
        let loads = self.loads(cluster).filter(|_| !request.pod.is_of_daemon_set);
        loads.and_then(|loads| shown::without_metric(loads, cluster)).into_iter().collect()
    }

    fn input_age(&self, cluster: &Cluster, row: Row) -> Option<Duration> {
        let updated = self.loads(cluster)?.view(row)?.metric?.updated?;
        u64::try_from(cluster.time().as_second().saturating_sub(updated)).ok().map(Duration::from_secs)
    }

    fn is_input_stale(&self, cluster: &Cluster, row: Row) -> bool {
        let view = self.loads(cluster).and_then(|loads| loads.view(row));
        view.is_some_and(|view| view.is_expired && view.metric.is_some_and(|metric| metric.updated.is_some()))
    }
}

impl ServiceEndpoint for LoadAwareScheduling {
    fn paths(&self) -> &'static [&'static str] {
        &["node/:nodeName"]
    }

    fn serve(&self, path: &[&str], _: &Query, cluster: &Cluster) -> Result<Value, ServiceError> {
        let ["node", node] = *path else { return Err(ServiceError::UnknownPath) };
        let loads = self.loads(cluster).ok_or(ServiceError::UnknownPath)?;
        Ok(cluster.row(node).and_then(|row| shown::on_node(loads, cluster, row)).unwrap_or_else(|| json!({})))
    }
}

impl SchedulingSignature for LoadAwareScheduling {
    fn signature(&self) -> SignatureFields {
        SignatureFields::Labels(&[QOS_LABEL, PRIORITY_CLASS_LABEL])
    }

    fn is_individual(&self, pod: &Pod, _: &Cluster) -> bool {
        pod.is_of_daemon_set
    }
}

const EXPIRED: u16 = 0;
const AVERAGE: u16 = 1;
const AGGREGATED: u16 = 2;
const UNREPORTED: u16 = 3;

/// Whether a report is old or was never there, it is said in the same words.
const TOO_OLD: &str = "node(s) nodeMetric expired";

impl From<TooBusy> for Refusal {
    fn from(reason: TooBusy) -> Self {
        let (reason, index) = match reason {
            TooBusy::Expired => (EXPIRED, 0),
            TooBusy::Unreported => (UNREPORTED, 0),
            TooBusy::Average(index) => (AVERAGE, index),
            TooBusy::Aggregated(index) => (AGGREGATED, index),
        };
        Self::resolvable(reason, index as u64)
    }
}

impl LoadFilter {
    fn loads<'a>(&self, cluster: &'a Cluster) -> Option<&'a Loads> {
        cluster.state::<LoadsBySettings>()?.at(self.loads?)
    }

    /// What is known of a node, and by what it is judged.
    fn view<'a>(&self, cluster: &'a Cluster, row: Row) -> Option<(&'a LoadAwareSettings, View<'a>)> {
        let loads = self.loads(cluster)?;
        Some((loads.settings(), loads.view(row)?))
    }
}

impl NodeFilter for LoadFilter {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let view = self.view(cluster, row);
        view.map_or(Ok(()), |(settings, view)| settings.check(view, &self.pod).map_err(Refusal::from))
    }

    fn filter_rows(&self, cluster: &Cluster, rows: &mut Vec<Row>, refused: &mut dyn FnMut(Row, Refusal)) {
        let Some(loads) = self.loads(cluster) else { return };
        rows.retain(|row| {
            let checked = loads.view(*row).map_or(Ok(()), |view| loads.settings().check(view, &self.pod));
            checked.map_err(|reason| refused(*row, reason.into())).is_ok()
        });
    }

    /// What is tried adds nothing to the load of a node (3A.3).
    fn filter_after(&self, cluster: &Cluster, row: Row, _: usize) -> Option<Result<(), Refusal>> {
        Some(self.filter(cluster, row))
    }
}

impl NodeScore for LoadFilter {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        self.view(cluster, row).map_or(0, |(settings, view)| settings.score(view, &self.pod))
    }

    fn score_rows(&self, cluster: &Cluster, rows: &[Row]) -> Vec<i64> {
        let Some(loads) = self.loads(cluster) else { return vec![0; rows.len()] };
        let score = |row: &Row| loads.view(*row).map_or(0, |view| loads.settings().score(view, &self.pod));
        rows.iter().map(score).collect()
    }

    fn is_local(&self) -> bool {
        true
    }
}
