//! Codes of why a pod is evicted and of why it stays: names that stay the same.

koord_scheduler_framework::reason_codes! {
    /// Why a pod is evicted, or stays, as a name that programs can rely on. The text beside it is for people, and may change.
    pub enum ReasonCode {
        // --- why a pod is evicted ---

        /// The pod has failed.
        FailedPod {
            look: "`status.phase`, `status.reason` and the container statuses of the pod.",
            remedy: "Nothing: its controller makes another one. Repair what makes it fail."
        }
        /// A pod that the required anti-affinity of the pod forbids is near.
        AntiAffinityViolated {
            look: "`spec.affinity.podAntiAffinity` of the pod, and the pods of its domain, of which one is named.",
            remedy: "Nothing: the scheduler finds another domain for it. Where there is none, add nodes or relax the term."
        }
        /// The node of the pod is no longer one that its node selector and required node affinity select.
        NodeAffinityViolated {
            look: "`spec.affinity.nodeAffinity` and `spec.nodeSelector` of the pod, the labels of its node.",
            remedy: "Nothing: it fits another node. Restore the label of the node if it was removed by mistake."
        }
        /// The pod fits a node that it prefers to its own.
        BetterNodeExists {
            look: "The preferred terms in `spec.affinity.nodeAffinity` of the pod, and the labels of both nodes.",
            remedy: "Nothing: the scheduler prefers the other node."
        }
        /// The pod does not tolerate a taint of its node.
        TaintNotTolerated {
            look: "`spec.taints` of the node, `spec.tolerations` of the pod.",
            remedy: "Nothing, or let the pod tolerate the taint; `excludedTaints` of the strategy leaves a taint out."
        }
        /// The containers of the pod have restarted too often.
        TooManyRestarts {
            look: "`restartCount` in the container statuses of the pod, `podRestartThreshold` of the strategy.",
            remedy: "Repair what makes it restart; another node helps only where the node is the cause."
        }
        /// The pod is as old, or in such a state, that it is to be replaced.
        LifeTimeOver {
            look: "`metadata.creationTimestamp` and `status` of the pod, and the arguments of PodLifeTime.",
            remedy: "Nothing: its controller makes another one."
        }
        /// The node of the pod is overutilized, and underutilized nodes can take its pods.
        NodeOverutilized {
            look: "What the pods of the node request and `targetThresholds` for LowNodeUtilization; the NodeMetric of the node and the high thresholds for LowNodeLoad.",
            remedy: "Nothing; let pods request less, or add nodes."
        }
        /// The node of the pod is underutilized, and is emptied towards nodes that are used more.
        NodeUnderutilized {
            look: "What the pods of the node request, `thresholds` of HighNodeUtilization.",
            remedy: "Nothing; a lower threshold keeps the node as it is."
        }
        /// The node has more pods of the same owner and images than its share.
        DuplicatePod {
            look: "The pods of the owner on the node.",
            remedy: "Nothing; anti-affinity or a spread constraint keeps them apart when they are scheduled."
        }
        /// The topology domain of the pod has so many pods more than others that a spread constraint is violated.
        TopologySpreadViolated {
            look: "`spec.topologySpreadConstraints` of the pods, and how many of them each domain has.",
            remedy: "Nothing; a domain is often too small because its nodes were away for a while."
        }
        /// The pod can move to nodes of a later level of `evictionOrder`.
        LaterLevelFits {
            look: "`evictionOrder` of CustomPriority, and the labels of the node.",
            remedy: "Nothing; change the order, or the labels of the node."
        }
        /// Without the pod the node is used more evenly over its resources.
        FragmentationReduced {
            look: "What the pods of the node request of each resource, `imbalanceThreshold` of FragmentationAware.",
            remedy: "Nothing; let the node run pods whose requests have the ratio of what is allocatable."
        }
        /// The pod is among the first that a scale-down should take, so that nodes become empty.
        ScaleDownBinPacked {
            look: "What the pods of each node request, `maxPodsToEvict` of ScaleDownBinPack.",
            remedy: "Nothing; with `CalculateOnly` pods are only ranked."
        }

        // --- why a pod stays: who may be evicted ---

        /// The pod is of another namespace than the plugin's arguments choose.
        NamespaceNotSelected {
            look: "`namespaces` or `evictableNamespaces` in the arguments of the plugin.",
            remedy: "Include the namespace, or no longer exclude it."
        }
        /// The labels of the pod are not those that the plugin's arguments choose.
        LabelsNotSelected {
            look: "`labelSelector` or `podSelectors` in the arguments of the plugin.",
            remedy: "Widen the selector, or label the pod."
        }
        /// The pod asks not to be evicted, and the evictor obeys.
        PrefersNoEviction {
            look: "The annotation `descheduler.alpha.kubernetes.io/prefer-no-eviction` of the pod, `noEvictionPolicy` of the evictor.",
            remedy: "Remove the annotation, or set the policy to `Preferred`."
        }
        /// The pod is a kubelet's copy of a static pod.
        MirrorPod {
            look: "The annotation `kubernetes.io/config.mirror` of the pod.",
            remedy: "Nothing: evicting it has no effect on the static pod."
        }
        /// The pod is a static pod.
        StaticPod {
            look: "The annotation `kubernetes.io/config.source` of the pod.",
            remedy: "Nothing: its kubelet runs it from a file."
        }
        /// The pod is being deleted already.
        Terminating {
            look: "`metadata.deletionTimestamp` and the finalizers of the pod.",
            remedy: "Wait for its end."
        }
        /// A DaemonSet owns the pod, and would make another one on the same node.
        DaemonSetPod {
            look: "`metadata.ownerReferences` of the pod.",
            remedy: "Nothing, or `evictDaemonSetPods` of DefaultEvictor."
        }
        /// No object owns the pod, so nothing would make another one.
        BarePod {
            look: "`metadata.ownerReferences` of the pod.",
            remedy: "Let a workload own it; `evictFailedBarePods` lets it go once it has failed, `evictAllBarePods` of MigrationController at any time."
        }
        /// The pod is critical for the system.
        SystemCritical {
            look: "`spec.priority` and `spec.priorityClassName` of the pod.",
            remedy: "Nothing, or `evictSystemCriticalPods` of the evictor."
        }
        /// The priority of the pod is not below the threshold.
        PriorityThreshold {
            look: "`spec.priority` of the pod, `priorityThreshold` of the evictor.",
            remedy: "Raise the threshold, or give the pod a lower priority."
        }
        /// The pod has local storage, which it would lose.
        LocalStorage {
            look: "Volumes of the pod of the kinds `emptyDir` and `hostPath`.",
            remedy: "`evictLocalStoragePods` of the evictor lets such pods go."
        }
        /// The pod has a PersistentVolumeClaim that is protected.
        PersistentVolumeClaim {
            look: "Volumes of the pod with a claim, `ignorePvcPods` and `podProtections` of the evictor.",
            remedy: "Turn the protection off, or leave the StorageClass out of it."
        }
        /// No PodDisruptionBudget is about the pod.
        NoDisruptionBudget {
            look: "`kubectl get pdb -n NAMESPACE`, and their selectors.",
            remedy: "Create a budget for the workload, or turn `ignorePodsWithoutPDB` off."
        }
        /// The pod has resource claims.
        ResourceClaims {
            look: "`spec.resourceClaims` of the pod.",
            remedy: "Turn the protection `PodsWithResourceClaims` off."
        }
        /// The owner of the pod has too few pods.
        TooFewReplicas {
            look: "The pods of the owner, `minReplicas` of DefaultEvictor.",
            remedy: "Scale the workload up, or lower `minReplicas`."
        }
        /// The pod has not run for long enough.
        TooYoung {
            look: "`status.startTime` of the pod, `minPodAge` of DefaultEvictor.",
            remedy: "Wait, or lower `minPodAge`."
        }
        /// The labels of the pod's namespace are not those that the evictor chooses.
        NamespaceLabels {
            look: "The labels of the namespace, `namespaceLabelSelector` of DefaultEvictor.",
            remedy: "Label the namespace, or widen the selector."
        }
        /// The pod fits no other node.
        NoOtherNodeFits {
            look: "Node selectors, affinity, tolerations and requests of the pod, and `nodeSelector` of the evictor.",
            remedy: "Add a node that it fits, or turn `nodeFit` off; then it may come back or stay pending."
        }
        /// The pod is evicted in this pass already.
        EvictedAlready {
            look: "The earlier step of the same plan.",
            remedy: "Nothing."
        }

        // --- why a pod stays: limits ---

        /// As many pods of the node are evicted in this pass as may be.
        NodeLimit {
            look: "`maxNoOfPodsToEvictPerNode` of the configuration.",
            remedy: "Wait for the next pass, or raise the limit."
        }
        /// As many pods of the namespace are evicted in this pass as may be.
        NamespaceLimit {
            look: "`maxNoOfPodsToEvictPerNamespace` of the configuration.",
            remedy: "Wait for the next pass, or raise the limit."
        }
        /// As many pods are evicted in this pass as may be.
        TotalLimit {
            look: "`maxNoOfPodsToEvictTotal` of the configuration.",
            remedy: "Wait for the next pass, or raise the limit."
        }
        /// The eviction was tried, and failed.
        EvictionFailed {
            look: "The log, and the event of the pod; a PodDisruptionBudget may forbid it.",
            remedy: "What the message says; it is tried again in a later pass."
        }

        // --- why a pod stays: MigrationController ---

        /// A PodMigrationJob of the pod has not ended.
        MigratingAlready {
            look: "`kubectl get podmigrationjobs`: one that names the pod.",
            remedy: "Wait for its end, or delete the job."
        }
        /// The scheduler of the pod does not serve Reservations.
        SchedulerWithoutReservations {
            look: "`spec.schedulerName` of the pod, `schedulerNames` and `defaultJobMode` of MigrationController.",
            remedy: "Add the scheduler to `schedulerNames` if it is a koord-scheduler, or migrate with `EvictDirectly`."
        }
        /// The eviction cost of the pod forbids its eviction.
        EvictionCost {
            look: "The annotation `scheduling.koordinator.sh/eviction-cost` of the pod.",
            remedy: "Lower the cost below 2147483647."
        }
        /// The workload has a single replica, which would be missing meanwhile; skipCheckExpectedReplicas allows it.
        SingleReplica {
            look: "`spec.replicas` of the workload.",
            remedy: "Scale the workload up, or set `skipCheckExpectedReplicas` of MigrationController."
        }
        /// All replicas of the workload might migrate or be unavailable at a time; skipCheckExpectedReplicas allows it.
        LimitEqualsReplicas {
            look: "`spec.replicas` of the workload, `maxMigratingPerWorkload` and `maxUnavailablePerWorkload` of MigrationController.",
            remedy: "Lower the limits, scale the workload up, or set `skipCheckExpectedReplicas`."
        }
        /// The controller of the pod was not found, so its replicas are not known.
        WorkloadNotFound {
            look: "The controller in `metadata.ownerReferences` of the pod, with its uid.",
            remedy: "Let a garbage collector remove the pod, or give a controller of this kind the subresource `scale`; or skip the gates `ExpectedReplicas`, `MaxMigratingPerWorkload` and `MaxUnavailablePerWorkload`."
        }
        /// The replicas of the pod's controller could not be looked up.
        WorkloadLookupFailed {
            look: "The controller in `metadata.ownerReferences` of the pod: whether its API is served, and may be read.",
            remedy: "Install the API, or permit `get` of its subresource `scale`; or skip the gates `ExpectedReplicas`, `MaxMigratingPerWorkload` and `MaxUnavailablePerWorkload`."
        }
        /// The replicas of the pod's controller are not known yet.
        WorkloadNotLookedUp {
            look: "The controller in `metadata.ownerReferences` of the pod.",
            remedy: "Nothing: its subresource `scale` is being read."
        }
        /// As many pods migrate as may.
        MigratingGlobally {
            look: "`kubectl get podmigrationjobs`, `maxMigratingGlobally` of MigrationController.",
            remedy: "Wait, or raise the limit."
        }
        /// As many pods of the node migrate as may.
        MigratingPerNode {
            look: "`kubectl get podmigrationjobs`, `maxMigratingPerNode` of MigrationController.",
            remedy: "Wait, or raise the limit."
        }
        /// As many pods of the namespace migrate as may.
        MigratingPerNamespace {
            look: "`kubectl get podmigrationjobs`, `maxMigratingPerNamespace` of MigrationController.",
            remedy: "Wait, or raise the limit."
        }
        /// As many pods of the workload migrate as may.
        MigratingPerWorkload {
            look: "`kubectl get podmigrationjobs`, `maxMigratingPerWorkload` of MigrationController.",
            remedy: "Wait, or raise the limit."
        }
        /// As many pods of the workload are unavailable as may be.
        UnavailablePerWorkload {
            look: "The pods of the workload that are not ready or migrate, `maxUnavailablePerWorkload` of MigrationController.",
            remedy: "Wait until they are ready, or raise the limit."
        }
        /// Pods of the workload or namespace were evicted too recently.
        ObjectLimiter {
            look: "`objectLimiters` of MigrationController.",
            remedy: "Wait, or let more pods go within the time."
        }
        /// The job is paused.
        JobPaused {
            look: "`spec.paused` of the PodMigrationJob.",
            remedy: "Set it to false."
        }

        // --- why a pod stays: what its eviction would lead to ---

        /// The successor of the pod would get the same node again.
        ComesBack {
            look: "`koordctl deschedule why`, the free resources and labels of the other nodes, the scores of the scheduler's plugins.",
            remedy: "Make another node fit it better: add a node, or let the strategy and the scheduler agree, such as by a taint with the effect `NoSchedule`."
        }
        /// No node takes the successor of the pod.
        StaysPending {
            look: "What the scheduler says, in the operand `why`.",
            remedy: "Add a node that it fits, or free what it requests."
        }
        /// A PodDisruptionBudget lets no further pod go.
        BreaksBudget {
            look: "`kubectl get poddisruptionbudgets`: the column ALLOWED DISRUPTIONS of the one that is named.",
            remedy: "Wait until its pods are healthy, scale the workload up, or relax the budget."
        }
        /// The successor of the pod would be evicted from its node, too, by the same strategy.
        RelievesNothing {
            look: "The node that is named, and what the strategy demands of nodes.",
            remedy: "Let scheduler and strategy agree: what the strategy evicts for has to keep the scheduler from placing the pod there."
        }
        /// The pod has replaced one that was evicted for the same reason not long ago.
        CoolingDown {
            look: "`koordctl deschedule history`: the evictions of the pod's controller.",
            remedy: "Wait, or repair what makes its pods be evicted again and again."
        }
        /// What the eviction leads to was not followed through the scheduler, and `planning: enforce` evicts nothing else.
        NotFollowed {
            look: "The operand `why`: the pass has more evictions than are followed, or the metric `koord_descheduler_planning_ready` is 0 and the log says which objects of the scheduler are not known.",
            remedy: "Wait for the next pass, limit what a pass evicts with `maxNoOfPodsToEvictTotal`, grant what the log names, or use `planning: report`."
        }

        // --- why a pod stays: what a strategy says ---

        /// The pod is not in the state that the strategy is about.
        NotInState {
            look: "`status` of the pod, and the arguments of the strategy.",
            remedy: "Nothing."
        }
        /// The owners of the pod are of a kind that the strategy's arguments exclude, or of none that they include.
        OwnerKindExcluded {
            look: "`metadata.ownerReferences` of the pod, `excludeOwnerKinds` or `ownerKinds` in the arguments of the strategy.",
            remedy: "Take the kind out of the list, or add it to those that are included."
        }
        /// The node of the pod is above none of the target or high thresholds.
        NodeNotOverutilized {
            look: "What the pods of the node request or, for LowNodeLoad, its NodeMetric; `targetThresholds` or `highThresholds` of the strategy.",
            remedy: "Nothing, or lower the thresholds."
        }
        /// The node of the pod is above one of the thresholds, so it is not to be emptied.
        NodeNotUnderutilized {
            look: "What the pods of the node request, `thresholds` of the strategy.",
            remedy: "Nothing, or raise the thresholds."
        }
        /// No node is in question as a target: none is underutilized, or all that may take pods are cordoned.
        NoTargetNodes {
            look: "What the pods of each node request or, for LowNodeLoad, the NodeMetrics; the thresholds of the strategy, cordoned nodes.",
            remedy: "Add a node, or change the thresholds."
        }
        /// All nodes are underutilized, so that none is to be relieved or filled.
        AllNodesUnderutilized {
            look: "What the pods of each node request, the thresholds of the strategy.",
            remedy: "Nothing, or lower `thresholds`; for an emptier cluster remove a node."
        }
        /// No more nodes are underutilized than the strategy demands.
        TooFewNodesUnderutilized {
            look: "`numberOfNodes` in the arguments of the strategy.",
            remedy: "Lower the number."
        }
        /// The node of the pod is no longer overutilized after the evictions of this pass.
        NodeRelieved {
            look: "The earlier steps of the same plan.",
            remedy: "Nothing."
        }
        /// The target nodes have nothing left of a resource after the evictions of this pass.
        TargetsFull {
            look: "The earlier steps of the same plan, what is allocatable on target nodes, the thresholds of the strategy.",
            remedy: "Add a node, or raise `targetThresholds` or `highThresholds`."
        }
        /// No single target node could take the pod without being overloaded, although together they have room.
        PodOverloadsTargets {
            look: "What the pod requests or, for LowNodeLoad, uses, and what each target node has left below its target or high threshold.",
            remedy: "Add a larger node, raise `targetThresholds` or `highThresholds`, or let the pod request less."
        }
        /// The pod tolerates the taints of no target node.
        NoTargetTolerated {
            look: "`spec.taints` of the target nodes, `spec.tolerations` of the pod. A pod needs as many tolerations as the node has taints.",
            remedy: "Let the pod tolerate each taint, or add a node without taints."
        }
        /// As many pods of the node are evicted by the strategy in this pass as may be.
        StrategyNodeLimit {
            look: "`evictionLimits.node` in the arguments of the strategy.",
            remedy: "Wait for the next pass, or raise the limit."
        }
        /// The pod requests no resource that has a threshold.
        RequestsNoThresholdResource {
            look: "`evictionModes` and `thresholds` in the arguments of the strategy, requests of the pod.",
            remedy: "Take `OnlyThresholdingResources` out of the list."
        }
        /// The pod is the only one of its owner and images on the node, or the first of them.
        NoDuplicate {
            look: "The pods of the owner on the node.",
            remedy: "Nothing."
        }
        /// The node has no more pods of the same owner and images than its share.
        WithinShare {
            look: "The pods of the owner on all nodes, and the nodes that can take them.",
            remedy: "Nothing, or add a node that can take them."
        }
        /// Fewer than two nodes can take pods of this owner.
        TooFewTargetNodes {
            look: "Cordoned nodes, taints, free resources; node selector, affinity, tolerations and requests of the pods.",
            remedy: "Add a node that they fit."
        }
        /// No other node that has fewer pods of the owner than its share can take the pod.
        NoNodeBelowShare {
            look: "Cordoned nodes, taints, free resources; node selector, affinity, tolerations and requests of the pod.",
            remedy: "Add a node that it fits."
        }
        /// No spread constraint that the strategy enforces counts the pod.
        NoSpreadConstraint {
            look: "`spec.topologySpreadConstraints` of the pods of the namespace, `constraints` in the arguments of the strategy.",
            remedy: "Nothing, or add `ScheduleAnyway` to `constraints`."
        }
        /// The spread constraints that count the pod hold.
        SpreadConstraintHolds {
            look: "`spec.topologySpreadConstraints` of the pods, and how many of them each domain has.",
            remedy: "Nothing, or lower `maxSkew`."
        }
        /// A spread constraint is violated, but enough pods of the domain leave without this one, or none has to.
        DomainNotTooLarge {
            look: "The earlier steps of the same plan, and how many pods each domain has.",
            remedy: "Nothing."
        }
        /// The pod fits no node of a domain that has too few pods.
        NoSmallerDomainFits {
            look: "`topologyBalanceNodeFit` of the strategy; node selector, affinity, tolerations and requests of the pod; nodes of domains below the average.",
            remedy: "Add a node there, or set `topologyBalanceNodeFit` to false where an autoscaler adds one."
        }
        /// Wherever the pod went, another spread constraint would be violated more than it is.
        AnotherConstraintWorsens {
            look: "The other constraints that count the pod, and how many pods each of their domains has.",
            remedy: "Add nodes to the domains that have too few pods, or raise `maxSkew` of one of the constraints."
        }
        /// What the node of the pod uses is not known, or was reported too long ago.
        NodeUsageUnknown {
            look: "The NodeMetric of the node, its `status.updateTime`, koordlet on the node, `nodeMetricExpirationSeconds`; for `metricsUtilization` of LowNodeUtilization `kubectl top node`, or the result of the query.",
            remedy: "Let koordlet run and report on the node; let the metrics server, or the query, measure it."
        }
        /// What the pod uses is not known, so neither is where it fits.
        PodUsageUnknown {
            look: "`status.podsMetric` of the NodeMetric; `kubectl top pod` for `metricsUtilization` of LowNodeUtilization.",
            remedy: "Wait for the next report of koordlet, or of the metrics server."
        }
        /// The node of the pod is overutilized, but not for enough passes in a row.
        NotOverutilizedLongEnough {
            look: "`anomalyCondition` in the arguments of LowNodeLoad.",
            remedy: "Wait, or lower `consecutiveAbnormalities`."
        }
        /// Only production pods overutilize the node, and the pod is none.
        NotProductionPod {
            look: "The labels `koordinator.sh/priority-class` and `koordinator.sh/qosClass` and the priority of the pod.",
            remedy: "Nothing."
        }
        /// The node of the pod belongs to no level, or to one after which no level has nodes.
        NoLaterLevel {
            look: "`evictionOrder` of CustomPriority, and the labels of the node.",
            remedy: "Nothing; change the order, or the labels of the node."
        }
        /// Too many pods of the node in a row fit nowhere, and the strategy gave the node up.
        GivenUpAfterMisfits {
            look: "Requests, node selectors, affinity and tolerations of the pods of the node.",
            remedy: "Add a node that they fit, or keep such pods out by `podSelectors`."
        }
        /// Not all pods of the node fit elsewhere, or the eviction of one failed, so the node is not emptied.
        NodeNotDrained {
            look: "The pod that the operands name.",
            remedy: "Add a node that it fits, or use the mode `BestEffort`."
        }
        /// The resources of the node are used evenly enough.
        NodeNotFragmented {
            look: "What the pods of the node request of each resource, `imbalanceThreshold` of FragmentationAware.",
            remedy: "Nothing, or lower the threshold."
        }
        /// Without the pod the node would not be used more evenly by what is demanded.
        GainTooSmall {
            look: "What the pod requests, `minImprovementThreshold` of FragmentationAware.",
            remedy: "Nothing, or lower the threshold."
        }
        /// Another pod of the node is the better choice, and only one is evicted in a pass.
        BetterPodChosen {
            look: "The evictions of the same plan.",
            remedy: "Wait for the next pass."
        }
        /// As many pods are evicted by the strategy in this pass as may be.
        StrategyTotalLimit {
            look: "`maxPodsToEvict` in the arguments of the strategy.",
            remedy: "Wait for the next pass, or raise the limit."
        }
        /// The pod is not old enough for the strategy.
        NotOldEnough {
            look: "`metadata.creationTimestamp` of the pod, and the age in the arguments of the strategy.",
            remedy: "Wait, or lower the age."
        }
        /// No pod that the required anti-affinity of the pod forbids is near.
        AntiAffinityHolds {
            look: "`spec.affinity.podAntiAffinity` of the pod, and the pods of its domain that the strategy's arguments choose.",
            remedy: "Nothing."
        }
        /// The pod's node is one that its node affinity selects, or it has no such affinity.
        NodeAffinityHolds {
            look: "`spec.affinity.nodeAffinity` of the pod, `nodeAffinityType` of the strategy.",
            remedy: "Nothing. A node selector alone does not count."
        }
        /// The pod prefers no node to its own.
        NoBetterNode {
            look: "The preferred terms in `spec.affinity.nodeAffinity` of the pod, and the labels of the nodes.",
            remedy: "Nothing."
        }
        /// The node has no taint that counts and that the pod does not tolerate.
        TaintsTolerated {
            look: "`spec.taints` of the node, `spec.tolerations` of the pod, `includedTaints` and `excludedTaints` of the strategy.",
            remedy: "Nothing. Taints with the effect `NoExecute` do not count: the controller manager evicts for them."
        }
        /// The containers of the pod have not restarted often enough for the strategy.
        TooFewRestarts {
            look: "`restartCount` in the container statuses of the pod, `podRestartThreshold` and `includingInitContainers` of the strategy.",
            remedy: "Nothing, or lower the threshold."
        }
    }
}

/// Why a pod is evicted, or stays.
pub type Reason = koord_scheduler_framework::Reason<ReasonCode>;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_documented() {
        let names: BTreeSet<&str> = ReasonCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ReasonCode::ALL.len());
        for code in ReasonCode::ALL {
            for text in [code.meaning(), code.look(), code.remedy()] {
                assert!(text.len() > 7 && text.ends_with('.'), "{code}: {text}");
            }
        }
    }
}
