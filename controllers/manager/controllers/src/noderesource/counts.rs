//! What the controller counts, mostly under the original's names.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use koord_runtime::{
    clock::SharedClock,
    metrics::{Audience, Description, ExpiringGauge, Metrics, Unit},
};
use koord_types::resource_names::{BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY};
use parking_lot::Mutex;
use prometheus::{IntCounter, IntCounterVec};

use super::{
    decision::{Decision, Reset},
    facts::Facts,
    plugin::{Plugin, Plugins},
};
use crate::one_per_node::Tally;

/// Series that nobody has set for so long go, as in the original: another replica leads, or nothing is decided any more.
const LIFE: Duration = Duration::from_mins(5);

pub(crate) const WRITES: Description = Description::counter(
    "slo_controller_node_resource_reconcile_count",
    &["status", "reason"],
    "Writes of nodes by result (succeeded, failed) and reason (updateNodeStatus, patchNodeMeta, updateNodeResourceTopology).",
)
.to(Audience::Internal)
.advice("Many in a quiet cluster: usage moves by more than `resourceDiffThreshold`; raise it. Failures: the log line `reconcile failed` names the node.");
pub(crate) const PLUGINS: Description = Description::counter(
    "slo_controller_node_resource_run_plugin_status",
    &["plugin", "status", "reason"],
    "Parts of the controller that ran, by result (succeeded, failed) and occasion.",
)
.to(Audience::Internal)
.advice("Failures: the log line `what stands on the node stays` names node and reason, such as a CPU model without a ratio.");
pub(crate) const AMOUNTS: Description = Description::gauge(
    "slo_controller_node_extended_resource_allocatable_internal",
    &["node", "resource", "unit"],
    "What batch and mid pods may use of a node, before others take some: of CPU, batch-cpu in cores and mid-cpu, as ever, in \
     thousandths of cores; a series goes five minutes after it was decided last.",
)
.to(Audience::Internal)
.unit(Unit::Labelled)
.advice("Lower than expected: `koordctl explain batch NODE` shows every term.");
pub(crate) const STALE: Description = Description::gauge(
    "koord_nodes_without_fresh_metrics",
    &[],
    "Nodes with colocation whose NodeMetric is absent or too old, so that they offer nothing to batch and mid pods.",
)
.to(Audience::Internal)
.advice(
    "koordlet does not run or cannot write there: `koordctl explain batch NODE` names the time of the last report.",
);

/// The counters of one controller.
pub(super) struct Counts {
    pub(super) writes: Tally,
    plugins: IntCounterVec,
    /// Of each part that is on, the steps that always succeed.
    steps: Vec<(Plugin, Vec<IntCounter>)>,
    amounts: ExpiringGauge,
    stale: ExpiringGauge,
    stale_nodes: Mutex<BTreeSet<Arc<str>>>,
}

/// In which steps of the original a part takes part, beyond the computation itself.
fn steps(plugin: Plugin) -> &'static [&'static str] {
    match plugin {
        Plugin::MidResource | Plugin::BatchResource | Plugin::RdmaDeviceResource => &["NodePrepare", "NodeStatusCheck"],
        Plugin::CpuNormalization | Plugin::ResourceAmplification => &["NodePrepare", "NodeStatusCheckMeta"],
        Plugin::GpuDeviceResource => &["NodePrepare", "NodeStatusCheck", "NodeStatusCheckMeta"],
    }
}

impl Counts {
    pub(super) fn new(metrics: &Metrics, clock: &SharedClock, on: &Plugins) -> prometheus::Result<Self> {
        let plugins = metrics.counter(PLUGINS)?;
        let succeeded = |plugin: Plugin, step: &str| plugins.with_label_values(&[plugin.name(), "succeeded", step]);
        let on = Plugin::ALL.into_iter().filter(|plugin| on.has(*plugin));
        let steps = on
            .map(|plugin| {
                if plugin != Plugin::MidResource {
                    succeeded(plugin, "Setup").inc();
                }
                (plugin, steps(plugin).iter().map(|step| succeeded(plugin, step)).collect())
            })
            .collect();
        let amounts = ExpiringGauge::new(AMOUNTS, Arc::clone(clock), LIFE)?;
        let stale = ExpiringGauge::new(STALE, Arc::clone(clock), LIFE)?;
        metrics.adopt(AMOUNTS, amounts.clone())?;
        metrics.adopt(STALE, stale.clone())?;
        let writes = Tally(metrics.counter(WRITES)?);
        for reason in ["updateNodeStatus", "patchNodeMeta", "updateNodeResourceTopology"] {
            writes.expect(reason);
        }
        Ok(Self { writes, plugins, steps, amounts, stale, stale_nodes: Mutex::default() })
    }

    /// A part ran.
    pub(super) fn ran(&self, plugin: Plugin, succeeded: bool, reason: &str) {
        let status = if succeeded { "succeeded" } else { "failed" };
        self.plugins.with_label_values(&[plugin.name(), status, reason]).inc();
    }

    /// A node was decided about.
    pub(super) fn decided(&self, facts: &Facts<'_>, decision: &Decision) {
        let reason = if decision.reset == Some(Reset::Disabled) { "ResourceReset" } else { "ResourceCalculate" };
        for (plugin, steps) in &self.steps {
            let failure = decision.failures.iter().find(|(failed, _)| failed == plugin);
            self.ran(*plugin, failure.is_none(), reason);
            steps.iter().for_each(IntCounter::inc);
            if let Some((_, failure)) = failure {
                tracing::warn!(node = facts.name, plugin = plugin.name(), failure, "what stands on the node stays");
            }
        }
        let is_stale = matches!(decision.reset, Some(Reset::Degraded(_)));
        self.count_stale(|nodes| if is_stale { nodes.insert(facts.name.into()) } else { nodes.remove(facts.name) });
        if decision.reset.is_some() {
            self.amounts.forget(facts.name);
        }
        if let Some(amounts) = decision.batch {
            self.amounts.set(&[facts.name, BATCH_CPU, "integer"], amounts.cpu.milli() as f64 / 1000.0);
            self.amounts.set(&[facts.name, BATCH_MEMORY, "byte"], amounts.memory.units() as f64);
        }
        // QUIRK: thousandths of cores, where batch-cpu is in cores (`mid_amounts_are_measured_as_they_are_written`).
        for (name, unit) in [(MID_CPU, "integer"), (MID_MEMORY, "byte")] {
            if let Some(Some(amount)) = decision.resources.get(name) {
                self.amounts.set(&[facts.name, name, unit], amount.value() as f64);
            }
        }
    }

    /// A node is gone.
    pub(super) fn forget(&self, node: &str) {
        self.amounts.forget(node);
        self.count_stale(|nodes| nodes.remove(node));
    }

    fn count_stale(&self, change: impl FnOnce(&mut BTreeSet<Arc<str>>) -> bool) {
        let mut nodes = self.stale_nodes.lock();
        change(&mut nodes);
        self.stale.set(&[], nodes.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::clock::ManualClock;
    use serde_json::json;

    use super::*;
    use crate::noderesource::scene::{NOW, Scene, usage};

    #[test]
    fn mid_amounts_are_measured_as_they_are_written() {
        let (metrics, clock) = (Metrics::new().unwrap(), ManualClock::new(NOW) as SharedClock);
        let counts = Counts::new(&metrics, &clock, &Plugins::default()).unwrap();
        let mut scene = Scene::new(json!({}));
        scene.metric["status"]["prodReclaimableMetric"] = json!({"resource": usage("10", "15G")});
        let shown = |scene: &Scene| {
            scene.look(|facts| counts.decided(facts, &scene.decide()));
            let text = metrics.text(&[Audience::Internal]);
            let lines = text.lines().filter_map(|line| line.strip_prefix(AMOUNTS.name));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&scene),
            [
                r#"{node="n",resource="kubernetes.io/batch-cpu",unit="integer"} 58"#,
                r#"{node="n",resource="kubernetes.io/batch-memory",unit="byte"} 66000000000"#,
                r#"{node="n",resource="kubernetes.io/mid-cpu",unit="integer"} 10000"#,
                r#"{node="n",resource="kubernetes.io/mid-memory",unit="byte"} 15000000000"#,
            ]
        );
        scene.config["enable"] = false.into();
        assert_eq!(shown(&scene), [""; 0]);
    }
}
