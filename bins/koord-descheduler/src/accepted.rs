//! Flags of the original and of kubernetes-sigs/descheduler that have no effect: taken, so that existing Deployments keep working, where nothing that a user relies on is
//! lost without them.

use koord_program::flags::accepted::AcceptedFlags;

pub(crate) const ACCEPTED: &[AcceptedFlags] = &[
    AcceptedFlags {
        values: "cert-dir",
        switches: "",
        anyway: &[""],
        why: "a certificate that the program makes is kept in memory alone",
    },
    AcceptedFlags {
        values: "",
        switches: "permit-address-sharing permit-port-sharing",
        anyway: &["false"],
        why: "a port that another program has is never shared",
    },
    AcceptedFlags {
        values: "show-hidden-metrics-for-version",
        switches: "",
        anyway: &[""],
        why: "no metric is hidden",
    },
    AcceptedFlags {
        values: "log-flush-frequency log-json-info-buffer-size log-text-info-buffer-size logging-format",
        switches: "log-json-split-stream log-text-split-stream",
        anyway: &["", "false", "0", "text", "5s"],
        why: "logs are lines of text that are written at once",
    },
    AcceptedFlags {
        values: "",
        switches: "disable-metrics",
        anyway: &["false"],
        why: "metrics are always counted; metricsBindAddress with port 0 and --secure-port=0 serve none",
    },
    AcceptedFlags { values: "", switches: "enable-http2", anyway: &["true"], why: "HTTP/2 is always served" },
    AcceptedFlags {
        values: "otel-collector-endpoint otel-sample-rate otel-service-name otel-trace-namespace otel-transport-ca-cert",
        switches: "otel-fallback-no-op-on-error",
        anyway: &["", "false"],
        why: "traces are sent to --otlp-endpoint, by HTTP",
    },
];
