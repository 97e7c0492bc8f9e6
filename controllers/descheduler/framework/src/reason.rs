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

        // --- why a pod stays: what a strategy says ---

        /// The pod is not in the state that the strategy is about.
        NotInState {
            look: "`status` of the pod, and the arguments of the strategy.",
            remedy: "Nothing."
        }
        /// An owner of the pod is of a kind that the strategy's arguments exclude.
        OwnerKindExcluded {
            look: "`metadata.ownerReferences` of the pod, `excludeOwnerKinds` in the arguments of the strategy.",
            remedy: "Take the kind out of the list."
        }
        /// The pod is not old enough for the strategy.
        NotOldEnough {
            look: "`metadata.creationTimestamp` of the pod, and the age in the arguments of the strategy.",
            remedy: "Wait, or lower the age."
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
