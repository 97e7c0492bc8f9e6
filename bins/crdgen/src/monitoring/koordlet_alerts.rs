//! The alerts of koordlet.

use super::alerts::{Alert, Severity};

/// Every alert, the most urgent first. None is critical: without an agent limits stay as they are, and batch resources go away by themselves.
pub const KOORDLET_ALERTS: &[Alert] = &[
    Alert {
        name: "KoordletDown",
        expression: "absent(koord_koordlet_build_info)",
        lasting: "15m",
        severity: Severity::Warning,
        summary: "no koordlet is scraped",
        meaning: "Reports of usage grow old, nodes lose their batch resources, and no strategy is enforced; limits that are in the kernel stay.",
        runbook: "`kubectl -n koordinator-system get pods -l koord-app=koordlet -o wide`; if they run, look at the PodMonitor or ServiceMonitor; if not, at `kubectl describe` and the log of the last container.",
    },
    Alert {
        name: "KoordletCannotReport",
        expression: r#"max by (node, feature) (koord_koordlet_capability{state="degraded", feature=~"kubelet|NodeMetric|NodeSLO|node|pods"}) == 1"#,
        lasting: "10m",
        severity: Severity::Warning,
        summary: "{{ $labels.feature }} does not work on node {{ $labels.node }}",
        meaning: "The node's usage is not reported, or strategies work by what was known before; a node without reports loses its batch resources.",
        runbook: "The log of the agent on that node has the line `a feature does not work here` with the reason and a remedy. docs/koordlet.md lists what degrades each feature.",
    },
    Alert {
        name: "KoordletCannotEnforce",
        expression: r#"max by (node, feature) (koord_koordlet_capability{state="degraded", feature=~"CPUSuppress|CPUEvict|memoryEvict|RuntimeHooks|NRI"}) == 1"#,
        lasting: "30m",
        severity: Severity::Warning,
        summary: "{{ $labels.feature }} works only in part on node {{ $labels.node }}",
        meaning: "Best-effort pods may take more than they should, or containers start without what their pods ask for until the reconciler has looked at them.",
        runbook: "The log of the agent on that node has the line `a feature does not work here` with the reason and a remedy: a file that the kernel lacks, a setting out of range, a runtime without NRI.",
    },
    Alert {
        name: "KoordletEvictsManyPods",
        expression: "sum by (node, reason) (increase(koordlet_pod_eviction[1h])) > 20",
        lasting: "5m",
        severity: Severity::Warning,
        summary: "koordlet has evicted {{ $value }} pods of node {{ $labels.node }} within an hour: {{ $labels.reason }}",
        meaning: "Batch pods are placed on the node and evicted again: their work is lost.",
        runbook: "The events of the pods have the setting and the formula with its numbers (`kubectl get events -A --field-selector reason=evictPodSuccess`). Lower the batch resources of such nodes in colocation-config, or raise the thresholds of the NodeSLO; `koordctl explain batch NODE` shows how much the node is said to have.",
    },
];
