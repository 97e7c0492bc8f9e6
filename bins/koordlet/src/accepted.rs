//! Flags of the original that have no effect: taken, so that existing DaemonSets keep working, where nothing that a user relies on is lost without them.

use koord_program::flags::accepted::AcceptedFlags;

pub(crate) const ACCEPTED: &[AcceptedFlags] = &[
    AcceptedFlags {
        values: "configmap-name configmap-namespace",
        switches: "",
        anyway: &["koordlet-config", "koordinator-system"],
        why: "no ConfigMap configures the agent: the NodeSLO of its node does",
    },
    AcceptedFlags {
        values: "report-interval",
        switches: "",
        anyway: &[""],
        why: "the NodeMetric of the node says how often it is reported",
    },
    AcceptedFlags {
        values: "tsdb-path tsdb-retention-duration tsdb-stripe-size tsdb-max-bytes tsdb-wal-segment-size \
                 tsdb-max-block-chunk-segment-size tsdb-min-block-duration tsdb-max-block-duration \
                 tsdb-head-chunks-write-buffer-size metric-gc-interval-seconds metric-expire-seconds",
        switches: "tsdb-enable-prometheus-metric",
        anyway: &["true", "false"],
        why: "samples are kept in memory, as long as reports and strategies need them",
    },
    AcceptedFlags {
        values: "qos-extension-plugins pprof-addr",
        switches: "enable-pprof",
        anyway: &["", "false", ":9317"],
        why: "the agent has neither plugins of strategies nor profiles of Go",
    },
];
