//! The alerts: data. What they ask for must be in the table of metrics; a test holds their expressions against it.

/// How soon someone on call has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Now.
    Critical,
    /// Today.
    Warning,
}

impl Severity {
    /// The value of the label `severity`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// One alert.
#[derive(Clone, Copy, Debug)]
pub struct Alert {
    pub name: &'static str,
    /// When it fires.
    pub expression: &'static str,
    /// For how long that must be so.
    pub lasting: &'static str,
    /// How soon someone on call has to look.
    pub severity: Severity,
    /// One line for the pager, with the labels of the series.
    pub summary: &'static str,
    /// What it means for users of the cluster.
    pub meaning: &'static str,
    /// What to do, step by step.
    pub runbook: &'static str,
}

/// Every alert, the most urgent first. Metrics that every controller has are joined with `koord_manager_build_info`, so
/// that other programs in the same Prometheus do not fire them.
pub const ALERTS: &[Alert] = &[
    Alert {
        name: "KoordManagerDown",
        expression: "absent(koord_manager_build_info)",
        lasting: "5m",
        severity: Severity::Critical,
        summary: "no koord-manager is scraped",
        meaning: "Pods cannot be created where the webhooks' failurePolicy is Fail; nodes keep the batch resources that they had.",
        runbook: "`kubectl -n koordinator-system get pods -l koord-app=koord-manager`; if they run, look at the ServiceMonitor; if not, at `kubectl describe` and the log of the last container.",
    },
    Alert {
        name: "KoordManagerNoLeader",
        expression: r#"max(leader_election_master_status{name="koordinator-manager"}) == 0"#,
        lasting: "2m",
        severity: Severity::Critical,
        summary: "no replica of koord-manager leads",
        meaning: "Webhooks answer, but no controller writes: batch resources, NodeSLOs and NodeMetrics stay as they are.",
        runbook: "`kubectl -n koordinator-system get lease koordinator-manager -o yaml` says who holds it since when; `koordctl doctor` says whether it may be written; a holder that is no replica any more is overtaken after 15 seconds.",
    },
    Alert {
        name: "KoordWebhookNotReady",
        expression: "koord_webhook_ready == 0",
        lasting: "5m",
        severity: Severity::Critical,
        summary: "the webhook configurations do not trust {{ $labels.instance }}",
        meaning: "The replica gets no reviews; when all are so, pods cannot be created.",
        runbook: "`/readyz` on port 8000 of the pod names what is missing: a webhook configuration, permission to change it, or a certificate.",
    },
    Alert {
        name: "KoordCertificateNearExpiry",
        expression: "min by (certificate) (koord_webhook_certificate_expiry_timestamp_seconds) - time() < 7 * 86400",
        lasting: "1h",
        severity: Severity::Critical,
        summary: "the {{ $labels.certificate }} certificate of the webhooks ends in {{ $value | humanizeDuration }}",
        meaning: "When it has ended, API servers refuse to call the webhooks.",
        runbook: "The manager renews months before the end, so something hinders it: look for `writing certificates` and errors in its log, and let `koordctl doctor` check the Secret and the permissions. Deleting the Secret makes the manager write what it serves again.",
    },
    Alert {
        name: "KoordWebhookFailing",
        expression: r#"sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{code!="200"}[5m]) * on (job, instance) group_left () koord_manager_build_info) > 0"#,
        lasting: "10m",
        severity: Severity::Warning,
        summary: "{{ $labels.webhook }} answers with {{ $labels.code }}",
        meaning: "Requests to the API server fail or, with failurePolicy Ignore, pass unchecked.",
        runbook: "413: a client writes objects over 8 MiB; 400: what calls is no API server, or the body broke off on the way; look at the network between API server and pod.",
    },
    Alert {
        name: "KoordWebhookBrokenOff",
        expression: "sum by (path) (increase(koord_manager_webhook_panics_total[10m])) > 0",
        lasting: "0m",
        severity: Severity::Warning,
        summary: "decisions of {{ $labels.path }} broke off",
        meaning: "The requests were answered with 500. Other requests are not affected.",
        runbook: "A defect: the log line `a webhook handler broke off` has the uid and the cause; report it with the object.",
    },
    Alert {
        name: "KoordWebhookSlow",
        expression: "histogram_quantile(0.99, sum by (le, webhook) (rate(controller_runtime_webhook_latency_seconds_bucket[5m]) * on (job, instance) group_left () koord_manager_build_info)) > 1",
        lasting: "10m",
        severity: Severity::Warning,
        summary: "{{ $labels.webhook }} takes {{ $value | humanizeDuration }} for one request in a hundred",
        meaning: "Creating objects is slow; above the webhook's timeout it fails.",
        runbook: "Decisions take microseconds. `koord_manager_webhook_webhook_duration_milliseconds` shows whether decisions wait for objects that the caches do not show; otherwise give the pod more CPU, or look at the network.",
    },
    Alert {
        name: "KoordControllerErrors",
        expression: "sum by (controller) (rate(controller_runtime_reconcile_errors_total[10m]) * on (job, instance) group_left () koord_manager_build_info) / sum by (controller) (rate(controller_runtime_reconcile_total[10m]) * on (job, instance) group_left () koord_manager_build_info) > 0.1",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value | humanizePercentage }} of what {{ $labels.controller }} does fails",
        meaning: "Some objects do not get what the controller would write; all others do.",
        runbook: "`koord_reconcile_faults_total` says whose fault it is; the log line `reconcile failed` names object and reason; `koordctl doctor` checks permissions.",
    },
    Alert {
        name: "KoordControllerBroken",
        expression: "sum by (controller) (increase(controller_runtime_reconcile_panics_total[10m]) * on (job, instance) group_left () koord_manager_build_info) > 0",
        lasting: "0m",
        severity: Severity::Warning,
        summary: "decisions of {{ $labels.controller }} broke off",
        meaning: "The object in question is tried again with growing delay; others are not affected.",
        runbook: "A defect: report it with the log line that names the object.",
    },
    Alert {
        name: "KoordControllerBehind",
        expression: "max by (controller) (workqueue_depth * on (job, instance) group_left () koord_manager_build_info) > 1000",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value }} keys wait for {{ $labels.controller }}",
        meaning: "What the controller writes is minutes old.",
        runbook: "`rest_client_rate_limiter_duration_seconds` high: raise --rest-config-qps and --rest-config-burst. `rest_client_request_duration_seconds` high: the API server is slow. Neither: look for errors of the controller.",
    },
    Alert {
        name: "KoordControllerHangs",
        expression: "max by (controller) (workqueue_longest_running_processor_seconds * on (job, instance) group_left () koord_manager_build_info) > 300",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "{{ $labels.controller }} works on one key since {{ $value | humanizeDuration }}",
        meaning: "Every write ends after 30 seconds, so a worker hangs.",
        runbook: "Keep the log, restart the pod, and report it.",
    },
    Alert {
        name: "KoordObjectsUnreadable",
        expression: "max by (kind) (koord_cache_quarantined_objects) > 0",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "{{ $value }} objects of kind {{ $labels.kind }} cannot be read",
        meaning: "They are set aside: what was known of them last counts, they are not written, and all others go on.",
        runbook: "`koordctl doctor` lists them; the event `DecodeError` on each says what is wrong with it.",
    },
    Alert {
        name: "KoordNodesWithoutFreshMetrics",
        expression: r#"max(koord_nodes_without_fresh_metrics) / max(koord_cache_objects{kind="Node"}) > 0.05"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "{{ $value | humanizePercentage }} of the nodes report no usage",
        meaning: "These nodes offer nothing to batch and mid pods, and pods that are there may be evicted.",
        runbook: "`kubectl get nodemetrics` shows which are old; see that koordlet runs there and may write NodeMetrics; `koordctl explain batch NODE` names the last report and the limit `degradeTimeMinutes`.",
    },
    Alert {
        name: "KoordConfigKeyInvalid",
        expression: "max by (key) (koord_config_key_invalid) > 0",
        lasting: "1m",
        severity: Severity::Warning,
        summary: "{{ $labels.key }} of slo-controller-config cannot be taken",
        meaning: "Its last good value stays in force; other keys are taken.",
        runbook: "`kubectl -n koordinator-system describe configmap slo-controller-config` shows the event; `kubectl get configmap -n koordinator-system slo-controller-config -o yaml | koordctl lint -f -` shows line and remedy. Switch the gate ConfigMapValidatingWebhook on, and such edits are refused.",
    },
    Alert {
        name: "KoordNodeWritesFail",
        expression: r#"sum by (reason) (rate(slo_controller_node_resource_reconcile_count{status="failed"}[10m])) > 0.1"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "writes of nodes fail: {{ $labels.reason }}",
        meaning: "Some nodes keep amounts that are no longer true.",
        runbook: "The log line `reconcile failed` has the API server's answer; conflicts in numbers mean that another program writes the same fields: `kubectl get node NODE -o yaml --show-managed-fields` names it.",
    },
    Alert {
        name: "KoordApiRequestsFail",
        expression: r#"sum by (code) (rate(rest_client_requests_total{code=~"401|403|429|5..|<error>"}[10m]) * on (job, instance) group_left () koord_manager_build_info) > 0.1"#,
        lasting: "15m",
        severity: Severity::Warning,
        summary: "requests to the API server end with {{ $labels.code }}",
        meaning: "Watches and writes are delayed.",
        runbook: "401 and 403: `koordctl doctor` names the missing permission. 429 and 5xx: the API server is overloaded. `<error>`: it cannot be reached from the pod.",
    },
];
