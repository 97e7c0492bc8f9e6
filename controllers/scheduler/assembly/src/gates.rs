//! The feature gates of the scheduler: those of the original, and those of kube-scheduler that concern scheduling.

use koord_program::gates::{Gate, Gates};
use koord_runtime::key::ObjectKey;
use koord_scheduler_framework::policy::Policy;
use koord_scheduler_runtime::Transformers;

/// Every gate that `--feature-gates` takes (`spec/scheduler.md` 1.6 and 4.1), with those of Kubernetes that are set on schedulers.
/// `CrossSchedulerPreemption` and `ReservationConditions` are our own.
pub const GATES: &[Gate] = &[
    Gate::alpha("CompatibleCSIStorageCapacity").without_effect(OLD_VERSIONS),
    Gate::alpha("DisableCSIStorageCapacityInformer").without_effect(ABSENT_KINDS),
    Gate::alpha("CompatiblePodDisruptionBudget").without_effect(OLD_VERSIONS),
    Gate::alpha("DisablePodDisruptionBudgetInformer").without_effect(ABSENT_KINDS),
    Gate::alpha("DisableDynamicResourceAllocationInformer").without_effect(ABSENT_KINDS),
    Gate::alpha("ResizePod"),
    Gate::alpha("MultiQuotaTree"),
    Gate::alpha("ElasticQuotaIgnorePodOverhead"),
    Gate::alpha("ElasticQuotaIgnoreTerminatingPod"),
    Gate::alpha("ElasticQuotaImmediateIgnoreTerminatingPod"),
    Gate::alpha("ElasticQuotaGuaranteeUsage"),
    Gate::alpha("DisableDefaultQuota"),
    Gate::alpha("SupportParentQuotaSubmitPod").without_effect("it concerns the webhooks"),
    Gate::alpha("LazyReservationRestore").without_effect(NO_COPIES),
    Gate::alpha("OmitNodeLabelsForReservation"),
    Gate::alpha("SkipReservationFitsNode"),
    Gate::alpha("DevicePluginAdaption"),
    Gate::alpha("CleanExpiredReservationAllocated"),
    Gate::alpha("ReservationConditions"),
    Gate::alpha("SkipFilterWithNominatedPods"),
    Gate::beta("DynamicSchedulerCheck", true).without_effect(NAMED_UID),
    Gate::beta("CSIStorageCapacity", true).without_effect(EVERY_VERSION),
    Gate::beta("GenericEphemeralVolume", true).without_effect(EVERY_VERSION),
    Gate::beta("PodDisruptionBudget", true).without_effect(EVERY_VERSION),
    Gate::alpha("SyncBarrier"),
    Gate::alpha("CrossSchedulerNomination"),
    Gate::alpha("CrossSchedulerPreemption"),
    Gate::beta("GangPendingPodsConditionPatch", true).without_effect(KEPT_REASON),
    Gate::alpha("EnableInlineBatchSchedule"),
    Gate::beta("EnableBatchScheduleNodeSnapshot", true).without_effect(NO_COPIES),
    Gate::alpha("PriorityTransformer"),
    Gate::alpha("PreemptionPolicyTransformer"),
    Gate::alpha("ReplaceResourcesTransformer"),
    Gate::stable("SchedulerQueueingHints").without_effect(ONE_QUEUE),
    Gate::beta("SchedulerPopFromBackoffQ", true).without_effect(ONE_QUEUE),
    Gate::beta("SchedulerAsyncPreemption", true).without_effect(NO_WAITS),
    Gate::beta("SchedulerAsyncAPICalls", false).without_effect(NO_WAITS),
    Gate::beta("OpportunisticBatching", true).without_effect(CACHED_ANSWERS),
    Gate::beta("NominatedNodeNameForExpectation", true)
        .without_effect("the node of a pod is written once, by its binding"),
    Gate::stable("DynamicResourceAllocation").without_effect(EVERY_VERSION),
    Gate::beta("PodLevelResources", true).without_effect(POD_RESOURCES),
    Gate::stable("InPlacePodVerticalScaling").without_effect(POD_RESOURCES),
    Gate::alpha("GangScheduling").without_effect(WORKLOADS),
    Gate::alpha("GenericWorkload").without_effect(WORKLOADS),
    Gate::alpha("NodeDeclaredFeatures").without_effect("an alpha plugin of kube-scheduler that is not implemented"),
    Gate::alpha("DRAExtendedResource").without_effect(DEVICE_CLASSES),
    Gate::alpha("DRADeviceTaints").without_effect("taints of devices in a ResourceSlice always count"),
    Gate::alpha("DRADeviceTaintRules"),
    Gate::alpha("ElasticQuotaEnableUpdateResourceKey").without_effect(QUOTA_KEYS),
    Gate::beta("DRAAdminAccess", true).without_effect(CLAIM_REQUESTS),
    Gate::alpha("DRAConsumableCapacity").without_effect(CLAIM_FEATURES),
    Gate::alpha("DRADeviceBindingConditions").without_effect(CLAIM_FEATURES),
    Gate::alpha("DRAPartitionableDevices").without_effect(CLAIM_FEATURES),
    Gate::beta("DRAPrioritizedList", true).without_effect(CLAIM_REQUESTS),
    Gate::beta("DRAResourceClaimDeviceStatus", true).without_effect(SEARCH_LIMIT),
    Gate::beta("DRASchedulerFilterTimeout", true).without_effect(SEARCH_LIMIT),
    Gate::beta("MatchLabelKeysInPodTopologySpread", true).without_effect(POD_FIELDS),
    Gate::beta("MatchLabelKeysInPodTopologySpreadSelectorMerge", true).without_effect(POD_FIELDS),
    Gate::stable("MatchLabelKeysInPodAffinity").without_effect(POD_FIELDS),
    Gate::stable("NodeInclusionPolicyInPodTopologySpread").without_effect(POD_FIELDS),
    Gate::stable("SidecarContainers").without_effect(POD_FIELDS),
    Gate::stable("VolumeAttributesClass").without_effect(POD_FIELDS),
    Gate::alpha("StorageCapacityScoring").without_effect(UNTRIED),
    Gate::beta("MutableCSINodeAllocatableCount", false).without_effect("changes of a CSINode always count"),
    Gate::alpha("TaintTolerationComparisonOperators").without_effect(UNTRIED),
    Gate::stable("ComponentSLIs").without_effect(ONE_LOG),
    Gate::beta("ContextualLogging", true).without_effect(ONE_LOG),
    Gate::alpha("LoggingAlphaOptions").without_effect(ONE_LOG),
    Gate::beta("LoggingBetaOptions", true).without_effect(ONE_LOG),
    Gate::beta("InformerResourceVersion", true).without_effect(PAGED_LISTS),
    Gate::beta("WatchListClient", true).without_effect(PAGED_LISTS),
];

// Why gates have no effect.
const OLD_VERSIONS: &str = "they are for API versions that no server since Kubernetes 1.27 serves";
const ABSENT_KINDS: &str = "a kind that the API server does not serve is not watched, without a gate";
const NO_COPIES: &str =
    "reservations are restored, and gangs evaluated, on the state itself; nothing is restored or copied ahead of time";
const EVERY_VERSION: &str = "these are part of every supported Kubernetes version, and always on";
const ONE_QUEUE: &str = "the queue always works like this";
const NO_WAITS: &str = "no scheduling cycle waits for a write";
const POD_RESOURCES: &str = "resources of the pod as a whole, and resized resources, always count";
const WORKLOADS: &str = "alpha in kube-scheduler, and not implemented: `spec.workloadRef` of a pod, which the API server drops without the gate, is not read, and the pod is scheduled alone; gangs are those of Coscheduling";
const CLAIM_REQUESTS: &str = "requests with `adminAccess` and `firstAvailable` are always supported";
const CLAIM_FEATURES: &str = "not implemented: a pod whose claim needs one of these waits, and its event says so";
const SEARCH_LIMIT: &str = "a search has a limit of steps; the status of devices is the drivers'";
const POD_FIELDS: &str =
    "these fields of a pod are always supported, as in kube-scheduler since they are beta or stable";
const UNTRIED: &str = "alpha in kube-scheduler, and not implemented";
const ONE_LOG: &str = "`/metrics/slis` is always served, and the log has one format";
const PAGED_LISTS: &str = "collections are listed in pages, and watched from the revision of the list";
const NAMED_UID: &str =
    "the binding names the uid of the pod, and the API server refuses it for a pod that is being deleted";
const KEPT_REASON: &str = "the condition `PodScheduled` of pending members of a gang always has the reason";
const CACHED_ANSWERS: &str =
    "answers about nodes are always cached for the next equal pod, and updated when a node changes";
const DEVICE_CLASSES: &str = "not implemented: a pod whose extended resource is a device of a DeviceClass (`spec.extendedResourceName`) waits if no node offers the resource, as in kube-scheduler without the gate; `koordctl why` names the class (`DeviceClassResource`)";
const QUOTA_KEYS: &str = "of earlier versions of the original; the scheduler does not read the resource keys of quotas";

/// What is made of pods before anything decides by them.
pub fn transformers(gates: &Gates) -> Transformers {
    Transformers {
        priority: gates.enabled("PriorityTransformer"),
        preemption_policy: gates.enabled("PreemptionPolicyTransformer"),
        replace_resources: gates.enabled("ReplaceResourcesTransformer"),
    }
}

/// How pods of other schedulers and nominated pods are treated, by a scheduler that runs in this pod.
pub fn policy(gates: &Gates, scheduler_pod: Option<ObjectKey>) -> Policy {
    Policy {
        evicts_foreign: gates.enabled("CrossSchedulerPreemption"),
        keeps_foreign_nominations: gates.enabled("CrossSchedulerNomination"),
        ignores_nominated: gates.enabled("SkipFilterWithNominatedPods"),
        scheduler_pod,
    }
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
        let set = gates("PriorityTransformer=true,ResizePod=true,LazyReservationRestore=true,CSIStorageCapacity=false");
        let named: Vec<&str> = set.without_effect().map(|(gate, _)| gate).collect();
        assert_eq!(named, ["LazyReservationRestore", "CSIStorageCapacity"]);
    }

    #[test]
    fn the_documentation_says_why_a_gate_has_no_effect() {
        let page = include_str!("../../../../docs/scheduler.md");
        let section = page.split("### Gates without effect").nth(1).and_then(|rest| rest.split("\n## ").next());
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for gate in GATES {
            let Some(why) = gate.no_effect else { continue };
            let name = format!("`{}`", gate.name);
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        let rows: Vec<String> =
            reasons.iter().map(|(why, names)| format!("| {} | {why} |\n", names.join(", "))).collect();
        let table = format!("\n\n| feature gates | why |\n|---|---|\n{}", rows.concat());
        assert_eq!(section, Some(&*table), "docs/scheduler.md");
    }
}
