//! The load of every node, kept up to date.

mod audit;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use koord_scheduler_framework::{
    cluster::{Class, ClassId, Cluster, Placed, ReservedId},
    columns::Row,
    node::Node,
    pod::{Pod, Template},
};
use koord_types::{
    classes::Classes,
    node_annotations::{RAW_ALLOCATABLE, USAGE_THRESHOLDS},
    node_metric,
    priority::PriorityClass,
};

use super::{
    Amounts, AssignedPod, Demand, Incoming, LoadAwareSettings, NodeLoad, NodeMetric, Thresholds, View,
    counted::{CountedAs, PlacedAt},
    node_load::within_reason,
};

/// What is known of the load of nodes, by row, as some arguments count it.
#[derive(Clone, Debug)]
pub struct Loads {
    settings: Arc<LoadAwareSettings>,
    rows: Vec<Known>,
    /// When reports expire, in seconds since 1970.
    expiries: BTreeSet<(i64, Row)>,
    estimates: Estimates,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    capacity: Amounts,
    /// What an annotation of the node sets instead of the configuration.
    thresholds: Option<Box<Thresholds>>,
    load: NodeLoad,
    /// Most of what is known, and none before the first report. Shared with copies of the engine.
    metric: Option<Arc<NodeMetric>>,
    is_expired: bool,
    /// When the report expires, where that lies ahead.
    expires: Option<i64>,
}

/// What pods of a class are estimated to use.
#[derive(Clone, Debug, Default)]
struct Estimates(BTreeMap<ClassId, (ReservedId, Arc<Incoming>)>);

impl Loads {
    /// Of no nodes.
    pub fn new(settings: Arc<LoadAwareSettings>) -> Self {
        Self { settings, rows: Vec::new(), expiries: BTreeSet::new(), estimates: Estimates::default() }
    }

    /// By what nodes are compared.
    pub fn settings(&self) -> &Arc<LoadAwareSettings> {
        &self.settings
    }

    /// What is known of a node.
    pub fn view(&self, row: Row) -> Option<View<'_>> {
        let Known { capacity, thresholds, load, metric, is_expired, .. } = self.rows.get(row.index())?;
        let thresholds = thresholds.as_deref().unwrap_or(&self.settings.thresholds);
        Some(View { capacity, thresholds, load, metric: metric.as_deref(), is_expired: *is_expired })
    }

    fn known(&mut self, row: Row) -> &mut Known {
        if row.index() >= self.rows.len() {
            self.rows.resize_with(row.index() + 1, Known::default);
        }
        &mut self.rows[row.index()]
    }

    /// The report about a node, and when it expires, where that lies ahead.
    fn reported(&self, cluster: &Cluster, row: Row) -> (Option<Arc<NodeMetric>>, Option<i64>) {
        let name = cluster.node(row).map(|node| &node.name);
        let metric = name.and_then(|name| cluster.objects().get::<node_metric::NodeMetric>(name));
        let metric = metric.map(|metric| Arc::new(NodeMetric::of(metric, &self.settings.dimensions)));
        let updated = metric.as_ref().and_then(|metric| metric.updated);
        let expires = updated.map(|updated| updated.saturating_add(self.settings.expiration_seconds));
        (metric, expires.filter(|expires| *expires > cluster.time().as_second()))
    }

    /// Reads the report about a node.
    pub(super) fn report(&mut self, cluster: &Cluster, row: Row) {
        let (metric, ahead) = self.reported(cluster, row);
        let load = self.load(cluster, row, metric.as_deref());
        let known = self.known(row);
        known.load = load;
        known.is_expired = ahead.is_none();
        known.metric = metric;
        let before = std::mem::replace(&mut known.expires, ahead);
        self.expire(row, before, ahead);
    }

    /// The load of a node with this report.
    fn load(&mut self, cluster: &Cluster, row: Row, metric: Option<&NodeMetric>) -> NodeLoad {
        let pods = cluster.pods_on(row).filter(|placed| !placed.pod.is_reservation());
        NodeLoad::of(pods.map(|placed| self.assigned(placed)), metric)
    }

    fn expire(&mut self, row: Row, before: Option<i64>, ahead: Option<i64>) {
        if let Some(before) = before {
            self.expiries.remove(&(before, row));
        }
        self.expiries.extend(ahead.map(|expires| (expires, row)));
    }

    fn assigned(&mut self, placed: &Placed) -> AssignedPod {
        let Self { estimates, settings, .. } = self;
        settings.assigned(placed, || estimates.of(&placed.class, settings))
    }
}

impl LoadAwareSettings {
    /// A pod on its node. `adds` is what pods of its class add; one that was counted otherwise when it came adds that.
    pub(super) fn assigned(&self, placed: &Placed, adds: impl FnOnce() -> Arc<Incoming>) -> AssignedPod {
        let Pod { key, template, scheduled, initialized, created, .. } = &*placed.pod;
        let (template, adds) = match placed.holds.get::<CountedAs>() {
            Some(CountedAs(template)) => (template, Arc::new(self.incoming(template))),
            None => (template, adds()),
        };
        let since = scheduled.or(placed.holds.get::<PlacedAt>().map(|at| at.0)).unwrap_or(*created);
        let annotation = |name: &str| template.annotations.get(name);
        let until = self.estimator.until(annotation, since, *initialized);
        AssignedPod { key: key.clone(), since, until, adds }
    }

    /// What a pod of a template adds to the load of a node.
    pub fn incoming(&self, template: &Template) -> Incoming {
        let label = |key: &str| template.labels.get(key);
        let class = Classes::of(label, Some(template.priority), || template.kubernetes_qos).priority;
        let demand = Demand { requests: &template.requests, limits: &template.limits, class };
        let annotation = |name: &str| template.annotations.get(name);
        let estimate = within_reason(self.estimator.estimate(demand, annotation, &self.dimensions));
        Incoming { estimate, is_prod: class == Some(PriorityClass::Prod) }
    }

    fn capacity(&self, node: &Node) -> Amounts {
        let raw = node.annotations.get(RAW_ALLOCATABLE.name()).and_then(|text| RAW_ALLOCATABLE.read(text).ok());
        let mut allocatable = node.allocatable.clone();
        for (name, amount) in raw.iter().flatten() {
            allocatable.insert(name, amount.clone());
        }
        self.dimensions.list(&allocatable)
    }

    fn thresholds(&self, node: &Node) -> Option<Box<Thresholds>> {
        let text = node.annotations.get(USAGE_THRESHOLDS.name())?;
        let custom = USAGE_THRESHOLDS.read(text).ok()?;
        Some(Box::new(self.thresholds.with(&custom, &self.dimensions)))
    }
}

impl Estimates {
    /// Classes beyond are forgotten.
    const CLASSES_MAX: usize = 1024;

    fn of(&mut self, class: &Arc<Class>, settings: &LoadAwareSettings) -> Arc<Incoming> {
        if self.0.len() >= Self::CLASSES_MAX && !self.0.contains_key(&class.id()) {
            self.0.clear();
        }
        let estimated = || (class.reserve_id(), Arc::new(settings.incoming(class.template())));
        self.0.entry(class.id()).or_insert_with(estimated).1.clone()
    }
}

/// Called by the state of the plugin ([`super::LoadsBySettings`]).
impl Loads {
    pub(super) fn placed(&mut self, cluster: &Cluster, placed: &Placed) {
        if !counts(cluster, placed) {
            return;
        }
        let pod = self.assigned(placed);
        let known = self.known(placed.row);
        known.load.assign(&pod, known.metric.as_deref());
    }

    pub(super) fn removed(&mut self, cluster: &Cluster, placed: &Placed) {
        if !counts(cluster, placed) {
            return;
        }
        let pod = self.assigned(placed);
        let known = self.known(placed.row);
        known.load.remove(&pod, known.metric.as_deref());
    }

    pub(super) fn node(&mut self, cluster: &Cluster, row: Row) {
        let settings = Arc::clone(&self.settings);
        let known = self.known(row);
        let node = cluster.node(row);
        known.capacity = node.map(|node| settings.capacity(node)).unwrap_or_default();
        known.thresholds = node.and_then(|node| settings.thresholds(node));
        self.report(cluster, row);
    }

    pub(super) fn tick(&mut self, now: Timestamp) -> Vec<Row> {
        let mut rows = Vec::new();
        while let Some((at, row)) = self.expiries.first().copied().filter(|(at, _)| *at <= now.as_second()) {
            self.expiries.remove(&(at, row));
            let known = self.known(row);
            known.is_expired = true;
            known.expires = None;
            rows.push(row);
        }
        rows
    }

    /// The clock was set back: reports that had expired count again where they are young enough now.
    pub(super) fn set_back(&mut self, cluster: &Cluster) -> Vec<Row> {
        let expired = self.rows.iter().enumerate().filter(|(_, known)| known.is_expired && known.metric.is_some());
        let mut rows: Vec<Row> = expired.filter_map(|(index, _)| Row::at(index)).collect();
        for row in &rows {
            self.report(cluster, *row);
        }
        rows.retain(|row| !self.known(*row).is_expired);
        rows
    }

    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        self.expiries.first().and_then(|(at, _)| Timestamp::from_second(*at).ok())
    }
}

/// Whether a pod counts that comes or goes. What is tried does not: a node that uses too much is not relieved by evictions
/// before they are reported.
fn counts(cluster: &Cluster, placed: &Placed) -> bool {
    !placed.pod.is_reservation() && !cluster.is_trial()
}
