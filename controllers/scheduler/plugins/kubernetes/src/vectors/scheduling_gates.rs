use koord_scheduler_framework::{
    EnqueueExtensions as _, PreEnqueue as _,
    cluster::Cluster,
    event::{Event, Events},
    pod::Pod,
};
use koord_scheduler_testing::pod;
use serde_json::json;

use crate::SchedulingGates;

#[test]
fn a_pod_waits_while_it_has_gates_and_is_woken_by_its_own_change_alone() {
    for (gates, said) in [
        (&[][..], None),
        (&["example.com/one"], Some("waiting for scheduling gates: [example.com/one]")),
        (&["one", "two"], Some("waiting for scheduling gates: [one two]")),
    ] {
        let pod = Pod { gates: gates.iter().map(|gate| (*gate).into()).collect(), ..Pod::clone(&pod("p", &json!({}))) };
        let refused = SchedulingGates.pre_enqueue(&pod, &Cluster::default()).err();
        assert_eq!(refused.map(|reason| reason.text).as_deref(), said);
    }
    assert_eq!(SchedulingGates.events_to_register(), Events::POD_CHANGED, "changes of other pods are no events of it");
    assert!(SchedulingGates.is_helped_by(&pod("p", &json!({})), &Event::PodChanged, &Cluster::default()));
}
