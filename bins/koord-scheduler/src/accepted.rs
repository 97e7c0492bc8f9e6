//! Flags of the original that have no effect: taken, so that existing Deployments keep working, where nothing that a user relies on is
//! lost without them. `docs/scheduler.md` has all of them.

use koord_program::flags::accepted::AcceptedFlags;

pub(crate) const ACCEPTED: &[AcceptedFlags] = &[
    AcceptedFlags::CERTIFICATES,
    AcceptedFlags::SHARED_PORTS,
    AcceptedFlags {
        values: "authentication-kubeconfig authorization-kubeconfig",
        switches: "",
        anyway: &[""],
        why: "who may read what at the secure port is asked of the API server that pods are bound at",
    },
    AcceptedFlags {
        values: "",
        switches: "authentication-skip-lookup authentication-tolerate-lookup-failure",
        anyway: &["true"],
        why: "authorities of client certificates are those of the flags alone; nothing is looked up in the cluster",
    },
    AcceptedFlags {
        values: "kube-api-content-type",
        switches: "",
        anyway: &["application/json"],
        why: "requests are JSON",
    },
    AcceptedFlags {
        values: "emulated-version min-compatibility-version",
        switches: "emulation-forward-compatible",
        anyway: &["", "false"],
        why: "no earlier version is emulated: what the program does follows from its own version, its gates and what the API server serves",
    },
    AcceptedFlags::HIDDEN_METRICS,
    AcceptedFlags::LOGS,
    AcceptedFlags {
        values: "async-log-queue-length",
        switches: "async-log",
        anyway: &["", "false", "0"],
        why: AcceptedFlags::LOGS.why,
    },
    AcceptedFlags {
        values: "",
        switches: "contention-profiling",
        anyway: &["false", "true"],
        why: "profiles are taken from outside",
    },
    AcceptedFlags {
        values: "debug-diagnosis-queue-size debug-diagnosis-worker-count",
        switches: "debug-diagnosis|d debug-diagnosis-blocking",
        anyway: &["false"],
        why: "diagnoses are kept, not logged: koordctl why POD --history shows them",
    },
    AcceptedFlags {
        values: "scheduling-drop-unhandled-timeout",
        switches: "",
        anyway: &[],
        why: "nothing that is monitored is dropped",
    },
    AcceptedFlags {
        values: "",
        switches: "enable-network-topology-manager",
        anyway: &["true"],
        why: "the network counts where awareNetworkTopology of Coscheduling says so",
    },
];
