//! Koordinator's kinds and its extension protocol: types and pure functions.
//!
//! A kind is an annotated type; its definition, its rules and its admission handlers follow from it. The protocol is what labels
//! and annotations of nodes and pods say, and the keys of slo-controller-config. The crate knows no servers, clients or clocks.
//!
//! Read first: [`reservation::Reservation`] (a kind), [`KINDS`] (all of them), [`protocol::Key`] (a label or an annotation),
//! [`slo_config`] (the configuration of nodes).
//!
//! # Where to begin
//!
//! Koordinator is made with the library whose crates [`koord`](../koord/index.html) lists. Its own crates, each made of those
//! above it:
//!
//! | crate | what it is |
//! |---|---|
//! | [`koord_quota`](../koord_quota/index.html) | the tree of quotas: its rules, its snapshot and the runtime quota |
//! | [`koord_config`](../koord_config/index.html) | the configurations of scheduler and descheduler as declared types |
//! | [`koord_profile`](../koord_profile/index.html) | which profiles apply to a pod, and what they change |
//! | [`koord_manager_controllers`](../koord_manager_controllers/index.html) | the controllers of koord-manager |
//! | [`koord_webhook_handlers`](../koord_webhook_handlers/index.html) | the admission handlers of koord-manager |
//! | [`koord_manager_assembly`](../koord_manager_assembly/index.html) | koord-manager put together: flags, gates, controllers, permissions |
//! | [`koord_explain`](../koord_explain/index.html) | how what koord-manager writes comes about |
//! | [`koord_lint`](../koord_lint/index.html) | what API server and webhooks would say of files |
//! | [`koord_doctor`](../koord_doctor/index.html) | what is wrong with Koordinator in a cluster, and what fixes it |
//! | [`koord_scheduler_framework`](../koord_scheduler_framework/index.html) | what a plugin is, the state of a cluster, and the search for a node |
//! | [`koord_scheduler_engine`](../koord_scheduler_engine/index.html) | the queue of pods, and what is done with one, from the queue to the binding |
//! | [`koord_scheduler_allocation`](../koord_scheduler_allocation/index.html) | what of a node is allocated to which pods |
//! | [`koord_scheduler_plugins_kubernetes`](../koord_scheduler_plugins_kubernetes/index.html), [`koord_scheduler_plugins_koordinator`](../koord_scheduler_plugins_koordinator/index.html) | the plugins of the scheduler |
//! | [`koord_scheduler_assembly`](../koord_scheduler_assembly/index.html) | a scheduler put together of a configuration |
//! | [`koord_scheduler_what_if`](../koord_scheduler_what_if/index.html) | changes that are tried on a copy of the scheduling engine |
//! | [`koord_scheduler_bench`](../koord_scheduler_bench/index.html) | how fast pods are scheduled, by a scenario |
//! | [`koord_scheduler_coexist`](../koord_scheduler_coexist/index.html) | schedulers that run beside each other in a cluster |
//! | [`koord_scheduler_testing`](../koord_scheduler_testing/index.html) | nodes, pods and objects for the tests of plugins |
//! | [`koord_scheduler_runtime`](../koord_scheduler_runtime/index.html) | how caches become deltas for the engine, and what is written of its attempts |
//! | [`koord_scheduler_openb`](../koord_scheduler_openb/index.html) | the openb traces: nodes with GPUs, and the pods that came to them |
//! | [`koord_scheduler_simulator`](../koord_scheduler_simulator/index.html) | what a scheduler makes of a cluster in virtual time |
//! | [`koord_descheduler_framework`](../koord_descheduler_framework/index.html) | what a strategy of the descheduler is, and a pass of all of them |
//! | [`koord_descheduler_strategies_kubernetes`](../koord_descheduler_strategies_kubernetes/index.html), [`koord_descheduler_strategies_koordinator`](../koord_descheduler_strategies_koordinator/index.html) | the strategies of the descheduler |
//! | [`koord_descheduler_migration`](../koord_descheduler_migration/index.html) | MigrationController, and how a PodMigrationJob comes to its end |
//! | [`koord_descheduler_planning`](../koord_descheduler_planning/index.html) | which nodes the successors of evicted pods would get |
//! | [`koord_descheduler_runtime`](../koord_descheduler_runtime/index.html) | how caches become the descheduler's snapshot, and how its passes are carried out |
//! | [`koord_descheduler_assembly`](../koord_descheduler_assembly/index.html) | a descheduler put together of a configuration |
//! | [`koord_descheduler_testing`](../koord_descheduler_testing/index.html) | clusters for the tests of strategies |
//! | [`koord_koordlet_system`](../koord_koordlet_system/index.html) | the files of a node: cgroups, counters, topology, resctrl, parsed and written |
//! | [`koord_koordlet_framework`](../koord_koordlet_framework/index.html) | what strategies and hooks of the node agent share: pods, the node, and what they want of a file |
//! | [`koord_koordlet_metrics`](../koord_koordlet_metrics/index.html) | what is measured on a node, and what is predicted from it |
//! | [`koord_koordlet_qos`](../koord_koordlet_qos/index.html) | the QoS strategies of the node agent |
//! | [`koord_koordlet_hooks`](../koord_koordlet_hooks/index.html) | what containers get that Kubernetes does not give them |
//! | [`koord_koordlet_resolver`](../koord_koordlet_resolver/index.html) | one value for each file of a node, and the order in which files are written |
//! | [`koord_koordlet_devices`](../koord_koordlet_devices/index.html) | GPUs, RDMA network cards and other accelerators of a node |
//! | [`koord_koordlet_protocols`](../koord_koordlet_protocols/index.html) | the wire protocols of the node agent: NRI, hook server, pod-resources, CRI |
//! | [`koord_koordlet_reports`](../koord_koordlet_reports/index.html) | what the node agent reports: NodeMetric, NodeResourceTopology |
//! | [`koord_koordlet_state`](../koord_koordlet_state/index.html) | the documents by which the node agent shows its features, its inputs and its files |
//! | [`koord_koordlet_runtime`](../koord_koordlet_runtime/index.html) | the node agent, and what is around it: kubelet, API server, runtime, files, clock |
//! | [`koord_koordlet_testing`](../koord_koordlet_testing/index.html) | recorded cases of the node agent, played in virtual time |
//!
//! The programs, with little more than flags and wiring in them, and what is written with the library as other projects would:
//!
//! | crate | what it is |
//! |---|---|
//! | [`koord_manager`](../koord_manager/index.html) | controllers and webhooks |
//! | [`koord_scheduler`](../koord_scheduler/index.html) | the scheduler |
//! | [`koord_descheduler`](../koord_descheduler/index.html) | the descheduler |
//! | [`koordlet`](../koordlet/index.html) | the node agent |
//! | [`koordctl`](../koordctl/index.html) | the command line, and `koordctl up`: a small cluster in one process |
//! | [`koord_envtest`](../koord_envtest/index.html) | the embedded API server |
//! | [`crdgen`](../crdgen/index.html) | writes what follows from the declared kinds: definitions, roles, reference pages |
//! | [`greeter`](../greeter/index.html), [`postgres_operator`](../postgres_operator/index.html), [`cronjob`](../cronjob/index.html) | operators |
//! | [`scheduler_plugin`](../scheduler_plugin/index.html) | koord-scheduler with a plugin of its own |
//!
//! For tests and measurements:
//!
//! | crate | what it is |
//! |---|---|
//! | [`hollow`](../hollow/index.html) | nodes without machines, also for `koordctl up` |
//! | [`simulation`](../simulation/index.html) | Koordinator's programs in virtual time, from a seed |
//! | [`clusters`](../clusters/index.html) | random clusters, and laws of what a scheduler gives out in them |
//! | [`parity`](../parity/index.html) | recorded conversations with a real API server, and mutated requests |
//! | [`integration`](../integration/index.html) | what the integration suite stands on: kubectl, helm and a real kube-apiserver |
//! | [`programs`](../programs/index.html) | programs as processes of a test |
//! | [`allocations`](../allocations/index.html) | how often a test allocates memory |
//! | [`fake_nvml`](../fake_nvml/index.html) | NVIDIA's library for tests: a shared library with the functions that koordlet calls |
//! | [`goals`](../goals/index.html) | which goals of measurements are known to be missed |
//! | [`fuzz_rules`](../fuzz_rules/index.html) | what must hold for any input |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod attached;
pub mod catalogue;
pub mod classes;
pub mod cluster_colocation_profile;
pub mod cluster_network_topology;
pub mod device;
pub mod device_protocol;
pub mod elastic_quota;
pub mod elastic_quota_profile;
pub mod extensions;
pub mod gang;
pub mod go_text;
pub mod node_annotations;
pub mod node_metric;
pub mod node_resource_topology;
pub mod node_slo;
pub mod numa;
pub mod pod_annotations;
pub mod pod_group;
pub mod pod_migration_job;
pub mod priority;
pub mod protocol;
pub mod qos;
pub mod quota;
pub mod recommendation;
pub mod reservation;
pub mod reservation_protocol;
pub mod resource_names;
pub mod schedule_explanation;
pub mod slo_config;
pub mod word;

use koord_resource::document::Declared;

/// All kinds, each with its versions, in the order of their CRDs' file names.
pub const KINDS: &[&[Declared]] = &[
    &[Declared::of::<recommendation::Recommendation>()],
    &[Declared::of::<cluster_colocation_profile::ClusterColocationProfile>()],
    &[Declared::of::<elastic_quota_profile::ElasticQuotaProfile>()],
    &[Declared::of::<cluster_network_topology::ClusterNetworkTopology>()],
    &[Declared::of::<device::Device>()],
    &[Declared::of::<pod_migration_job::PodMigrationJob>()],
    &[Declared::of::<reservation::Reservation>()],
    &[Declared::of::<schedule_explanation::ScheduleExplanation>()],
    &[Declared::of::<elastic_quota::ElasticQuota>()],
    &[Declared::of::<pod_group::PodGroup>()],
    &[Declared::of::<node_metric::NodeMetric>()],
    &[Declared::of::<node_slo::NodeSLO>()],
    &[
        Declared::of::<node_resource_topology::v1alpha1::NodeResourceTopology>(),
        Declared::of::<node_resource_topology::v1alpha2::NodeResourceTopology>(),
    ],
];

/// The pages of the derives: their examples need koord-resource, which a crate of procedural macros cannot have, and packages refer to no file of others.
#[cfg(doctest)]
mod derives {
    #[doc = include_str!("../../../macros/docs/admission.md")]
    struct Admission;
    #[doc = include_str!("../../../macros/docs/controller.md")]
    struct Controller;
    #[doc = include_str!("../../../macros/docs/convert.md")]
    struct Convert;
    #[doc = include_str!("../../../macros/docs/mutate.md")]
    struct Mutate;
    #[doc = include_str!("../../../macros/docs/projection.md")]
    struct Projection;
    #[doc = include_str!("../../../macros/docs/resource.md")]
    struct Resource;
    #[doc = include_str!("../../../macros/docs/schema.md")]
    struct Schema;
    #[doc = include_str!("../../../macros/docs/validate.md")]
    struct Validate;
}
