//! The alerts of koord-scheduler. Metrics that every program has are joined with `koord_scheduler_build_info`.

use super::alerts::{Alert, Severity};

/// Every alert, the most urgent first.
pub const SCHEDULER_ALERTS: &[Alert] = &[
    Alert {
        name: "KoordSchedulerDown",
        expression: "absent(koord_scheduler_build_info)",
        lasting: "5m",
        severity: Severity::Critical,
        summary: "no koord-scheduler is scraped",
        meaning: "New pods get no node; pods that run go on.",
        runbook: "`kubectl -n koordinator-system get pods -l koord-app=koord-scheduler`; if they run, look at the PodMonitor; if not, at `kubectl describe` and the log of the last container.",
    },
    Alert {
        name: "KoordSchedulerNoLeader",
        expression: "max(leader_election_master_status * on (job, instance) group_left () koord_scheduler_build_info) == 0",
        lasting: "2m",
        severity: Severity::Critical,
        summary: "no replica of koord-scheduler leads",
        meaning: "New pods get no node; pods that run go on.",
        runbook: "`kubectl -n koordinator-system get lease koord-scheduler -o yaml` says who holds it since when; a holder that is no replica any more is overtaken after 15 seconds. The log says what hinders a replica, such as a missing permission.",
    },
    Alert {
        name: "KoordSchedulerCannotWatch",
        expression: "max by (kind) (koord_watch_age_seconds * on (job, instance) group_left () koord_scheduler_build_info) > 300",
        lasting: "5m",
        severity: Severity::Critical,
        summary: "{{ $labels.kind }} has not been heard of for {{ $value | humanizeDuration }}",
        meaning: "Pods are placed by what was known before, or wait.",
        runbook: "`/readyz` on port 10251 of the pod names the obstacle: an API server that cannot be reached, or a missing permission.",
    },
    Alert {
        name: "KoordSchedulerAttemptsFail",
        expression: r#"sum by (profile) (rate(scheduler_schedule_attempts_total{result="error"}[10m])) / sum by (profile) (rate(scheduler_schedule_attempts_total[10m])) > 0.1"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value | humanizePercentage }} of the attempts of profile {{ $labels.profile }} fail",
        meaning: "Pods wait though there is room for them.",
        runbook: "The event FailedScheduling of the pods has the API server's answer: a refused binding, a volume that is not provided, or a missing permission.",
    },
    Alert {
        name: "KoordSchedulerBehind",
        expression: r#"max(scheduler_pending_pods{queue="active"}) > 1000"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value }} pods wait for their first attempt",
        meaning: "Pods get their nodes minutes late.",
        runbook: "`rest_client_rate_limiter_duration_seconds` high: raise clientConnection.qps and burst. `scheduler_scheduling_algorithm_duration_seconds` high: give the process more CPU. Neither: the API server is slow to bind.",
    },
    Alert {
        name: "KoordSchedulerSlow",
        expression: r#"histogram_quantile(0.99, sum by (le, profile) (rate(scheduler_scheduling_attempt_duration_seconds_bucket{result="scheduled"}[10m]))) > 5"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "one pod in a hundred of profile {{ $labels.profile }} takes {{ $value | humanizeDuration }} from its last attempt to its binding",
        meaning: "Pods start late.",
        runbook: "Compare with `scheduler_permit_wait_duration_seconds` (gangs wait for their members) and `rest_client_request_duration_seconds` (the API server is slow); volumes that are provided late count too.",
    },
    Alert {
        name: "KoordSchedulerBroken",
        expression: "sum by (task) (increase(koord_panics_total[10m]) * on (job, instance) group_left () koord_scheduler_build_info) > 0",
        lasting: "0m",
        severity: Severity::Warning,
        summary: "the task {{ $labels.task }} of koord-scheduler broke off",
        meaning: "It starts again with what the caches hold; pods wait for that long.",
        runbook: "A defect: report it with the log line `a panic was caught`.",
    },
    Alert {
        name: "KoordSchedulerApiRequestsFail",
        expression: r#"sum by (code) (rate(rest_client_requests_total{code=~"401|403|429|5..|<error>"}[10m]) * on (job, instance) group_left () koord_scheduler_build_info) > 0.1"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "requests of koord-scheduler end with {{ $labels.code }}",
        meaning: "Bindings and watches are delayed.",
        runbook: "401 and 403: compare the roles with config/scheduler/role.yaml. 429 and 5xx: the API server is overloaded. `<error>`: it cannot be reached from the pod.",
    },
];
