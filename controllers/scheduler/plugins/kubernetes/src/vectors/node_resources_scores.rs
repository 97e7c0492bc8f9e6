use koord_scheduler_testing::{offering, requesting, scored_in};
use serde_json::{Value, json};

use crate::NodeResourcesFit;

/// The plugin with this strategy, for resources by their weights. Points are those of a line.
fn fit(strategy: &str, resources: &[(&str, i64)], points: &[(i64, i64)]) -> NodeResourcesFit {
    let resources: Vec<Value> =
        resources.iter().map(|(name, weight)| json!({"name": name, "weight": weight})).collect();
    let shape: Vec<Value> = points.iter().map(|(at, score)| json!({"utilization": at, "score": score})).collect();
    let mut strategy = json!({"type": strategy, "resources": resources});
    if !points.is_empty() {
        strategy["requestedToCapacityRatio"] = json!({"shape": shape});
    }
    NodeResourcesFit::new(serde_json::from_value(json!({"scoringStrategy": strategy})).unwrap())
}

fn scores(fit: &NodeResourcesFit, nodes: &[&str], pods: &[(usize, &str)], requested: &str) -> Vec<i64> {
    scored_in(fit, &mut offering(nodes, pods), &requesting(requested)).unwrap()
}

const BOTH: [(&str, i64); 2] = [("cpu", 1), ("memory", 1)];
const ALIKE: [&str; 2] = ["cpu=4 memory=10Gi"; 2];
const SIZED: [&str; 2] = ["cpu=4 memory=10Gi", "cpu=6 memory=10Gi"];

#[test]
fn the_emptiest_and_the_fullest_node() {
    for (what, nodes, pods, requested, emptiest, fullest) in [
        ("nothing there, nothing wanted", ALIKE, &[][..], "", [100, 100], [0, 0]),
        // 3 of 4 and 5 of 10; 3 of 6 and 5 of 10.
        ("nothing there", SIZED, &[], "cpu=3 memory=5Gi", [37, 50], [62, 50]),
        // A container that requests nothing counts as 100m of 4 and 200Mi of 10Gi: 2.5 and 1.95 percent.
        ("what requests nothing", ALIKE, &[(0, "-"), (1, "-; -")], "", [97, 95], [1, 4]),
        ("what requests nothing, and one more", ALIKE, &[(0, "-")], "-", [95, 97], [4, 1]),
        // 3 of 4 and 5 of 10; 2 of 4 and 2 of 10.
        (
            "nothing wanted",
            ALIKE,
            &[(0, "cpu=3 memory=5Gi"), (1, "cpu=1 memory=1Gi"), (1, "cpu=1 memory=1Gi")],
            "",
            [37, 65],
            [62, 35],
        ),
        // 2 of 4 and 3 of 10; 3 of 4 and 5 of 10.
        (
            "something wanted",
            ALIKE,
            &[(0, "cpu=1 memory=1Gi"), (1, "cpu=2 memory=3Gi")],
            "cpu=1 memory=2Gi",
            [60, 37],
            [40, 62],
        ),
        // 2 of 4 and 3 of 10; 3 of 6 and 5 of 10.
        (
            "nodes of two sizes",
            SIZED,
            &[(0, "cpu=1 memory=1Gi"), (1, "cpu=2 memory=3Gi")],
            "cpu=1 memory=2Gi",
            [60, 50],
            [40, 50],
        ),
        ("exactly the whole node", ALIKE, &[(0, "cpu=2 memory=4Gi")], "cpu=2 memory=6Gi", [0, 45], [100, 55]),
        // More than there is counts as all there is; of memory twice 200Mi of 10Gi.
        ("more than there is", ALIKE, &[(0, "cpu=3")], "cpu=2", [48, 74], [51, 25]),
        ("nodes that offer nothing", ["pods=9"; 2], &[(0, "cpu=1 memory=1Gi")], "cpu=1", [0, 0], [0, 0]),
        // Of a sidecar too: 2 of 4 and 2 of 10; 2 of 6.
        ("a sidecar", SIZED, &[], "cpu=1 memory=1Gi; sidecar: cpu=1 memory=1Gi", [65, 73], [35, 26]),
    ] {
        assert_eq!(scores(&fit("LeastAllocated", &BOTH, &[]), &nodes, pods, requested), emptiest, "{what}: emptiest");
        assert_eq!(scores(&fit("MostAllocated", &BOTH, &[]), &nodes, pods, requested), fullest, "{what}: fullest");
    }
}

#[test]
fn weights_and_extended_resources() {
    const GPU: [(&str, i64); 3] = [("cpu", 1), ("memory", 1), ("example.com/gpu", 2)];
    let nodes = ["cpu=4 memory=10Gi example.com/gpu=10", "cpu=4 memory=10Gi"];
    for (what, nodes, resources, requested, emptiest, fullest) in [
        // 3 of 4, 3 of 6, and 5 of 10, which counts twice.
        ("memory counts twice", SIZED, &[("cpu", 1), ("memory", 2)][..], "cpu=3 memory=5Gi", [41, 50], [58, 50]),
        ("one resource alone", SIZED, &[("cpu", 1)], "cpu=3 memory=5Gi", [25, 50], [75, 50]),
        ("an extended resource that is not wanted", nodes, &GPU, "cpu=3 memory=5Gi", [37, 37], [62, 62]),
        // 4 of 10, twice: (25 + 50 + 120) / 4 and (75 + 50 + 80) / 4.
        ("an extended resource that is wanted", nodes, &GPU, "cpu=3 memory=5Gi example.com/gpu=4", [48, 37], [51, 62]),
    ] {
        assert_eq!(
            scores(&fit("LeastAllocated", resources, &[]), &nodes, &[], requested),
            emptiest,
            "{what}: emptiest"
        );
        assert_eq!(scores(&fit("MostAllocated", resources, &[]), &nodes, &[], requested), fullest, "{what}: fullest");
    }
}

#[test]
fn a_line_gives_the_score_of_a_ratio() {
    let down = fit("RequestedToCapacityRatio", &BOTH, &[(0, 10), (100, 0)]);
    for (what, nodes, pods, requested, expected) in [
        ("nothing there, nothing wanted", ALIKE, &[][..], "", [100, 100]),
        // 25 and 50, of which the half is rounded; 50 and 50.
        ("nothing there", SIZED, &[], "cpu=3 memory=5Gi", [38, 50]),
        ("nothing wanted", ALIKE, &[(0, "cpu=3 memory=5Gi"), (1, "cpu=2 memory=5Gi")], "", [38, 50]),
        // A resource whose score is 0 does not count.
        ("one resource is used up", ALIKE, &[(0, "cpu=4 memory=5Gi"), (1, "cpu=4 memory=10Gi")], "", [50, 0]),
        ("more than there is", ALIKE, &[(0, "cpu=4 memory=5Gi")], "cpu=1 memory=2560Mi", [25, 75]),
    ] {
        assert_eq!(scores(&down, &nodes, pods, requested), expected, "{what}");
    }
}

#[test]
fn between_its_points_a_line_is_straight_and_beyond_them_flat() {
    for (points, expected) in [
        (
            &[(10, 1), (90, 9)][..],
            &[(0, 10), (5, 10), (10, 10), (11, 11), (50, 50), (89, 89), (90, 90), (91, 90), (100, 90)][..],
        ),
        (&[(0, 2), (40, 10), (100, 0)], &[(0, 20), (1, 22), (20, 60), (40, 100), (41, 99), (70, 50), (100, 0)]),
        (&[(0, 3), (40, 3), (100, 3)], &[(0, 30), (20, 30), (40, 30), (70, 30), (100, 30)]),
        (&[(0, 0), (30, 4), (60, 1)], &[(15, 20), (30, 40), (31, 39), (45, 25), (60, 10), (99, 10)]),
    ] {
        let fit = fit("RequestedToCapacityRatio", &[("cpu", 1)], points);
        for (percent, score) in expected {
            let used = format!("cpu={percent}");
            assert_eq!(scores(&fit, &["cpu=100"], &[(0, &used)], ""), [*score], "{points:?} at {percent}");
        }
    }
}

#[test]
fn extended_resources_are_packed() {
    const UP: [(i64, i64); 2] = [(0, 0), (100, 10)];
    let (foo, bar) = ("example.com/foo", "example.com/bar");
    let one = fit("RequestedToCapacityRatio", &[(foo, 1)], &UP);
    let nodes = ["example.com/foo=8", "example.com/foo=4"];
    for (what, pods, requested, expected) in [
        ("nothing wanted", &[][..], "-", [0, 0]),
        ("on empty nodes", &[], "example.com/foo=2", [25, 50]),
        ("beside another", &[(1, "example.com/foo=2")], "example.com/foo=2", [25, 100]),
        ("more than one of them has", &[], "example.com/foo=6", [75, 100]),
    ] {
        assert_eq!(scores(&one, &nodes, pods, requested), expected, "{what}");
    }
    let two = fit("RequestedToCapacityRatio", &[(foo, 3), (bar, 5)], &UP);
    let nodes = ["example.com/foo=8 example.com/bar=4", "example.com/foo=4 example.com/bar=8"];
    for (what, pods, requested, expected) in [
        ("nothing wanted", &[][..], "-", [0, 0]),
        // (25 * 3 + 50 * 5) / 8 and (50 * 3 + 25 * 5) / 8.
        ("on empty nodes", &[], "example.com/foo=2 example.com/bar=2", [41, 34]),
        // The second: (100 * 3 + 50 * 5) / 8.
        (
            "beside another",
            &[(1, "example.com/foo=2 example.com/bar=2")],
            "example.com/foo=2 example.com/bar=2",
            [41, 69],
        ),
        // (50 * 3 + 50 * 5) / 8 and (100 * 3 + 25 * 5) / 8.
        ("more of one", &[], "example.com/foo=4 example.com/bar=2", [50, 53]),
        ("one of both is wanted", &[], "example.com/bar=2", [50, 25]),
    ] {
        assert_eq!(scores(&two, &nodes, pods, requested), expected, "{what}");
    }
}
