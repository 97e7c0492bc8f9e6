//! Hooks of quotas that come from other crates, and how long they take.

use std::sync::{Arc, OnceLock};

use koord_runtime::clock::SharedClock;
use koord_scheduler_framework::pod::Pod;
use koord_scheduler_plugins_koordinator::elastic_quota::{
    BoxError, Forest, HookFactories, QuotaHook, QuotaUpdate, QuotaUpdateState,
};
use koord_scheduler_runtime::HookLatency;
use koord_types::elastic_quota::ElasticQuota;
use serde_json::Value;

/// The factories of hooks that a program adds.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    factories: HookFactories,
    stopwatch: Stopwatch,
}

/// Measures hooks from the moment on at which there are metrics.
#[derive(Clone, Default)]
pub(crate) struct Stopwatch(Arc<OnceLock<(HookLatency, SharedClock)>>);

impl Hooks {
    pub(crate) fn add(
        &mut self,
        factory_key: &str,
        factory: impl Fn(&str, &Value) -> Result<Box<dyn QuotaHook>, BoxError> + Send + Sync + 'static,
    ) {
        let stopwatch = self.stopwatch.clone();
        self.factories.register(factory_key, move |key, args| {
            let hook = factory(key, args)?;
            Ok(Box::new(Measured { key: key.into(), hook, stopwatch: stopwatch.clone() }))
        });
    }

    pub(crate) fn factories(&self) -> &HookFactories {
        &self.factories
    }

    pub(crate) fn stopwatch(&self) -> &Stopwatch {
        &self.stopwatch
    }
}

impl Stopwatch {
    /// Hooks are measured from now on, if they were not before.
    pub(crate) fn start(&self, latency: HookLatency, clock: SharedClock) {
        // Whoever was first measures.
        let _ = self.0.set((latency, clock));
    }

    fn measure<T>(&self, key: &str, operation: &'static str, call: impl FnOnce() -> T) -> T {
        let Some((latency, clock)) = self.0.get() else { return call() };
        let began = clock.moment();
        let answer = call();
        latency.observe(key, operation, clock.moment().since(began));
        answer
    }
}

/// A hook whose calls are measured.
struct Measured {
    key: Arc<str>,
    hook: Box<dyn QuotaHook>,
    stopwatch: Stopwatch,
}

impl QuotaHook for Measured {
    fn copy(&self) -> Box<dyn QuotaHook> {
        let Self { key, hook, stopwatch } = self;
        Box::new(Self { key: Arc::clone(key), hook: hook.copy(), stopwatch: stopwatch.clone() })
    }

    fn is_quota_updated(&self, update: &QuotaUpdate<'_>, quotas: &Forest) -> bool {
        self.stopwatch.measure(&self.key, "is_quota_updated", || self.hook.is_quota_updated(update, quotas))
    }

    fn pre_quota_update(&mut self, update: &QuotaUpdate<'_>, quotas: &Forest, state: &mut QuotaUpdateState) {
        let Self { key, hook, stopwatch } = self;
        stopwatch.measure(key, "pre_quota_update", || hook.pre_quota_update(update, quotas, state));
    }

    fn post_quota_update(&mut self, update: &QuotaUpdate<'_>, quotas: &Forest, state: &mut QuotaUpdateState) {
        let Self { key, hook, stopwatch } = self;
        stopwatch.measure(key, "post_quota_update", || hook.post_quota_update(update, quotas, state));
    }

    fn on_pod_updated(&mut self, quota: &str, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let Self { key, hook, stopwatch } = self;
        stopwatch.measure(key, "on_pod_update", || hook.on_pod_updated(quota, old, new));
    }

    fn update_quota_status(&self, old: &ElasticQuota, new: Option<&ElasticQuota>) -> Option<ElasticQuota> {
        self.stopwatch.measure(&self.key, "update_quota_status", || self.hook.update_quota_status(old, new))
    }

    fn check_pod(&self, quota: &str, pod: &Pod, quotas: &Forest) -> Result<(), BoxError> {
        self.stopwatch.measure(&self.key, "check_pod", || self.hook.check_pod(quota, pod, quotas))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use koord_config::scheduler::HookPlugin;
    use koord_runtime::{
        clock::ManualClock,
        metrics::{Audience, Registries},
        random::Random,
    };
    use koord_scheduler_engine::{Engine, queue::Timings};
    use koord_scheduler_runtime::Measures;
    use serde_json::json;

    use super::*;

    /// Takes two seconds for each status.
    struct Slow(Arc<ManualClock>);

    impl QuotaHook for Slow {
        fn copy(&self) -> Box<dyn QuotaHook> {
            Box::new(Self(Arc::clone(&self.0)))
        }

        fn update_quota_status(&self, _: &ElasticQuota, _: Option<&ElasticQuota>) -> Option<ElasticQuota> {
            self.0.advance(Duration::from_secs(2));
            None
        }
    }

    #[test]
    fn hooks_are_measured_by_key_and_operation_once_there_are_metrics() {
        let (clock, metrics) = (ManualClock::new(Timestamp::UNIX_EPOCH), Registries::default());
        let mut hooks = Hooks::default();
        let slow = Slow(Arc::clone(&clock));
        hooks.add("slow", move |_, _| Ok(slow.copy()));
        let configured: HookPlugin = serde_json::from_value(json!({"key": "audit", "factoryKey": "slow"})).unwrap();
        let mut hook = hooks.factories().hook(&configured).unwrap().into_inner();
        let engine = Engine::new(Vec::new(), Timings::default(), Random::seeded(1));
        let measures = Measures::of(&engine, &metrics).unwrap();
        let quota = ElasticQuota::default();
        hook.update_quota_status(&quota, None);
        hooks.stopwatch().start(measures.hook_latency(), clock);
        hook.update_quota_status(&quota, None);
        hook.on_pod_updated("q1", None, None);
        let text = metrics.text(&[Audience::Runtime]);
        for line in [
            r#"scheduler_elastic_quota_hook_plugin_latency_sum{operation="update_quota_status",plugin="audit"} 2"#,
            r#"scheduler_elastic_quota_hook_plugin_latency_count{operation="update_quota_status",plugin="audit"} 1"#,
            r#"scheduler_elastic_quota_hook_plugin_latency_count{operation="on_pod_update",plugin="audit"} 1"#,
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
