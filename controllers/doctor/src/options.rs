//! What is looked at, and how.

use clap::ValueEnum;
use jiff::Timestamp;
use koord_program::{connect::ClusterFlags, output::OutputFormat};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// The API server: its version and its clock
    Server,
    /// Custom resource definitions: there, served, with our structure
    Definitions,
    /// Webhook configurations: what they call, and which namespaces they catch
    Webhooks,
    /// The webhooks' certificate: until when, for which name, trusted by the API server
    Certificates,
    /// What koord-manager may do, by access reviews
    Permissions,
    /// The leader's lease
    Lease,
    /// The ConfigMap slo-controller-config, by the webhooks' own rules
    Configuration,
    /// Objects that koord-manager sets aside: unreadable ones, nonsense on nodes, contradictory quotas
    Objects,
    /// Reports of koordlet
    Nodes,
    /// Devices and CPUs of pods: there, healthy, and allocated once
    Allocations,
    /// Deschedulers: one that evicts, and not from nodes on which koord-scheduler places pods
    Descheduler,
}

impl Check {
    /// Every check, in the order in which they are made.
    pub const ALL: [Self; 11] = [
        Self::Server,
        Self::Definitions,
        Self::Webhooks,
        Self::Certificates,
        Self::Permissions,
        Self::Lease,
        Self::Configuration,
        Self::Objects,
        Self::Nodes,
        Self::Allocations,
        Self::Descheduler,
    ];

    /// As the flags `--only` and `--skip` name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Definitions => "definitions",
            Self::Webhooks => "webhooks",
            Self::Certificates => "certificates",
            Self::Permissions => "permissions",
            Self::Lease => "lease",
            Self::Configuration => "configuration",
            Self::Objects => "objects",
            Self::Nodes => "nodes",
            Self::Allocations => "allocations",
            Self::Descheduler => "descheduler",
        }
    }
}

/// What is looked at, of which koord-manager, and how the answer is written.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The only checks that are made; all where it is empty.
    pub only: &'a [Check],
    /// Checks that are not made.
    pub skip: &'a [Check],
    /// Namespace that koord-manager is installed in.
    pub namespace: &'a str,
    /// ServiceAccount that koord-manager runs as.
    pub service_account: &'a str,
    /// Feature gates that koord-manager runs with.
    pub feature_gates: &'a str,
    /// Namespace of slo-controller-config.
    pub config_namespace: &'a str,
    /// Name of slo-controller-config.
    pub slo_config_name: &'a str,
    /// Host and port at which the webhooks' Service can be reached from here.
    pub webhook_at: Option<&'a str>,
    /// The time by which certificates and this machine's clock are judged; `None` for now.
    pub at: Option<Timestamp>,
    pub cluster: ClusterFlags<'a>,
    pub output: OutputFormat,
}
