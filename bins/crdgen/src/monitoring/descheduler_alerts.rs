//! The alerts of koord-descheduler. Metrics that every program has are joined with `koord_descheduler_build_info`.

use super::alerts::{Alert, Severity};

/// Every alert, the most urgent first. None is critical: without a descheduler pods stay where they are.
pub const DESCHEDULER_ALERTS: &[Alert] = &[
    Alert {
        name: "KoordDeschedulerDown",
        expression: "absent(koord_descheduler_build_info)",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "no koord-descheduler is scraped",
        meaning: "No pod is evicted, and PodMigrationJobs make no progress; pods that run go on.",
        runbook: "`kubectl -n koordinator-system get pods -l koord-app=koord-descheduler`; if they run, look at the PodMonitor; if not, at `kubectl describe` and the log of the last container.",
    },
    Alert {
        name: "KoordDeschedulerNoLeader",
        expression: "max(leader_election_master_status * on (job, instance) group_left () koord_descheduler_build_info) == 0",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "no replica of koord-descheduler leads",
        meaning: "No pod is evicted, and PodMigrationJobs make no progress; pods that run go on.",
        runbook: "`kubectl -n koordinator-system get lease koord-descheduler -o yaml` has the holder and the time of its last renewal; another replica replaces a holder that is gone after 15 seconds. The log has the error of a replica that cannot lead, such as a missing permission.",
    },
    Alert {
        name: "KoordDeschedulerEvictionsFail",
        expression: r#"sum by (strategy) (rate(descheduler_pods_evicted{result="error"}[30m])) / sum by (strategy) (rate(descheduler_pods_evicted[30m])) > 0.5"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value | humanizePercentage }} of the evictions of strategy {{ $labels.strategy }} fail",
        meaning: "Pods stay on nodes that they are to leave.",
        runbook: "The event EvictionFailed of the pods (`kubectl get events -A --field-selector reason=EvictionFailed`) and the condition `Eviction` of the PodMigrationJobs have the API server's answer: a PodDisruptionBudget that allows no disruption, or a missing permission. Jobs that users create have no strategy.",
    },
    Alert {
        name: "KoordDeschedulerStrategyFails",
        expression: "sum by (profile, strategy) (increase(koord_descheduler_strategy_errors_total[30m])) > 0",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "the strategy {{ $labels.strategy }} of profile {{ $labels.profile }} fails",
        meaning: "This strategy evicts nothing; the others go on.",
        runbook: "The log line `the strategy failed` has the reason. Compare the arguments of the strategy with docs/reference/descheduler-configuration.md.",
    },
    Alert {
        name: "KoordDeschedulerConfigurationNotInEffect",
        expression: "min by (instance) (koord_descheduler_configuration_current) == 0",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "the configuration file of {{ $labels.instance }} is not in effect",
        meaning: "The configuration that was running before the file changed goes on.",
        runbook: "The events ConfigurationRefused and ConfigurationNeedsRestart (`kubectl -n koordinator-system get events --field-selector reason=ConfigurationRefused`) and the log name the field and the remedy. `kubectl -n koordinator-system rollout restart deployment koord-descheduler` takes fields that only change when the program starts.",
    },
    Alert {
        name: "KoordDeschedulerPassesSlow",
        expression: "sum(rate(koord_descheduler_pass_duration_seconds_sum[30m])) / sum(rate(koord_descheduler_pass_duration_seconds_count[30m])) > 60",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "a pass of koord-descheduler takes {{ $value | humanizeDuration }}",
        meaning: "Passes are further apart than `deschedulingInterval`, and decide by what the cluster was when they began.",
        runbook: "`process_cpu_seconds_total` near the limit of the container: give it more CPU. `koord_descheduler_last_pass_steps` high: lower `maxNoOfPodsToEvictTotal`. Neither: leave out strategies one by one; `koordctl deschedule plan` computes the same pass elsewhere.",
    },
    Alert {
        name: "KoordDeschedulerBroken",
        expression: "sum by (task) (increase(koord_panics_total[10m]) * on (job, instance) group_left () koord_descheduler_build_info) > 0",
        lasting: "0m",
        severity: Severity::Warning,
        summary: "the task {{ $labels.task }} of koord-descheduler panicked",
        meaning: "It starts again with what the caches hold; a pass that was under way is lost.",
        runbook: "A defect: report it with the log line `a panic was caught`.",
    },
    Alert {
        name: "KoordDeschedulerApiRequestsFail",
        // Without 429, which is the answer of a PodDisruptionBudget that allows no disruption.
        expression: r#"sum by (code) (rate(rest_client_requests_total{code=~"401|403|5..|<error>"}[10m]) * on (job, instance) group_left () koord_descheduler_build_info) > 0.1"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "requests of koord-descheduler end with {{ $labels.code }}",
        meaning: "Evictions, PodMigrationJobs and watches are delayed.",
        runbook: "401 and 403: compare the roles with config/descheduler/role.yaml. 5xx: the API server is overloaded. `<error>`: it cannot be reached from the pod.",
    },
];
