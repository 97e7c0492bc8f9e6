//! The codes and details of refusals.

use super::*;

#[test]
fn a_refusal_says_what_is_left_where_and_what_is_not_reported() {
    let mut world = World::of(&[
        Machine { policies: json!(["SingleNUMANodePodLevel"]), ..Machine::default() },
        Machine { name: "n2", reports_cpus: false, ..Machine::default() },
        Machine { name: "n3", numa_nodes: 0, ..Machine::default() },
    ]);
    world.create("a", ("LS", "3", &[]));
    world.create("b", ("LS", "3", &[]));
    world.engine.set_pod(pod("p", ("LSR", "12", &[]), 9500, "1Gi", None), world.now);
    assert_eq!(
        koord_scheduler_testing::coded(&world.engine, "p", world.now),
        [
            "n1: NumaUnavailable policy=SingleNUMANode free_per_numa=0:cpu=8,memory=32Gi,cpus=8;1:cpu=8,memory=32Gi,cpus=8",
            "n2: CpuTopologyMissing cause=NoCpuTopology",
            "n3: CpuTopologyMissing cause=NoNodeResourceTopology",
        ]
    );
}

#[test]
fn an_annotation_that_cannot_be_read_is_named_for_programs() {
    for key in [SPEC, NUMA, STATUS] {
        let mut world = World::of(&[Machine::default()]);
        world.engine.set_pod(pod("p", ("LSR", "2", &[(key, "{bad")]), 9500, "1Gi", None), world.now);
        let why = world.engine.why(&Uid::from("p"), world.now).unwrap();
        let (plugin, rejection) = why.decision.unwrap().rejected.unwrap();
        assert_eq!((plugin, rejection.reasons[0].operand("annotation")), ("NodeNUMAResource", Some(key)));
    }
}
