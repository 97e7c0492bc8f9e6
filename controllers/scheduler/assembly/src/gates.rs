//! The feature gates of the scheduler: those of the original, and those of kube-scheduler that concern scheduling.

use koord_program::gates::{Gate, Gates, Stage};
use koord_runtime::key::ObjectKey;
use koord_scheduler_framework::policy::Policy;
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

/// Every gate that `--feature-gates` takes (`spec/scheduler.md` 1.6 and 4.1), with those of Kubernetes that are set on schedulers.
/// `CrossSchedulerPreemption` and `ReservationConditions` are our own.
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
    alpha("ReservationConditions"),
    alpha("SkipFilterWithNominatedPods"),
    beta("DynamicSchedulerCheck", true),
    beta("CSIStorageCapacity", true),
    beta("GenericEphemeralVolume", true),
    beta("PodDisruptionBudget", true),
    alpha("SyncBarrier"),
    alpha("CrossSchedulerNomination"),
    alpha("CrossSchedulerPreemption"),
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
    alpha("ElasticQuotaEnableUpdateResourceKey"),
    beta("DRAAdminAccess", true),
    alpha("DRAConsumableCapacity"),
    alpha("DRADeviceBindingConditions"),
    alpha("DRAPartitionableDevices"),
    beta("DRAPrioritizedList", true),
    beta("DRAResourceClaimDeviceStatus", true),
    beta("DRASchedulerFilterTimeout", true),
    beta("MatchLabelKeysInPodTopologySpread", true),
    beta("MatchLabelKeysInPodTopologySpreadSelectorMerge", true),
    stable("MatchLabelKeysInPodAffinity"),
    stable("NodeInclusionPolicyInPodTopologySpread"),
    stable("SidecarContainers"),
    stable("VolumeAttributesClass"),
    alpha("StorageCapacityScoring"),
    beta("MutableCSINodeAllocatableCount", false),
    alpha("TaintTolerationComparisonOperators"),
    stable("ComponentSLIs"),
    beta("ContextualLogging", true),
    alpha("LoggingAlphaOptions"),
    beta("LoggingBetaOptions", true),
    beta("InformerResourceVersion", true),
    beta("WatchListClient", true),
];

/// Gates with which something is done otherwise.
const BUILT: [&str; 21] = [
    "CrossSchedulerNomination",
    "CrossSchedulerPreemption",
    "SkipFilterWithNominatedPods",
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
    "ReservationConditions",
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

/// How pods of other schedulers and nominated pods are treated, by a scheduler that runs in this pod.
pub fn policy(gates: &Gates, own_pod: Option<ObjectKey>) -> Policy {
    Policy {
        evicts_foreign: gates.enabled("CrossSchedulerPreemption"),
        keeps_foreign_nominations: gates.enabled("CrossSchedulerNomination"),
        ignores_nominated: gates.enabled("SkipFilterWithNominatedPods"),
        own_pod,
    }
}

/// Gates that are set otherwise than by default, and have no effect.
pub fn without_effect(gates: &Gates) -> impl Iterator<Item = &'static str> {
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
    fn nothing_is_done_to_pods_of_other_schedulers_unless_a_gate_says_so() {
        let of = |list: &str| policy(&Gates::parse(GATES, list).unwrap(), None);
        assert_eq!(of(""), Policy::default());
        assert_eq!(of("CrossSchedulerPreemption=true"), Policy { evicts_foreign: true, ..Policy::default() });
        let nominations = of("CrossSchedulerNomination=true,SkipFilterWithNominatedPods=true");
        assert!(nominations.keeps_foreign_nominations && nominations.ignores_nominated && !nominations.evicts_foreign);
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

    #[test]
    fn the_documentation_says_why_a_gate_has_no_effect() {
        let page = include_str!("../../../../docs/scheduler.md");
        let section = page.split("### Gates without effect").nth(1).and_then(|rest| rest.split("\n## ").next());
        let documented: Vec<&str> = section.unwrap().split('\n').filter(|line| line.starts_with("| `")).collect();
        for Gate { name, .. } in GATES {
            let rows = documented.iter().filter(|line| line.split('|').nth(1).unwrap().contains(&format!("`{name}`")));
            assert_eq!(rows.count(), usize::from(!BUILT.contains(name)), "{name}");
        }
    }
}
