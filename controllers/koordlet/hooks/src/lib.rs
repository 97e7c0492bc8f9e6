//! Runtime hooks of the node agent: what containers get that Kubernetes does not give them.
//!
//! Hooks are functions of a pod, a container, a stage and [`Rules`], a snapshot of what NodeSLO, node and topology say. They are delivered in three ways:
//! [`on_sandbox`] and [`on_container`] answer a container runtime that calls by NRI or through the runtime proxy, and a [`Reconciler`] keeps what hooks want
//! of all pods. All give the same values. Nothing here writes: what is wanted are constraints for the resolver, and effects that others execute.
//!
//! Read first: [`HOOKS`], the table of hooks; [`Rules`]; [`Reconciler`] with its [`Outcome`].
//!
//! ```
//! use koord_koordlet_hooks::{HostDevices, Options, RuleInputs, Rules, RuntimeContainer, RuntimePod, Stage, on_container};
//! use koord_koordlet_system::{Driver, Layout, Version};
//!
//! let layout = Layout::new(Version::V2, Driver::Systemd);
//! let options = Options::default();
//! let (slo, topology, node, resctrl) = (None, None, None, None);
//! let rules = Rules::new(RuleInputs { options: &options, layout, slo, topology, node, switches: Default::default(), resctrl }, None);
//! let mut pod = RuntimePod { name: "web".into(), ..RuntimePod::default() };
//! pod.annotations.insert("scheduling.koordinator.sh/resource-status".into(), r#"{"cpuset":"0-3"}"#.into());
//! let container = RuntimeContainer { name: "main".into(), id: "3f2a".into(), cpu_quota: 400_000 };
//! let response = on_container(Stage::PreCreateContainer, &pod, &container, &rules, &HostDevices { sys: "/sys".into() });
//! assert_eq!(response.adjustment.cpuset_cpus.as_deref(), Some("0-3"));
//! assert_eq!(response.adjustment.cpu_quota, Some(-1));
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod adjustment;
mod batch;
mod core_sched;
mod cpuset;
mod gpu;
mod group_identity;
mod hook;
pub mod network;
mod node_constraints;
mod normalization;
mod oom_score;
mod pod_constraints;
mod pod_view;
mod proxy_configuration;
mod rdma;
mod reconcile;
mod refused;
mod resctrl_group;
mod rules;
mod runtime_call;
mod sandbox;
mod stage;
mod switches;
mod values;

pub use adjustment::{Adjustment, Device, Effect, HookError, Mount, Response, RuntimeContainer, RuntimePod};
pub use core_sched::{CookieBook, CookieChange, Member};
pub use gpu::GpuOptions;
pub use hook::{HOOKS, Hook, HookRow, Hooks, Level};
pub use node_constraints::on_stop;
pub use oom_score::OomScore;
pub use proxy_configuration::{PROXY_CONFIGURATION_FILE, proxy_configuration};
pub use rdma::{DeviceReader, HostDevices};
pub use reconcile::{Outcome, Reconciler};
pub use refused::{Refused, Subject};
pub use resctrl_group::{GROUP_AGE_MIN, GROUP_PREFIX, ResctrlGroup, ResctrlMachine, groups_to_remove};
pub use rules::{FailurePolicy, Options, RuleInputs, Rules};
pub use runtime_call::{on_container, on_sandbox};
pub use sandbox::{SandboxError, sandbox_cgroup};
pub use stage::{Stage, Stages, UnknownStage};
pub use switches::{CoreSchedSupport, KernelSwitches, SCHED_CORE, SCHED_GROUP_IDENTITY, Switch};
