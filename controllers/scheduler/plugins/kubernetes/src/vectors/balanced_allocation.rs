use koord_scheduler_testing::{offering, requesting, scored_in};

use crate::BalancedAllocation;

#[test]
fn the_less_the_used_shares_differ_the_higher_the_score() {
    const BOTH: &[&str] = &["cpu", "memory"];
    const THREE: &[&str] = &["cpu", "memory", "example.com/gpu"];
    const SIZED: [&str; 2] = ["cpu=4 memory=10Gi", "cpu=6 memory=10Gi"];
    const LARGE: [&str; 2] = ["cpu=10 memory=20Gi"; 2];
    let gpus = ["cpu=4 memory=10Gi example.com/gpu=8", "cpu=4 memory=10Gi"];
    for (what, nodes, resources, pods, requested, expected) in [
        ("nothing is wanted", SIZED, BOTH, &[][..], "-", None),
        ("nothing is wanted beside others", LARGE, BOTH, &[(0, "cpu=5")], "-", None),
        // .75 and .5; .5 and .5.
        ("on empty nodes", SIZED, BOTH, &[], "cpu=3 memory=5Gi", Some([87, 100])),
        // .6 and .25; .6 and .5.
        ("beside others", LARGE, BOTH, &[(0, "cpu=3"), (1, "cpu=3 memory=5Gi")], "cpu=3 memory=5Gi", Some([82, 95])),
        // Pods that request nothing do not count: 0 of 10 and 5 of 20.
        ("beside one that requests nothing", LARGE, BOTH, &[(0, "-")], "memory=5Gi", Some([87, 87])),
        // 1 and .5; .75 and .5.
        (
            "nodes of two sizes",
            ["cpu=6 memory=20Gi", "cpu=8 memory=20Gi"],
            BOTH,
            &[(0, "cpu=3 memory=5Gi"), (1, "cpu=3 memory=5Gi")],
            "cpu=3 memory=5Gi",
            Some([75, 87]),
        ),
        // More than all is all: 1 and .25; nothing to compare with where there is only memory.
        (
            "more than there is",
            ["cpu=4 memory=20Gi", "memory=20Gi"],
            BOTH,
            &[(0, "cpu=3")],
            "cpu=3 memory=5Gi",
            Some([62, 100]),
        ),
        // .25, .5 and 1: the mean is .58, and the deviation .312; the other node has no such resource.
        ("three resources", gpus, THREE, &[], "cpu=1 memory=5Gi example.com/gpu=8", Some([68, 87])),
        ("one of three is not wanted", gpus, THREE, &[(0, "example.com/gpu=8")], "cpu=1 memory=5Gi", Some([87, 87])),
        // .5, .5 and .5.
        (
            "three alike",
            gpus,
            THREE,
            &[(0, "example.com/gpu=2")],
            "cpu=2 memory=5Gi example.com/gpu=2",
            Some([100, 100]),
        ),
    ] {
        let plugin = BalancedAllocation { resources: resources.iter().map(ToString::to_string).collect() };
        let scores = scored_in(&plugin, &mut offering(&nodes, pods), &requesting(requested));
        assert_eq!(scores, expected.map(Vec::from), "{what}");
    }
}
