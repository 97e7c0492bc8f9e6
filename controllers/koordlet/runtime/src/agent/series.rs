//! What the metrics of the agent say now.

use std::{collections::BTreeMap, time::Duration};

use koord_koordlet_metrics::gauges::{
    Gauge, cycle_gauges, forecast_gauges, host_application_gauges, node_usage_gauges, pressure_gauges, resctrl_gauges,
};
use koord_koordlet_qos::eviction::EVICTED;
use koord_koordlet_reports::{allocatable_gauges, container_resource_gauges, node_metric_gauges};

use super::{Agent, Now};
use crate::{capability::State, series::Series};

/// How long an eviction is shown by the name of its pod.
const DETAIL_AGE: Duration = Duration::from_mins(5);

impl Agent {
    /// The node that the agent runs on.
    pub fn node_name(&self) -> &str {
        &self.settings.node_name
    }

    /// How many pods were evicted, by reason.
    pub fn evictions(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Some(self.evictions.count).filter(|count| *count > 0).map(|count| (EVICTED, count)).into_iter()
    }

    /// The pods that were evicted in the last five minutes, as `NAMESPACE/NAME`, with the reason and how often.
    pub fn evicted_pods(&self, now: Now) -> impl Iterator<Item = (&str, &'static str, u64)> {
        let is_shown = move |at| now.moment.since(at) < DETAIL_AGE;
        let pods = self.evictions.pods.iter().filter(move |(_, (_, at))| is_shown(*at));
        pods.map(|(pod, (count, _))| (pod.as_str(), EVICTED, *count))
    }

    /// All series of all gauges.
    pub fn series(&self, now: Now) -> Vec<Series> {
        let mut all = Vec::new();
        let node = self.settings.node_name.as_str();
        let mut add = |name: String, labels: BTreeMap<&'static str, String>, value: f64| {
            let mut labels = labels;
            labels.insert("node", node.to_owned());
            all.push(Series { name, labels, value });
        };
        let started = self.started.as_second() as f64;
        add("koordlet_start_time".to_owned(), BTreeMap::new(), started);
        for (feature, state) in self.capabilities.iter() {
            let state = match state {
                State::Active => "active",
                State::Off => "off",
                State::Degraded { .. } => "degraded",
            };
            let labels = BTreeMap::from([("feature", feature.to_owned()), ("state", state.to_owned())]);
            add("koord_koordlet_capability".to_owned(), labels, 1.0);
        }
        // Whose usage it is, is not known before.
        if self.node.is_none() {
            return all;
        }
        for gauge in self.enforcement.gauges.values().flatten() {
            let labels = gauge.labels.iter().map(|(name, value)| (*name, value.to_string())).collect();
            add(gauge.name.to_owned(), labels, gauge.value);
        }
        for score in &self.hooks.oom_scores {
            let labels = BTreeMap::from([
                ("pod_uid", score.pod_uid.to_string()),
                ("pod_name", score.pod_name.to_string()),
                ("pod_namespace", score.pod_namespace.to_string()),
                ("container_name", score.container.to_string()),
            ]);
            add("koordlet_container_oom_score_adj".to_owned(), labels, score.score as f64);
        }
        if let Some(report) = &self.topology.report {
            for (pool, pools) in
                [("share_pool", &report.topology.shared_pools), ("be_share_pool", &report.topology.be_shared_pools)]
            {
                let cpus: usize = pools.iter().map(|pool| pool.cpus.len()).sum();
                add(format!("koordlet_cpuset_{pool}_cpu_cores"), BTreeMap::new(), cpus as f64);
                if self.settings.features.has("PerCPUMetric") {
                    for cpu in pools.iter().flat_map(|pool| pool.cpus.iter()) {
                        add(format!("koordlet_cpuset_{pool}_info"), BTreeMap::from([("cpu", cpu.to_string())]), 1.0);
                    }
                }
            }
        }
        for Gauge { name, labels, value } in self.sampled_gauges(now) {
            let labels = labels.into_iter().map(|(name, value)| (name, value.into_owned())).collect();
            add(format!("koordlet_{name}"), labels, value);
        }
        all
    }

    fn sampled_gauges(&self, now: Now) -> Vec<Gauge> {
        let store = &self.sampling.store;
        let within = self.settings.intervals.collect * 2;
        let pods = &self.kubelet.pods;
        let collectors = &self.sampling.collectors;
        let mut gauges = node_usage_gauges(store, now.moment, within);
        if let Some(slo) = &self.slo.merged {
            gauges.extend(host_application_gauges(store, &slo.host_applications, now.moment, within));
        }
        if collectors.cycles.is_some() {
            gauges.extend(cycle_gauges(store, pods, now.moment, self.settings.intervals.cpi * 2));
        }
        if let Some(pressure) = &collectors.pressure {
            gauges.extend(pressure_gauges(pressure.readings()));
        }
        if let Some(resctrl) = &collectors.resctrl {
            gauges.extend(resctrl_gauges(resctrl.readings()));
        }
        if self.reporting.has_reported() {
            gauges.extend(forecast_gauges(self.reporting.forecast()));
        }
        if self.settings.features.has("NodeMetricPromMetrics")
            && let Some(status) = self.reporting.status()
        {
            gauges.extend(node_metric_gauges(status));
        }
        if let Some(node) = &self.node {
            gauges.extend(allocatable_gauges(node));
        }
        gauges.extend(container_resource_gauges(pods));
        gauges
    }
}
