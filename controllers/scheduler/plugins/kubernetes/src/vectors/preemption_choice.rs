use serde_json::json;

use super::preemption::Stage;

const TWO: [(&str, &str); 2] = [("n1", "4"), ("n2", "4")];
const THREE: [(&str, &str); 3] = [("n1", "4"), ("n2", "4"), ("n3", "4")];

/// All pods of the node that is chosen have to go. Pods are the name, the node, the cores, the priority, and when it was started.
#[test]
fn the_node_is_chosen_where_it_does_the_least_harm() {
    for (what, nodes, pods, expected) in [
        ("the least important pod", &TWO[..], &["a n1 4 5 1", "b n2 4 3 1"][..], "n2: b"),
        ("the most important one counts", &TWO, &["a n1 2 5 1", "b n1 2 1 1", "c n2 2 4 1", "d n2 2 4 1"], "n2: c d"),
        ("of the same, the smaller sum", &TWO, &["a n1 2 5 1", "b n1 2 3 1", "c n2 2 5 1", "d n2 2 1 1"], "n2: c d"),
        (
            "of the same, fewer pods",
            &THREE,
            &["a n1 2 5 1", "b n1 2 5 1", "c n2 1 5 1", "d n2 1 5 1", "e n2 2 0 1", "f n3 4 5 1"],
            "n3: f",
        ),
        (
            "fewer pods, though the sum of others is below nothing",
            &TWO,
            &["a n1 2 5 1", "b n1 1 -9 1", "c n1 1 -9 1", "d n2 2 5 1", "e n2 2 2 1"],
            "n2: d e",
        ),
        // The first criterion decides, whatever the others say.
        (
            "a low priority of many",
            &TWO,
            &["a n1 1 3 1", "b n1 1 3 1", "c n1 1 3 1", "d n1 1 3 1", "e n2 4 4 1"],
            "n1: a b c d",
        ),
        (
            "three different ones",
            &THREE,
            &["a n1 2 6 1", "b n1 2 0 1", "c n2 2 5 1", "d n2 2 5 1", "e n3 2 5 1", "f n3 2 4 1"],
            "n3: e f",
        ),
        (
            "of the same, those that run for a shorter time",
            &TWO,
            &["a n1 2 5 10", "b n1 2 5 40", "c n2 2 5 20", "d n2 2 5 30"],
            "n2: c d",
        ),
        ("three that run for different times", &THREE, &["a n1 4 5 10", "b n2 4 5 30", "c n3 4 5 20"], "n2: b"),
        (
            "the time of the most important ones",
            &TWO,
            &["a n1 2 5 30", "b n1 2 1 1", "c n2 2 5 20", "d n2 2 1 99"],
            "n1: a b",
        ),
    ] {
        assert_eq!(Stage::new(nodes, pods).tried("4", 100, &json!({})), expected, "{what}");
    }
}
