//! SchedulingGates: a pod with gates is not scheduled.

use std::sync::Arc;

use koord_scheduler_framework::{
    EnqueueExtensions, Plugin, PreEnqueue, Reason, ReasonCode, Registration, cluster::Cluster, event::Events, pod::Pod,
};

/// Holds back pods whose `spec.schedulingGates` is not empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).pre_enqueue(&self).enqueue_extensions(&self)
    }
}

impl PreEnqueue for SchedulingGates {
    fn pre_enqueue(&self, pod: &Pod, _: &Cluster) -> Result<(), Reason> {
        if pod.gates.is_empty() {
            return Ok(());
        }
        let gates = pod.gates.join(" ");
        Err(ReasonCode::SchedulingGated.reason(format!("waiting for scheduling gates: [{gates}]")).with("gates", gates))
    }
}

impl EnqueueExtensions for SchedulingGates {
    fn events_to_register(&self) -> Events {
        Events::POD_CHANGED
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::pod;

    use super::*;

    #[test]
    fn the_gates_are_named() {
        let mut pod = Pod::clone(&pod("a", &serde_json::json!({})));
        assert_eq!(SchedulingGates.pre_enqueue(&pod, &Cluster::default()), Ok(()));
        pod.gates = vec!["a".into(), "b".into()];
        let reason = SchedulingGates.pre_enqueue(&pod, &Cluster::default()).unwrap_err();
        assert_eq!((reason.code, &*reason.text), (ReasonCode::SchedulingGated, "waiting for scheduling gates: [a b]"));
    }
}
