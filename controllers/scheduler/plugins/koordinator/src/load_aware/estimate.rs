//! What a new pod is estimated to use (`spec/scheduler.md` 3A.2).

use std::collections::BTreeMap;

use koord_resource::ResourceList;
use koord_scheduling::count;
use koord_types::{
    pod_annotations::{
        LOAD_ESTIMATED_SCALING_FACTORS, LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED,
        LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED,
    },
    priority::PriorityClass,
    protocol::Key,
    resource_names::{BATCH_CPU, BATCH_MEMORY, translate},
};

use super::{Amounts, Dimensions};

/// How the usage of a new pod is estimated, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimator {
    /// The percentage of its request that a pod uses, by resource. What is not named is not estimated.
    pub factors: BTreeMap<String, i64>,
    /// For how many seconds after it was scheduled the estimate counts at least; 0 for no such time.
    pub seconds_after_scheduled: i64,
    /// For how many seconds after its initialization the estimate counts at least; 0 for no such time.
    pub seconds_after_initialized: i64,
    /// Whether annotations of the pod override the others.
    pub is_customizable: bool,
}

/// What the estimate of a pod depends on.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// What the pod requests.
    pub requests: &'a ResourceList,
    pub limits: &'a ResourceList,
    /// Its priority class, derived from its QoS class where it declares none.
    pub class: Option<PriorityClass>,
}

impl Estimator {
    /// What the pod is estimated to use.
    pub fn estimate<'t>(
        &self,
        demand: Demand<'_>,
        annotation: impl Fn(&str) -> Option<&'t str>,
        dimensions: &Dimensions,
    ) -> Amounts {
        let custom = self.custom(&LOAD_ESTIMATED_SCALING_FACTORS, annotation).unwrap_or_default();
        dimensions.each(|name| {
            let factor = custom.get(name).or_else(|| self.factors.get(name));
            factor.map_or(0, |factor| demand.estimate(name, *factor))
        })
    }

    /// Until when the estimate counts whatever is reported, in seconds since 1970. Whether the pod was initialized matters
    /// only where a time after that is set.
    pub fn until<'t>(
        &self,
        annotation: impl Fn(&str) -> Option<&'t str> + Copy,
        scheduled: i64,
        initialized: Option<i64>,
    ) -> Option<i64> {
        let seconds = |key: &Key<i64>, default: i64| {
            self.custom(key, annotation).filter(|seconds| *seconds >= 0).unwrap_or(default)
        };
        let after_initialized = seconds(&LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED, self.seconds_after_initialized);
        if let Some(initialized) = initialized.filter(|_| after_initialized > 0) {
            return Some(initialized.saturating_add(after_initialized));
        }
        let after_scheduled = seconds(&LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED, self.seconds_after_scheduled);
        (after_scheduled > 0).then(|| scheduled.saturating_add(after_scheduled))
    }

    /// The value of an annotation, where it counts and can be decoded.
    fn custom<'t, T: koord_types::protocol::Text>(
        &self,
        key: &Key<T>,
        annotation: impl Fn(&str) -> Option<&'t str>,
    ) -> Option<T> {
        let text = annotation(key.name()).filter(|_| self.is_customizable)?;
        key.read(text).ok()
    }
}

impl Demand<'_> {
    fn estimate(&self, resource: &str, factor: i64) -> i64 {
        // The class has no such resource.
        let Some(real) = translate(self.class, resource) else { return 0 };
        let [request, limit] = [self.requests, self.limits].map(|list| count(real, list.amount(real)));
        match request.max(limit) {
            0 => assumed(real),
            base => {
                let estimate = (base as f64 * factor as f64 / 100.0).round() as i64;
                if limit > 0 { estimate.min(limit) } else { estimate }
            }
        }
    }
}

/// What a pod is estimated to use that requests nothing.
fn assumed(resource: &str) -> i64 {
    match resource {
        "cpu" | BATCH_CPU => 250,
        "memory" | BATCH_MEMORY => 200 << 20,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(cpu: &str, memory: &str, names: [&str; 2]) -> ResourceList {
        let amounts = names.into_iter().zip([cpu, memory]).filter(|(_, text)| !text.is_empty());
        amounts.map(|(name, text)| (name, text.parse().unwrap())).collect()
    }

    fn estimator(cpu: i64, memory: i64) -> Estimator {
        let factors = [("cpu".to_owned(), cpu), ("memory".to_owned(), memory)].into();
        Estimator { factors, is_customizable: true, ..Estimator::default() }
    }

    #[test]
    fn estimates_are_shares_of_the_request_or_of_a_larger_limit() {
        use PriorityClass::{Batch, Free, Mid, Prod};
        let native = ["cpu", "memory"];
        let batch = ["kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"];
        let mid = ["kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"];
        let defaults = (85, 70);
        for (class, names, requests, limits, (cpu, memory), expected) in [
            (Some(Prod), native, ["", ""], ["", ""], defaults, [250, 209_715_200]),
            (Some(Prod), native, ["4", "8Gi"], ["4", "8Gi"], defaults, [3400, 6_012_954_214]),
            (None, native, ["4", "8Gi"], ["4", "8Gi"], defaults, [3400, 6_012_954_214]),
            (Some(Prod), native, ["4", "8Gi"], ["8", "8Gi"], defaults, [6800, 6_012_954_214]),
            (Some(Prod), native, ["4", "8Gi"], ["4", "8Gi"], (110, 110), [4000, 8_589_934_592]),
            (Some(Prod), native, ["4", "8Gi"], ["", ""], (80, 80), [3200, 6_871_947_674]),
            (Some(Prod), native, ["4", "8Gi"], ["", ""], (110, 70), [4400, 6_012_954_214]),
            (Some(Batch), batch, ["4000", "8Gi"], ["4000", "8Gi"], defaults, [3400, 6_012_954_214]),
            (Some(Batch), batch, ["", ""], ["", ""], defaults, [250, 209_715_200]),
            (Some(Batch), native, ["4", "8Gi"], ["", ""], defaults, [250, 209_715_200]),
            (Some(Mid), mid, ["4000", "1000"], ["", ""], defaults, [3400, 700]),
            (Some(Mid), mid, ["", ""], ["", ""], defaults, [0, 0]),
            (Some(Free), native, ["4", "8Gi"], ["", ""], defaults, [0, 0]),
        ] {
            let [requests, limits] = [requests, limits].map(|[cpu, memory]| list(cpu, memory, names));
            let demand = Demand { requests: &requests, limits: &limits, class };
            let estimate = estimator(cpu, memory).estimate(demand, |_| None, &Dimensions::of([]));
            assert_eq!(estimate[..], expected, "{class:?} {requests:?} {limits:?}");
        }
    }

    #[test]
    fn an_annotation_overrides_single_factors_where_that_is_allowed() {
        let requests = list("4", "8Gi", ["cpu", "memory"]);
        let demand = Demand { requests: &requests, limits: &requests, class: None };
        let estimate = |is_customizable, text: &'static str| {
            let estimator = Estimator { is_customizable, ..estimator(85, 70) };
            estimator.estimate(demand, |_| Some(text), &Dimensions::of([])).to_vec()
        };
        assert_eq!(estimate(true, r#"{"cpu":100}"#), [4000, 6_012_954_214]);
        assert_eq!(estimate(false, r#"{"cpu":100}"#), [3400, 6_012_954_214]);
        assert_eq!(estimate(true, "nonsense"), [3400, 6_012_954_214]);
    }

    #[test]
    fn a_resource_without_a_factor_is_not_estimated() {
        let requests = [("example.com/x", "3".parse().unwrap())].into_iter().collect();
        let demand = Demand { requests: &requests, limits: &ResourceList::new(), class: None };
        let dimensions = Dimensions::of(["example.com/x"]);
        let estimated = |estimator: &Estimator| estimator.estimate(demand, |_| None, &dimensions)[1];
        assert_eq!(estimated(&estimator(85, 70)), 0);
        let mut with = estimator(85, 70);
        with.factors.insert("example.com/x".to_owned(), 50);
        assert_eq!(estimated(&with), 2);
    }

    #[test]
    fn the_time_after_initialization_counts_only_for_pods_that_are_initialized() {
        let estimator = Estimator {
            seconds_after_scheduled: 60,
            seconds_after_initialized: 30,
            is_customizable: true,
            ..Estimator::default()
        };
        let none = |_: &str| None;
        assert_eq!((estimator.until(none, 100, Some(150)), estimator.until(none, 100, None)), (Some(180), Some(160)));
        let off = Estimator::default();
        assert_eq!(off.until(none, 100, Some(150)), None);
        let custom = |key: &str| key.ends_with("after-initialized").then_some("0");
        assert_eq!(estimator.until(custom, 100, Some(150)), Some(160));
        let negative = |key: &str| key.ends_with("after-pod-scheduled").then_some("-5");
        assert_eq!(estimator.until(negative, 100, None), Some(160));
        let not_allowed = Estimator { is_customizable: false, ..estimator };
        assert_eq!(not_allowed.until(custom, 100, Some(150)), Some(180));
    }
}
