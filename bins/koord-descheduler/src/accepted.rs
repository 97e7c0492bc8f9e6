//! Flags of the original and of kubernetes-sigs/descheduler that have no effect: taken, so that existing Deployments keep working, where nothing that a user relies on is
//! lost without them.

use koord_program::flags::accepted::AcceptedFlags;

pub(crate) const ACCEPTED: &[AcceptedFlags] = &[
    AcceptedFlags::CERTIFICATES,
    AcceptedFlags::SHARED_PORTS,
    AcceptedFlags::HIDDEN_METRICS,
    AcceptedFlags::LOGS,
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
