//! The hooks: their gates, the stages at which runtimes call them, and what the reconciler keeps for them.

use crate::stage::{Stage, Stages};

/// A hook. Hooks run in this order, which is that of their names; of two that set one field the later wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    BatchResource,
    CpuNormalization,
    CpuSetAllocator,
    CoreSched,
    GpuEnvInject,
    GroupIdentity,
    OomScoreAdj,
    RdmaDeviceInject,
    Resctrl,
    TcNetworkQos,
    TerwayQos,
}

/// What the reconciler keeps as a hook wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The folders of Kubernetes' QoS classes.
    QosFolder,
    Pod,
    Sandbox,
    Container,
    HostApplication,
}

/// A row of the table of hooks.
#[derive(Clone, Copy, Debug)]
pub struct HookRow {
    pub hook: Hook,
    /// The feature gate that switches it on.
    pub gate: &'static str,
    pub is_on_by_default: bool,
    /// Stages at which container runtimes call it.
    pub stages: &'static [Stage],
    pub levels: &'static [Level],
}

/// A set of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks(u16);

const SANDBOX_CREATE_UPDATE: &[Stage] =
    &[Stage::PreRunPodSandbox, Stage::PreCreateContainer, Stage::PreUpdateContainerResources];
const CREATE: &[Stage] = &[Stage::PreCreateContainer];

/// The hooks, in the order of [`Hook`].
pub const HOOKS: [HookRow; 11] = {
    use Level::{Container, HostApplication, Pod, QosFolder, Sandbox};
    [
        on(Hook::BatchResource, "BatchResource", SANDBOX_CREATE_UPDATE, &[Pod, Container]),
        off(Hook::CpuNormalization, "CPUNormalization", SANDBOX_CREATE_UPDATE, &[Pod, Container]),
        on(
            Hook::CpuSetAllocator,
            "CPUSetAllocator",
            SANDBOX_CREATE_UPDATE,
            &[Pod, Sandbox, Container, HostApplication],
        ),
        off(Hook::CoreSched, "CoreSched", &[], &[QosFolder, Sandbox, Container]),
        off(Hook::GpuEnvInject, "GPUEnvInject", CREATE, &[]),
        on(
            Hook::GroupIdentity,
            "GroupIdentity",
            &[Stage::PreRunPodSandbox],
            &[QosFolder, Pod, Sandbox, Container, HostApplication],
        ),
        off(Hook::OomScoreAdj, "OOMScoreAdj", &[], &[Container]),
        off(Hook::RdmaDeviceInject, "RDMADeviceInject", CREATE, &[]),
        off(
            Hook::Resctrl,
            "Resctrl",
            &[Stage::PreRunPodSandbox, Stage::PreCreateContainer, Stage::PreRemoveRunPodSandbox],
            &[Pod],
        ),
        off(Hook::TcNetworkQos, "TCNetworkQoS", &[], &[Pod]),
        off(Hook::TerwayQos, "TerwayQoS", &[], &[]),
    ]
};

const fn on(hook: Hook, gate: &'static str, stages: &'static [Stage], levels: &'static [Level]) -> HookRow {
    HookRow { hook, gate, is_on_by_default: true, stages, levels }
}

const fn off(hook: Hook, gate: &'static str, stages: &'static [Stage], levels: &'static [Level]) -> HookRow {
    HookRow { hook, gate, is_on_by_default: false, stages, levels }
}

impl Hook {
    /// The row of the table.
    pub fn row(self) -> &'static HookRow {
        &HOOKS[self as usize]
    }

    /// The name in metrics and messages: that of its gate.
    pub fn name(self) -> &'static str {
        self.row().gate
    }
}

impl Hooks {
    /// The hooks whose gates are on.
    pub fn of_gates(is_on: impl Fn(&str) -> bool) -> Self {
        HOOKS.iter().filter(|row| is_on(row.gate)).map(|row| row.hook).collect()
    }

    pub fn contains(self, hook: Hook) -> bool {
        self.0 & (1 << hook as u16) != 0
    }

    /// The stages at which some hook of the set is called: what the runtime proxy is configured to call.
    pub fn stages(self) -> Stages {
        HOOKS.iter().filter(|row| self.contains(row.hook)).flat_map(|row| row.stages.iter().copied()).collect()
    }
}

impl Default for Hooks {
    /// The hooks that are on by default.
    fn default() -> Self {
        HOOKS.iter().filter(|row| row.is_on_by_default).map(|row| row.hook).collect()
    }
}

impl FromIterator<Hook> for Hooks {
    fn from_iter<I: IntoIterator<Item = Hook>>(hooks: I) -> Self {
        Self(hooks.into_iter().fold(0, |set, hook| set | 1 << hook as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_hooks_and_of_their_names() {
        for (index, row) in HOOKS.iter().enumerate() {
            assert_eq!(row.hook as usize, index, "{}", row.gate);
        }
    }

    #[test]
    fn by_default_three_stages_have_hooks() {
        let stages: Vec<&str> = Hooks::default().stages().iter().map(Stage::as_str).collect();
        assert_eq!(stages, ["PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources"]);
        let gpu = Hooks::of_gates(|gate| gate == "GPUEnvInject");
        assert_eq!(gpu.stages().iter().collect::<Vec<_>>(), [Stage::PreCreateContainer]);
        assert!(gpu.contains(Hook::GpuEnvInject) && !gpu.contains(Hook::GroupIdentity));
    }
}
