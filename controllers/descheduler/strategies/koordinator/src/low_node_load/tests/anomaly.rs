use super::*;

/// Passes at an interval, in each of which the node is hot (`A`), neutral (`N`) or cold (`L`), and how many pods each evicts.
fn evictions(condition: &Value, interval_seconds: i64, passes: &str) -> Vec<usize> {
    let interval = Duration::from_secs(interval_seconds.unsigned_abs());
    let arguments = with(&thresholds(), &json!({"anomalyCondition": condition}));
    let descheduler = descheduler(plugin_every(&arguments, interval), Everything);
    let mut memory = Memory::default();
    let mut evictions = Vec::new();
    for (index, pass) in passes.chars().enumerate() {
        let milli = match pass {
            'A' => 1000,
            'N' => 500,
            _ => 100,
        };
        let seconds = NOW + interval_seconds * i64::try_from(index).unwrap();
        let now = Timestamp::from_second(seconds).unwrap();
        let fresh = json!({"status": {"updateTime": now.to_string()}});
        let objects = [busy("n1", "p", &[milli; 8]), idle("n2", 1000)].concat();
        let cluster = cluster(&each("NodeMetric", &objects, &fresh));
        let plan = descheduler.pass(&Input::new(&cluster, &memory, now));
        evictions.push(plan.steps.len());
        memory = plan.memory;
    }
    evictions
}

#[test]
fn a_node_must_be_hot_for_more_passes_in_a_row_than_demanded() {
    let two = json!({"consecutiveAbnormalities": 2});
    assert_eq!(evictions(&two, 3, "AAAA"), [0, 0, 3, 0], "relieved, its count begins anew");
    assert_eq!(evictions(&json!({"consecutiveAbnormalities": 0}), 3, "AAAAAA"), [0, 0, 0, 0, 0, 3], "5 is the default");
    assert_eq!(evictions(&json!({}), 3, "AA"), [3, 3]);
}

/// Repaired: in the original neither breaks the row.
#[test]
fn a_neutral_or_cold_pass_breaks_the_row() {
    let two = json!({"consecutiveAbnormalities": 2});
    assert_eq!(evictions(&two, 3, "AANAAA"), [0, 0, 0, 0, 0, 3]);
    assert_eq!(evictions(&two, 3, "AALAAA"), [0, 0, 0, 0, 0, 3]);
}

#[test]
fn a_node_is_remembered_over_passes_that_are_farther_apart_than_the_cache_lasts() {
    let two = json!({"consecutiveAbnormalities": 2});
    assert_eq!(evictions(&two, 600, "AAA"), [0, 0, 3], "D01: 10 minutes, and the cache lasts 5");
    assert_eq!(evictions(&two, 300, "AAA"), [0, 0, 3], "exactly as long");
}

#[test]
fn a_node_without_a_fresh_report_keeps_its_count_until_it_is_forgotten() {
    let arguments = with(&thresholds(), &json!({"anomalyCondition": {"consecutiveAbnormalities": 2}}));
    let descheduler = descheduler(plugin(&arguments), Everything);
    let steps = |gap_seconds: i64| {
        let mut memory = Memory::default();
        let mut steps = 0;
        for seconds in [0, 10, 10 + gap_seconds] {
            let now = Timestamp::from_second(NOW + seconds).unwrap();
            let fresh = json!({"status": {"updateTime": now.to_string()}});
            let objects = [busy("n1", "p", &[1000; 8]), idle("n2", 1000)].concat();
            let plan = descheduler.pass(&Input::new(&cluster(&each("NodeMetric", &objects, &fresh)), &memory, now));
            (steps, memory) = (plan.steps.len(), plan.memory);
        }
        steps
    };
    assert_eq!((steps(299), steps(300)), (3, 0), "for 5 minutes");
}

#[test]
fn production_pods_have_counts_of_their_own() {
    let arguments = json!({"anomalyCondition": {"consecutiveAbnormalities": 2}, "lowThresholds": {"cpu": 90}, "highThresholds": {"cpu": 95},
        "prodLowThresholds": {"cpu": 20}, "prodHighThresholds": {"cpu": 40}});
    let descheduler = descheduler(plugin(&arguments), Everything);
    let objects = [each("Pod", &busy("n1", "p", &[300; 14]), &prod()), idle("n2", 1000)].concat();
    let cluster = cluster(&objects);
    let mut memory = Memory::default();
    let now = Timestamp::from_second(NOW).unwrap();
    let mut steps = Vec::new();
    for _ in 0..4 {
        let plan = descheduler.pass(&Input::new(&cluster, &memory, now));
        steps.push(plan.steps.len());
        memory = plan.memory;
    }
    assert_eq!(steps, [0, 0, 1, 0], "D04: one pod, then it is relieved and its count begins anew");
}
