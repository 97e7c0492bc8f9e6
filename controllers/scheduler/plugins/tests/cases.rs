//! Which test holds which vector of `spec/scheduler.md` section 6 and which case of its section 7, for LoadAwareScheduling,
//! NodeNUMAResource, Reservation, DeviceShare and the topology manager.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{fs, path::Path};

/// The vector or case, the file below `src`, and the tests there.
const CASES: &[(&str, &str, &[&str])] = &[
    // Section 6.
    ("6.1", "numa/accumulator/tests.rs", &["whole_cores_are_taken_of_one_numa_node_or_socket_where_possible"]),
    ("6.2", "numa/accumulator/tests.rs", &["spread_cpus_are_taken_one_per_core_where_possible"]),
    (
        "6.3",
        "numa/accumulator/tests.rs",
        &[
            "pods_of_one_exclusive_policy_keep_away_from_each_other",
            "cpus_that_two_pods_may_have_are_first_taken_where_nobody_is",
        ],
    ),
    ("6.5 estimator", "load_aware/estimate.rs", &["estimates_are_shares_of_the_request_or_of_a_larger_limit"]),
    ("6.5 score", "load_aware/decide.rs", &["the_more_is_left_the_better_is_the_node"]),
    ("6.6", "numa/manager/tests.rs", &["what_is_not_aligned_is_listed_by_resource"]),
    // LoadAware.
    ("10", "load_aware/decide.rs", &["an_expired_report_refuses_or_accepts_but_only_where_there_are_thresholds"]),
    (
        "11 filter",
        "load_aware/decide.rs",
        &["an_expired_report_refuses_or_accepts_but_only_where_there_are_thresholds"],
    ),
    ("11 score", "load_aware/decide.rs", &["the_more_is_left_the_better_is_the_node"]),
    ("12 disabled", "load_aware/tests.rs", &["a_node_sets_thresholds_and_its_capacity_by_annotation"]),
    ("12 empty block", "load_aware/thresholds.rs", &["other_values_than_the_average_need_a_type_and_a_threshold"]),
    ("13", "load_aware/tests.rs", &["production_pods_may_be_judged_by_production_usage"]),
    (
        "14",
        "load_aware/node_load.rs",
        &["a_value_that_is_not_reported_is_the_average_or_for_a_certain_time_the_estimates"],
    ),
    ("15", "load_aware/node_load.rs", &["a_pod_counts_by_its_estimate_until_a_report_covers_it"]),
    (
        "16",
        "load_aware/tests/assigned.rs",
        &[
            "a_pod_counts_since_its_condition_and_on_its_node",
            "pods_of_daemon_sets_count_and_those_that_stand_for_reservations_do_not",
        ],
    ),
    ("17 bypass", "load_aware/tests.rs", &["a_pod_of_a_daemon_set_runs_on_busy_nodes"]),
    (
        "17 cached",
        "load_aware/tests/assigned.rs",
        &["pods_of_daemon_sets_count_and_those_that_stand_for_reservations_do_not"],
    ),
    ("17 mid", "load_aware/estimate.rs", &["estimates_are_shares_of_the_request_or_of_a_larger_limit"]),
    ("18", "load_aware/estimate.rs", &["the_time_after_initialization_counts_only_for_pods_that_are_initialized"]),
    // NodeNUMAResource.
    ("19 own", "numa/wanted.rs", &["only_exclusive_pods_of_production_bind_cpus_by_themselves"]),
    ("19 node", "numa/plugin/tests.rs", &["a_node_that_binds_binds_all_pods_or_refuses_them"]),
    ("20", "numa/wanted.rs", &["what_is_required_comes_before_the_node_and_the_node_before_what_is_preferred"]),
    ("21", "numa/wanted.rs", &["a_node_that_binds_binds_all_pods_of_whole_cpus"]),
    ("22", "numa/plugin/tests.rs", &["amplified_cpus_are_more_but_bound_ones_cost_more"]),
    ("23 unknown", "numa/allocate/tests.rs", &["a_resource_that_no_numa_node_reports_is_no_matter_of_numa"]),
    ("23 exhausted", "numa/manager/tests.rs", &["policies_admit_what_all_resources_prefer"]),
    ("24", "numa/allocate/tests.rs", &["cpus_that_others_have_are_no_hint_under_a_required_policy"]),
    ("25", "numa/manager/tests.rs", &["lower_numbers_come_before_scores"]),
    ("26", "numa/manager/tests.rs", &["the_only_numa_node_is_no_affinity"]),
    ("27 pods", "numa/manager/tests.rs", &["pods_on_one_numa_node_and_pods_on_several_keep_apart"]),
    ("27 shared", "numa/ledger.rs", &["a_numa_node_is_shared_as_soon_as_one_pod_spans_several"]),
    ("28", "numa/node.rs", &["cpus_that_others_give_out_are_reserved_and_shrink_their_numa_nodes"]),
    ("29", "reservation/plugin/tests/parts.rs", &["what_owners_have_of_numa_nodes_counts_once_for_others"]),
    ("30", "reservation/plugin/tests/parts.rs", &["an_owner_stays_on_the_numa_node_of_its_reservation"]),
    ("31", "numa/plugin/tests.rs", &["nodes_are_scored_by_what_is_left_and_numa_nodes_by_what_the_pod_gets"]),
    ("32 nothing", "numa/plugin/tests.rs", &["a_pod_without_requests_has_no_part_in_this"]),
    // A recording outranks the case: on a node that binds CPUs an LS pod gets the annotation too.
    ("32 written", "numa/wanted.rs", &["what_was_decided_is_written_where_the_pod_did_not_say_it"]),
    ("33", "reservation/plugin/tests/parts.rs", &["cpus_of_an_owner_that_goes_are_those_of_the_next_one"]),
    ("34", "numa/allocate/tests.rs", &["what_is_requested_is_divided_evenly", "parts_are_ordered_by_position"]),
    // Reservation.
    (
        "35",
        "reservation/info.rs",
        &["a_reservation_takes_owners_while_it_is_available_and_once_unless_it_says_otherwise"],
    ),
    ("35 assumed", "reservation/plugin/tests.rs", &["an_owner_uses_a_reservation_whose_node_is_not_written_yet"]),
    (
        "36 affinity",
        "reservation/plugin/tests/asked.rs",
        &["nodes_without_a_reservation_that_is_asked_for_are_left_out"],
    ),
    ("36 node alone", "reservation/plugin/tests.rs", &["restricted_reservations_are_used_alone_or_not_at_all"]),
    (
        "37 names",
        "reservation/fits.rs",
        &[
            "a_resource_that_is_not_reserved_is_taken_from_the_node",
            "pods_count_on_the_node_and_where_they_are_reserved",
        ],
    ),
    ("37 options", "reservation/info.rs", &["restricted_options_narrow_the_names_that_count"]),
    ("38", "reservation/info.rs", &["withheld_amounts_are_kept_but_not_available"]),
    ("39", "reservation/fits.rs", &["a_restricted_owner_takes_the_reservation_or_the_node_alone"]),
    (
        "40, 41",
        "reservation/plugin/tests/pods.rs",
        &["the_place_of_an_owner_within_its_reservation_is_taken_over_by_owners_alone"],
    ),
    ("42", "reservation/plugin/tests.rs", &["a_pod_that_ignores_reservations_uses_what_they_keep"]),
    ("43 named", "reservation/wish.rs", &["a_name_is_all_that_counts"]),
    ("43 tolerated", "reservation/plugin/tests.rs", &["a_pod_with_an_affinity_uses_a_reservation_or_waits"]),
    ("44", "reservation/info.rs", &["an_order_of_zero_or_no_number_is_none"]),
    ("44 preferred", "reservation/scores.rs", &["the_node_of_the_smallest_order_overshadows_all_others"]),
    ("45", "reservation/scores.rs", &["a_reservation_is_scored_by_how_full_it_becomes"]),
    ("46", "reservation/plugin/tests.rs", &["an_annotation_that_is_left_of_a_failed_binding_is_removed"]),
    ("47", "reservation/reserve_pod.rs", &["an_available_reservation_keeps_what_its_status_says"]),
    ("48", "reservation/plugin/tests/pods.rs", &["a_pod_that_keeps_what_it_has_serves_one_owner_while_it_is_ready"]),
    ("49 single", "reservation/pre_allocation.rs", &["one_pod_must_free_enough_and_be_no_larger_than_the_reservation"]),
    (
        "49 many, optional",
        "reservation/pre_allocation.rs",
        &["several_pods_are_taken_until_there_is_enough", "a_reservation_that_may_do_without_pods_does_where_it_can"],
    ),
    (
        "49 cluster",
        "reservation/plugin/tests/pods.rs",
        &["marked_pods_of_the_whole_cluster_are_taken_over_by_their_priority"],
    ),
    // Nothing is restored ahead of time here: what is kept for a pod is hidden before any plugin looks.
    ("50, 51", "reservation/plugin/tests.rs", &["the_port_that_is_kept_for_an_owner_is_free_for_it"]),
    ("52", "reservation/ask.rs", &["extended_resources_are_not_kept_by_name_or_by_the_first_part_of_it"]),
    (
        "53",
        "reservation/lifecycle.rs",
        &[
            "what_is_over_is_deleted_after_a_while_or_with_its_node",
            "a_reservation_expires_by_its_time_or_with_its_node",
        ],
    ),
    // DeviceShare.
    ("81", "device_share/combination.rs", &["what_does_not_go_together_is_named"]),
    ("82", "device_share/plugin/tests.rs", &["nodes_without_a_report_are_left_to_what_they_offer"]),
    ("83", "device_share/node.rs", &["an_unhealthy_device_and_one_that_is_not_reported_have_nothing_free"]),
    ("83 partitions", "device_share/partition.rs", &["partitions_must_be_fast_enough_and_healthy"]),
    ("83 scopes", "device_share/scope.rs", &["unhealthy_gpus_count_for_scopes_and_are_not_taken"]),
    ("84", "device_share/node.rs", &["memory_and_its_percentage_are_completed_from_each_other"]),
    ("85", "device_share/scope.rs", &["shares_of_several_gpus_are_of_different_ones_and_need_no_scope"]),
    (
        "86",
        "device_share/partition.rs",
        &["models_that_are_known_need_no_table", "without_honor_a_table_is_a_preference"],
    ),
    ("87", "device_share/partition.rs", &["gpus_are_taken_so_that_large_partitions_stay_whole"]),
    ("88", "device_share/scope.rs", &["deeper_scopes_win_over_used_ones", "a_required_scope_is_not_left"]),
    ("89", "device_share/allocate/tests.rs", &["network_cards_are_those_of_the_switches_of_the_gpus"]),
    (
        "90",
        "device_share/by_default.rs",
        &["all_devices_are_all_that_are_selected", "other_devices_are_taken_by_share_and_by_number"],
    ),
    ("91", "device_share/by_default.rs", &["the_free_virtual_function_of_the_lowest_address_is_taken"]),
    ("92", "device_share/plugin/tests/bound.rs", &["pods_have_devices_while_they_have_a_node"]),
    ("93", "device_share/numa.rs", &["numa_nodes_with_enough_devices_are_named_and_the_fewest_preferred"]),
    (
        "94",
        "reservation/plugin/tests/parts.rs",
        &[
            "restricted_owners_find_devices_in_the_reservation_alone",
            "owners_take_the_devices_of_their_reservation_and_no_two_the_same",
        ],
    ),
    ("94 in sum", "device_share/plugin/tests.rs", &["what_is_free_in_sum_is_not_free_on_one_device"]),
    (
        "95",
        "device_share/device_plugin.rs",
        &["a_node_is_locked_for_one_pod_at_a_time", "what_a_device_plugin_cannot_divide_is_refused"],
    ),
    // Topology manager.
    ("96", "numa/manager/tests.rs", &["policies_admit_what_all_resources_prefer"]),
    ("97", "numa/manager/tests.rs", &["a_preferred_set_comes_before_a_narrower_one_that_is_not"]),
    ("98", "numa/manager/tests.rs", &["a_plugin_without_hints_has_no_preference"]),
];

#[test]
fn every_case_has_its_test() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (case, file, tests) in CASES {
        let text = fs::read_to_string(source.join(file)).unwrap_or_else(|error| panic!("{case}: {file}: {error}"));
        for test in *tests {
            assert!(
                text.contains(&format!("#[test]\n    fn {test}()")) || text.contains(&format!("#[test]\nfn {test}()")),
                "{case}: {file} has no test {test}"
            );
        }
    }
    let numbers =
        CASES.iter().flat_map(|(case, ..)| case.split([',', ' '])).filter_map(|word| word.parse::<u32>().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (10..=53).chain(81..=98).collect::<Vec<_>>());
}
