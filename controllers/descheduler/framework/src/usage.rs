//! What nodes and pods use, as others than koordlet have measured it: the metrics server, or Prometheus.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduling::ResourceVector;

use crate::{
    cluster::{Cluster, NodeId},
    objects::Object,
};

/// Who has measured, and what was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageQuery {
    /// The metrics server, by metrics.k8s.io.
    KubernetesMetrics,
    /// Prometheus, by a query whose result is a number from 0 to 1 for each `instance`, which is the name of a node.
    Prometheus(Arc<str>),
}

/// What was measured. A node or pod that is not named in it was not measured: it is neither full nor empty.
#[derive(Clone, Debug, PartialEq)]
pub enum MeasuredUsage {
    /// Cpu in thousandths of a core and memory in bytes.
    Amounts {
        nodes: BTreeMap<Arc<str>, ResourceVector>,
        /// The pods of the nodes that strategies want to relieve ([`Measured::nodes_to_relieve`]).
        pods: BTreeMap<ObjectKey, ResourceVector>,
    },
    /// How much of each node is used, from 0 to 1.
    Shares(BTreeMap<Arc<str>, f64>),
}

/// What was measured right before a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements(BTreeMap<UsageQuery, Result<MeasuredUsage, Arc<str>>>);

/// A strategy that may go by measured usage.
pub trait Measured: Send + Sync + 'static {
    /// What it asks; `None` where it goes by something else.
    fn usage_query(&self) -> Option<UsageQuery>;

    /// The nodes that its pods may leave, by the usage of nodes in the snapshot: what their pods use is measured too.
    fn nodes_to_relieve(&self, cluster: &Cluster) -> Vec<NodeId>;
}

/// The key of the measurements in a snapshot.
const KEY: &str = "usage";

// === impl Measurements ===

impl Measurements {
    /// The answer to a query, or why there is none.
    pub fn set(&mut self, query: UsageQuery, answer: Result<MeasuredUsage, Arc<str>>) {
        self.0.insert(query, answer);
    }

    /// Lets a snapshot have them.
    pub fn store(self, cluster: &mut Cluster) {
        cluster.set_object(Object::new(ObjectKey::cluster(KEY), Uid::default(), false, Arc::new(self)));
    }
}

impl Cluster {
    /// The usage that a query has measured.
    ///
    /// # Errors
    ///
    /// It is not known; the text says why.
    pub fn measured_usage(&self, query: &UsageQuery) -> Result<&MeasuredUsage, &str> {
        let answer = self.objects().get::<Measurements>(KEY).and_then(|measurements| measurements.0.get(query));
        answer.map_or(Err("nothing has been measured yet"), |answer| answer.as_ref().map_err(|reason| &**reason))
    }
}

impl UsageQuery {
    /// Who has measured, as configurations name it.
    pub fn source(&self) -> &'static str {
        match self {
            Self::KubernetesMetrics => "KubernetesMetrics",
            Self::Prometheus(_) => "Prometheus",
        }
    }
}

impl std::fmt::Display for UsageQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.source())
    }
}
