//! What the handlers count, under the original's names.

use std::sync::Arc;

use koord_runtime::{
    metrics::{Audience, Description, Metrics},
    store::Store,
};
use prometheus::{
    GaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

use crate::quota::CachedQuota;

pub(crate) const BINDING_DECISIONS: Description = Description::counter(
    "koord_manager_webhook_binding_admission_decisions_total",
    &["decision"],
    "Bindings of pods that were decided about, by the reason of the decision.",
)
.to(Audience::Internal)
.advice("`denied`: somebody outside of --binding-admission-user-name binds pods; `dry_run` counts those that would have been denied.");
const SHARED_WEIGHTS: Description = Description::gauge(
    "koord_manager_webhook_quota_shared_weight",
    &["elasticquota_name", "resource_name"],
    "The weight with which a quota competes for what others leave, as its annotation says it, in cores, bytes and pieces.",
)
.to(Audience::Internal)
.advice("A quota gets less than expected: compare its weight with those beside it; without an annotation it is the quota's max.");

/// What the handlers count.
pub const METRICS: &[Description] = &[BINDING_DECISIONS, SHARED_WEIGHTS];

/// Tells weights from the cache when somebody asks, so that quotas that are gone have none.
struct SharedWeights {
    quotas: Arc<Store<CachedQuota>>,
    shape: GaugeVec,
}

/// Shows the weights of all quotas of a cache.
pub(crate) fn show_shared_weights(metrics: &Metrics, quotas: &Arc<Store<CachedQuota>>) {
    let shown =
        weights().and_then(|shape| metrics.adopt(SHARED_WEIGHTS, SharedWeights { quotas: Arc::clone(quotas), shape }));
    if let Err(error) = shown {
        tracing::warn!(%error, "weights of quotas are not shown");
    }
}

fn weights() -> prometheus::Result<GaugeVec> {
    GaugeVec::new(Opts::new(SHARED_WEIGHTS.name, SHARED_WEIGHTS.help), SHARED_WEIGHTS.labels)
}

impl Collector for SharedWeights {
    fn desc(&self) -> Vec<&Desc> {
        self.shape.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Ok(gauge) = weights() else { return Vec::new() };
        for (_, entry) in self.quotas.read().iter() {
            for (resource, weight) in &entry.value.shared_weight {
                gauge.with_label_values(&[&*entry.value.name, resource]).set(weight.as_f64());
            }
        }
        gauge.collect()
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::store::Sink as _;

    use super::*;

    #[test]
    fn weights_are_those_of_the_quotas_that_exist() {
        let (metrics, quotas) = (Metrics::new().unwrap(), Arc::<Store<CachedQuota>>::default());
        show_shared_weights(&metrics, &quotas);
        let quota = |name: &str, weight: &str| {
            let annotations = serde_json::json!({"quota.scheduling.koordinator.sh/shared-weight": weight});
            serde_json::json!({"metadata": {"name": name, "namespace": "n", "resourceVersion": "1", "uid": name, "annotations": annotations}})
                .to_string()
        };
        quotas.upsert(&quota("a", r#"{"cpu":"500m","memory":"1Gi"}"#)).unwrap();
        quotas.upsert(&quota("b", "null")).unwrap();
        let text = metrics.text(&[Audience::Internal]);
        let series: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            series,
            [
                r#"koord_manager_webhook_quota_shared_weight{elasticquota_name="a",resource_name="cpu"} 0.5"#,
                r#"koord_manager_webhook_quota_shared_weight{elasticquota_name="a",resource_name="memory"} 1073741824"#,
            ]
        );
    }
}
