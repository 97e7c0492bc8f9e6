//! The feature gates of the scheduler: those of the original, and those of kube-scheduler that concern scheduling.

use koord_program::gates::{Gate, Gates, Stage};
use koord_scheduler_runtime::Transformers;

const fn alpha(name: &'static str) -> Gate {
    Gate { name, default: false, stage: Stage::Alpha }
}

const fn beta(name: &'static str, default: bool) -> Gate {
    Gate { name, default, stage: Stage::Beta }
}

const fn stable(name: &'static str) -> Gate {
    Gate { name, default: true, stage: Stage::Stable }
}

/// Every gate that `--feature-gates` takes (`spec/scheduler.md` 1.6 and 4.1).
pub const GATES: &[Gate] = &[
    alpha("CompatibleCSIStorageCapacity"),
    alpha("DisableCSIStorageCapacityInformer"),
    alpha("CompatiblePodDisruptionBudget"),
    alpha("DisablePodDisruptionBudgetInformer"),
    alpha("DisableDynamicResourceAllocationInformer"),
    alpha("ResizePod"),
    alpha("MultiQuotaTree"),
    alpha("ElasticQuotaIgnorePodOverhead"),
    alpha("ElasticQuotaIgnoreTerminatingPod"),
    alpha("ElasticQuotaImmediateIgnoreTerminatingPod"),
    alpha("ElasticQuotaGuaranteeUsage"),
    alpha("DisableDefaultQuota"),
    alpha("SupportParentQuotaSubmitPod"),
    alpha("LazyReservationRestore"),
    alpha("OmitNodeLabelsForReservation"),
    alpha("SkipReservationFitsNode"),
    alpha("DevicePluginAdaption"),
    alpha("CleanExpiredReservationAllocated"),
    alpha("SkipFilterWithNominatedPods"),
    beta("DynamicSchedulerCheck", true),
    beta("CSIStorageCapacity", true),
    beta("GenericEphemeralVolume", true),
    beta("PodDisruptionBudget", true),
    alpha("SyncBarrier"),
    alpha("CrossSchedulerNomination"),
    beta("GangPendingPodsConditionPatch", true),
    alpha("EnableInlineBatchSchedule"),
    beta("EnableBatchScheduleNodeSnapshot", true),
    alpha("PriorityTransformer"),
    alpha("PreemptionPolicyTransformer"),
    alpha("ReplaceResourcesTransformer"),
    stable("SchedulerQueueingHints"),
    beta("SchedulerPopFromBackoffQ", true),
    beta("SchedulerAsyncPreemption", true),
    beta("SchedulerAsyncAPICalls", false),
    beta("OpportunisticBatching", true),
    beta("NominatedNodeNameForExpectation", true),
    stable("DynamicResourceAllocation"),
    beta("PodLevelResources", true),
    stable("InPlacePodVerticalScaling"),
    alpha("GangScheduling"),
    alpha("GenericWorkload"),
    alpha("NodeDeclaredFeatures"),
    alpha("DRAExtendedResource"),
    alpha("DRADeviceTaints"),
    alpha("DRADeviceTaintRules"),
];

/// Gates with which something is done otherwise.
const BUILT: [&str; 17] = [
    "EnableInlineBatchSchedule",
    "MultiQuotaTree",
    "ElasticQuotaIgnorePodOverhead",
    "ElasticQuotaIgnoreTerminatingPod",
    "ElasticQuotaImmediateIgnoreTerminatingPod",
    "ElasticQuotaGuaranteeUsage",
    "DisableDefaultQuota",
    "OmitNodeLabelsForReservation",
    "SkipReservationFitsNode",
    "CleanExpiredReservationAllocated",
    "DevicePluginAdaption",
    "ResizePod",
    "SyncBarrier",
    "DRADeviceTaintRules",
    "PriorityTransformer",
    "PreemptionPolicyTransformer",
    "ReplaceResourcesTransformer",
];

/// What is made of pods before anything decides by them.
pub fn transformers(gates: &Gates) -> Transformers {
    Transformers {
        priority: gates.enabled("PriorityTransformer"),
        preemption_policy: gates.enabled("PreemptionPolicyTransformer"),
        replace_resources: gates.enabled("ReplaceResourcesTransformer"),
    }
}

/// Gates that are set otherwise than by default, and have no effect.
pub(crate) fn without_effect(gates: &Gates) -> impl Iterator<Item = &'static str> {
    let changed = gates.iter().filter(|(gate, is_on)| gate.default != *is_on).map(|(gate, _)| gate.name);
    changed.filter(|name| !BUILT.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gates_that_are_on_are_those_of_the_original() {
        let on = |name: &str| Gates::new(GATES).enabled(name);
        let ours = ["DynamicSchedulerCheck", "GangPendingPodsConditionPatch", "EnableBatchScheduleNodeSnapshot"];
        assert!(ours.into_iter().all(on) && on("PodDisruptionBudget") && on("SchedulerQueueingHints"));
        assert!(!["SyncBarrier", "ResizePod", "GangScheduling", "LazyReservationRestore"].into_iter().any(on));
    }

    #[test]
    fn gates_that_are_set_and_have_no_effect_are_named() {
        let gates = |list: &str| Gates::parse(GATES, list).unwrap();
        let transformers = transformers(&gates("PriorityTransformer=true,ReplaceResourcesTransformer=true"));
        assert!(transformers.priority && transformers.replace_resources && !transformers.preemption_policy);
        let named: Vec<&str> = without_effect(&gates(
            "PriorityTransformer=true,ResizePod=true,LazyReservationRestore=true,CSIStorageCapacity=false",
        ))
        .collect();
        assert_eq!(named, ["LazyReservationRestore", "CSIStorageCapacity"]);
    }
}
