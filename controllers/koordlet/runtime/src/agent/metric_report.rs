//! The NodeMetric of the node: models of usage are trained, and the status is written again and again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_koordlet_metrics::{
    Subject,
    collect::ColdPageCollector,
    predict::{
        CheckpointFolder, ForecastSettings, ModelSettings, Models, ProdForecast, forecast_prod, raw_allocatable,
    },
};
use koord_koordlet_reports::{
    CollectedMemory, NodeMetricInput, NodeMetricPolicy, ServedFields, has_usage, node_metric,
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    key::ObjectKey,
    write::{Action, Write},
};
use koord_types::{
    device::DeviceInfo,
    node_metric::{NodeMetric, NodeMetricSpec, NodeMetricStatus},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Agent, Now};
use crate::{capability::Capabilities, exchange::Effect, objects::MetricObject, settings::Settings};

/// Models, and when reports are made.
#[derive(Debug)]
pub(super) struct Reporting {
    pub(super) object: Option<Arc<MetricObject>>,
    policy: NodeMetricPolicy,
    models: Models,
    folder: CheckpointFolder,
    is_restored: bool,
    /// When models are trained next.
    train: Option<Moment>,
    maintain: Option<Moment>,
    /// What was forecast last.
    forecast: Option<ProdForecast>,
    report: Option<Moment>,
    /// Whether the last report was made before there were samples enough.
    is_young: bool,
    under_way: Option<u64>,
    /// Whether NodeMetrics are reported.
    is_on: bool,
    /// When the first samples were there.
    first: Option<Moment>,
    /// What was reported last.
    status: Option<NodeMetricStatus>,
    /// When a report was last accepted.
    pub(super) written: Option<Moment>,
    served: ServedFields,
}

pub(super) const FEATURE: &str = "NodeMetric";
pub(super) const PREDICTION_FEATURE: &str = "prediction";
/// The first report comes when samples of so long a time are there.
const FIRST_REPORT_AFTER: Duration = Duration::from_secs(3);
const MAINTENANCE: Duration = Duration::from_mins(1);
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

impl Reporting {
    pub(super) fn new(settings: &Settings) -> Self {
        let prediction = &settings.prediction;
        let models = Models::new(ModelSettings {
            cpu_half_life: prediction.cpu_half_life,
            memory_half_life: prediction.memory_half_life,
            training_interval: prediction.training,
            expiration: prediction.expiration,
            checkpoint_interval: prediction.checkpoint_interval,
            checkpoints_max: prediction.checkpoints_per_step,
        });
        Self {
            object: None,
            policy: NodeMetricPolicy::default(),
            models,
            folder: CheckpointFolder::new(prediction.checkpoints.clone()),
            is_restored: false,
            train: None,
            maintain: None,
            forecast: None,
            report: None,
            is_young: true,
            under_way: None,
            is_on: settings.reports_node_metric,
            first: None,
            status: None,
            written: None,
            served: ServedFields { numa_usages: true, prod_peak: true },
        }
    }

    /// When a report or a training is due; `None` before there are samples.
    pub(super) fn due(&self) -> Option<Moment> {
        let report = self.report.filter(|_| self.is_on && self.object.is_some() && self.under_way.is_none());
        [self.train, report].into_iter().flatten().min()
    }

    /// How many models of usage there are.
    pub(super) fn models(&self) -> usize {
        self.models.len()
    }

    /// What is forecast of prod pods.
    pub(super) fn forecast(&self) -> Option<&ProdForecast> {
        self.forecast.as_ref()
    }

    /// What was reported last.
    pub(super) fn status(&self) -> Option<&NodeMetricStatus> {
        self.status.as_ref()
    }

    /// Whether there was a report.
    pub(super) fn has_reported(&self) -> bool {
        self.status.is_some()
    }

    pub(super) fn answered(
        &mut self,
        id: u64,
        result: &Result<(u16, String), String>,
        error: Option<&str>,
        now: Moment,
        capabilities: &mut Capabilities,
    ) {
        if self.under_way != Some(id) {
            return;
        }
        self.under_way = None;
        match (error, result) {
            (None, Ok((_, body))) => {
                capabilities.active(FEATURE);
                self.written = Some(now);
                self.notice_pruned(body);
            }
            // Another client has changed the object: the watch shows it soon.
            (Some(_), Ok((409, _))) => self.report = Some(now + Duration::from_secs(1)),
            (error, _) => {
                self.report = Some(now + FAILURE_PAUSE);
                let remedy = "let the agent's ServiceAccount update nodemetrics/status";
                capabilities.degraded(FEATURE, error.unwrap_or_default(), remedy);
            }
        }
    }

    /// Fields that the definition in the cluster lacks come back without, and are not sent again.
    fn notice_pruned(&mut self, body: &str) {
        let Ok(object) = serde_json::from_str::<Value>(body) else { return };
        let status = &object["status"];
        if !status.is_object() {
            return;
        }
        self.served.prod_peak &= self.forecast.is_none() || !status["prodPeakMetric"].is_null();
        let has_numa = !status["nodeMetric"]["numaUsages"].is_null();
        self.served.numa_usages &= has_numa || self.is_young;
    }
}

impl Agent {
    /// Takes the object; a spec that cannot be read keeps its last good policy.
    pub(super) fn take_metric(&mut self, object: Option<Arc<MetricObject>>) {
        let spec = object.as_ref().map(|object| &object.spec).filter(|spec| !spec.is_null());
        let spec = spec.map_or_else(|| Ok(NodeMetricSpec::default()), NodeMetricSpec::deserialize);
        match spec {
            Ok(spec) => {
                self.reporting.policy = NodeMetricPolicy::of(&spec);
                let retention = self.reporting.policy.retention(self.settings.prediction.training);
                self.sampling.store.retain(retention);
            }
            Err(error) => {
                let remedy = "correct colocation-config, from which koord-manager makes the spec of NodeMetrics";
                self.capabilities.degraded(FEATURE, format!("spec of the NodeMetric: {error}"), remedy);
            }
        }
        self.reporting.object = object;
    }

    /// Trains models and writes the report when they are due.
    pub(super) fn report_metric(&mut self, now: Now) {
        if !self.sampling.collectors.has_started() || !self.kubelet.has_pods {
            return;
        }
        self.train(now);
        let aggregate = self.reporting.policy.aggregate;
        let devices = self.used_gpus(Subject::Node, aggregate, now.moment);
        let devices_of_pods: BTreeMap<Arc<str>, Vec<DeviceInfo>> = if devices.is_empty() {
            BTreeMap::new()
        } else {
            let used = |pod: &Arc<Pod>| self.used_gpus(Subject::Pod(&pod.uid), aggregate, now.moment);
            self.kubelet.pods.iter().map(|pod| (Arc::clone(&pod.uid), used(pod))).collect()
        };
        let reporting = &mut self.reporting;
        let first = *reporting.first.get_or_insert(now.moment);
        let due = *reporting.report.get_or_insert(first + FIRST_REPORT_AFTER);
        let Some(object) = reporting.object.clone().filter(|_| reporting.is_on) else { return };
        if due > now.moment || reporting.under_way.is_some() {
            return;
        }
        // The intervals begin with the samples, not with the first report, which comes before its time.
        let interval = reporting.policy.report_interval;
        let next = first + interval;
        reporting.report = Some(if next > now.moment { next } else { now.moment + interval });
        let hosts = self.slo.merged.as_ref().map(|slo| slo.host_applications.as_slice());
        let has_hot_pages = self.sampling.collectors.cold_pages.as_ref().is_some_and(ColdPageCollector::has_started);
        let report = node_metric(
            &NodeMetricInput {
                store: &self.sampling.store,
                policy: &reporting.policy,
                pods: &self.kubelet.pods,
                host_applications: hosts.unwrap_or_default(),
                forecast: reporting.forecast.as_ref(),
                devices: &devices,
                devices_of_pods: &devices_of_pods,
                collected: CollectedMemory {
                    with_page_cache: self.settings.samples_page_cache,
                    with_hot_pages: has_hot_pages,
                },
                served: reporting.served,
            },
            now.moment,
            now.time,
        );
        reporting.is_young = report.is_young;
        let Ok(status) = serde_json::to_value(&report.status) else { return };
        reporting.status = Some(report.status);
        let name = self.settings.node_name.as_str();
        let kind = ResourceKind::typed::<NodeMetric>();
        let body = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": {
                "name": name, "uid": object.identity.uid, "resourceVersion": object.identity.resource_version,
            },
            "spec": object.spec,
            "status": status,
        });
        let key = ObjectKey::cluster(name);
        let id = self.next_id();
        self.reporting.under_way = Some(id);
        let write = Write { kind, key, action: Action::Update { subresource: "status", object: body } };
        self.effects.push(Effect::Write { id, write });
    }

    fn train(&mut self, now: Now) {
        let reporting = &mut self.reporting;
        let folder = &reporting.folder;
        let mut errors = Vec::new();
        if !std::mem::replace(&mut reporting.is_restored, true) {
            errors.extend(reporting.models.restore(folder, &self.kubelet.pods, now.moment, now.time));
            reporting.train = Some(now.moment + FIRST_REPORT_AFTER);
            reporting.maintain = Some(now.moment + MAINTENANCE);
        }
        if reporting.train.is_some_and(|train| train <= now.moment) {
            reporting.train = Some(now.moment + self.settings.prediction.training);
            // Without it, what the system uses is missing among what is predicted.
            if !self.sampling.collectors.system.has_started() {
                return;
            }
            reporting.models.train(&self.sampling.store, &self.kubelet.pods, now.moment, now.time);
            self.forecast(now);
        }
        let reporting = &mut self.reporting;
        if reporting.maintain.is_some_and(|maintain| maintain <= now.moment) {
            reporting.maintain = Some(now.moment + MAINTENANCE);
            let folder = Some(&reporting.folder).filter(|_| !self.settings.only_observes);
            errors.extend(reporting.models.maintain(folder, now.moment));
            if errors.is_empty() {
                self.capabilities.active(PREDICTION_FEATURE);
            }
        }
        if let Some(error) = errors.first() {
            let remedy = "mount a folder that can be written and has room at --prediction-checkpoint-filepath; models are kept in memory meanwhile";
            self.capabilities.degraded(PREDICTION_FEATURE, error, remedy);
        }
    }

    fn forecast(&mut self, now: Now) {
        let Some(node) = &self.node else { return };
        let (store, policy) = (&self.sampling.store, &self.reporting.policy);
        let pods = self.kubelet.pods.iter().filter(|pod| has_usage(store, policy, pod, now.moment));
        let settings = ForecastSettings {
            safety_margin_percent: self.settings.prediction.safety_margin_percent,
            cold_start: self.settings.prediction.cold_start,
        };
        match forecast_prod(&self.reporting.models, pods, raw_allocatable(node), &settings, now.time) {
            Ok(forecast) => self.reporting.forecast = Some(forecast),
            Err(error) => tracing::debug!(%error, "nothing is forecast yet"),
        }
    }
}
