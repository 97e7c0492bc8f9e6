//! The codes of refusals: names that stay the same, and what each means.

/// Declares an enum of codes, each with what it means, what to look at and what helps.
#[macro_export]
macro_rules! reason_codes {
    (
        $(#[$attribute:meta])* pub enum $name:ident
        { $($(#[doc = $meaning:literal])+ $code:ident { look: $look:literal, remedy: $remedy:literal })+ }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $meaning])+ $code,)+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$code),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$code => stringify!($code)),+ }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$code => concat!($($meaning),+)),+ }
            }

            /// What to look at.
            pub const fn look(self) -> &'static str {
                match self { $(Self::$code => $look),+ }
            }

            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$code => $remedy),+ }
            }

            /// A reason with this text.
            pub fn reason(self, text: impl Into<String>) -> $crate::Reason<Self> {
                $crate::Reason { code: self, text: text.into(), operands: Vec::new() }
            }
        }

        impl $crate::StableCode for $name {
            fn as_str(self) -> &'static str {
                self.as_str()
            }

            fn meaning(self) -> &'static str {
                self.meaning()
            }

            fn look(self) -> &'static str {
                self.look()
            }

            fn remedy(self) -> &'static str {
                self.remedy()
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

reason_codes! {
    /// Why a pod is refused, as a name that programs can rely on. The text beside it is for people, and may change.
    pub enum ReasonCode {
        /// The pod has scheduling gates and is not tried.
        SchedulingGated {
            look: "`spec.schedulingGates` of the pod, and the controller that is to remove them.",
            remedy: "The owner of a gate removes it when its condition holds; the scheduler never does."
        }
        /// Pods are being evicted for this one, and it is not tried before they are gone.
        PreemptionPending {
            look: "Pods with a deletion timestamp on the nominated node, their finalizers and grace periods.",
            remedy: "Wait; remove a finalizer that nobody handles; shorten `terminationGracePeriodSeconds` of preemptible pods."
        }
        /// The pod had its place and waited to be bound, and gave the place back to a pod of higher priority.
        Preempted {
            look: "The events of the gang's other members, and pods of a higher PriorityClass.",
            remedy: "Give the gang a higher priority, or more room."
        }
        /// The pod had its place but what a plugin let it wait for did not happen in time.
        PermitTimeout {
            look: "The plugin that the text names, and its documentation.",
            remedy: "What the plugin waits for."
        }
        /// No profile of this scheduler has the scheduler name of the pod, so that another scheduler is responsible for it, or none.
        SchedulerMismatch {
            look: "`spec.schedulerName` of the pod, the `schedulerName` of each profile in the scheduler's configuration, and whether a scheduler of the pod's name runs.",
            remedy: "Create the pod anew with the `schedulerName` of a profile (a ClusterColocationProfile can set it), or add a profile of its name to the configuration."
        }
        /// The node is cordoned.
        NodeUnschedulable {
            look: "`spec.unschedulable` of the node, and who set it.",
            remedy: "`kubectl uncordon NODE`, or let the pod tolerate `node.kubernetes.io/unschedulable`."
        }
        /// The node has a taint that the pod does not tolerate.
        TaintNotTolerated {
            look: "`spec.taints` of the node, `spec.tolerations` of the pod.",
            remedy: "Add a toleration, remove the taint, or add nodes without it. Taints of `node.kubernetes.io/` go when the node recovers."
        }
        /// The node selectors of the pod name nodes that cannot all be meant.
        NodeAffinityConflict {
            look: "`metadata.name` fields in the required terms of `spec.affinity.nodeAffinity`.",
            remedy: "Write terms that some node can fulfil."
        }
        /// The profile of the scheduler requires node labels that this node does not have.
        NodeAffinityEnforced {
            look: "`addedAffinity` of NodeAffinityArgs in the scheduler's configuration.",
            remedy: "Label the node, use another profile, or change the configuration."
        }
        /// The node does not match the pod's node selector or its required node affinity.
        NodeAffinityMismatch {
            look: "`spec.nodeSelector` and `spec.affinity.nodeAffinity` of the pod; `kubectl get nodes --show-labels`.",
            remedy: "Label a node, or relax the selector."
        }
        /// The pod names the nodes that it may run on, and this is another.
        NodeNameMismatch {
            look: "`metadata.name` in the required node affinity, as DaemonSets write it, and `nodeNames` in the scheduling hint of the pod.",
            remedy: "Nothing for this node; see why the named ones do not take the pod."
        }
        /// A host port of the pod is in use on the node.
        HostPortInUse {
            look: "`hostPort` of the containers, and the pods of the node with the same port and protocol.",
            remedy: "Use another port or a Service, run at most one replica a node, or add nodes."
        }
        /// The node has as many pods as it takes.
        TooManyPods {
            look: "`status.allocatable.pods` of the node.",
            remedy: "Add nodes, or raise `maxPods` of the kubelet."
        }
        /// The node has less left of a resource than the pod requests.
        InsufficientResources {
            look: "`/apis/v1/nodes/NODE` of the scheduler (requested and remaining), the requests of the pod.",
            remedy: "Lower the requests, add nodes, evict less important pods, or defragment with the descheduler."
        }
        /// Nodes offer more different resources than the scheduler counts, and the pod requests one that is not counted.
        ResourceNotCounted {
            look: "`status.allocatable` of the nodes: who writes thousands of names there; the metric `koord_scheduler_uncounted_resources`.",
            remedy: "Remove names from the nodes that no pod needs; the scheduler counts others in their place when a node is written again."
        }
        /// The node lacks the label over whose values the pod is to be spread.
        TopologyLabelMissing {
            look: "`topologyKey` of `spec.topologySpreadConstraints`, the labels of the node.",
            remedy: "Label the node, or leave such nodes out by a node selector."
        }
        /// One more pod in the node's topology domain would exceed the allowed skew.
        TopologySpreadExceeded {
            look: "`maxSkew` and `labelSelector` of the constraint; how many matching pods each domain has, and which domains are full.",
            remedy: "Make room in the domain with the fewest pods, raise `maxSkew`, or use `ScheduleAnyway`."
        }
        /// The pod must be near others, and none of them is near this node.
        PodAffinityUnsatisfied {
            look: "`spec.affinity.podAffinity` of the pod, where matching pods run, and the namespace that is meant.",
            remedy: "Create the other pods first, correct the selector, or prefer instead of require."
        }
        /// The pod must be away from others, and one of them is near this node.
        PodAntiAffinityConflict {
            look: "`spec.affinity.podAntiAffinity` of the pod, and the pods that match it.",
            remedy: "Add nodes or domains, run fewer replicas, or prefer instead of require."
        }
        /// A pod that runs near this node must be away from pods like this one.
        ExistingPodAntiAffinity {
            look: "`podAntiAffinity` of the pods that run in the node's domain.",
            remedy: "Change the labels of the pod or the other pods' terms, or add domains."
        }
        /// A PersistentVolumeClaim, volume or StorageClass that the pod uses does not exist.
        VolumeNotFound {
            look: "`kubectl get pvc -n NAMESPACE`, `claimName` of the pod's volumes.",
            remedy: "Create it, or correct the name; the claim of an ephemeral volume is made by kube-controller-manager."
        }
        /// A claim or a StorageClass of the pod cannot be used.
        VolumeInvalid {
            look: "The claim's phase, deletion timestamp and owner; `volumeBindingMode` of its StorageClass.",
            remedy: "Delete the claim of a lost volume and create it anew; complete the StorageClass."
        }
        /// A claim that is bound without waiting for a pod is not bound.
        ClaimUnbound {
            look: "`kubectl describe pvc`: what its provisioner says.",
            remedy: "Repair the provisioner, create a volume, or use a StorageClass with `WaitForFirstConsumer`."
        }
        /// The volumes of the pod cannot be used, found or provided on the node.
        VolumeUnavailable {
            look: "Node affinity of the PersistentVolumes, CSIStorageCapacity objects, topologies of the StorageClass.",
            remedy: "Add volumes or capacity in the node's zone, or let the pod go where its volume is."
        }
        /// A volume of the pod is in another zone than the node.
        VolumeZoneConflict {
            look: "Zone labels of the volume and of the node.",
            remedy: "Make room in the zone of the volume."
        }
        /// A volume of the pod is in use by another pod in a way that excludes it.
        VolumeInUse {
            look: "Access mode `ReadWriteOncePod` of the claim; disks that are mounted by other pods of the node.",
            remedy: "Wait until the other pod is gone, or use another access mode."
        }
        /// The node has as many volumes of a driver attached as it takes.
        VolumeLimitExceeded {
            look: "`spec.drivers[].allocatable.count` of the node's CSINode.",
            remedy: "Add nodes, or use fewer volumes a pod."
        }
        /// The pod needs something that this scheduler does not support.
        Unsupported {
            look: "The text names the need.",
            remedy: "Leave it out of the pod, or name another scheduler in `spec.schedulerName`."
        }
        /// The pod requests an extended resource that no node offers, and that is a device of a DeviceClass, which is given to ResourceClaims alone.
        DeviceClassResource {
            look: "`spec.extendedResourceName` of the DeviceClass that the text names; whether a device plugin is to offer the resource.",
            remedy: "Request the devices by a ResourceClaim (`spec.resourceClaims` of the pod), or let a device plugin offer the resource."
        }
        /// The scheduling hint of the pod cannot be read.
        SchedulingHintInvalid {
            look: "The annotation of the scheduling hint of the pod.",
            remedy: "Correct its JSON; the text says where it is wrong."
        }
        /// The pod and what its quota uses exceed the quota's `max`.
        QuotaMaxExceeded {
            look: "`koordctl explain quota NAME`: max, used, and who uses it.",
            remedy: "Raise `spec.max`, delete pods of the quota, or use another quota."
        }
        /// The pod and what its quota uses exceed the quota's runtime: what others leave of the tree.
        QuotaRuntimeExceeded {
            look: "`koordctl explain quota NAME`: runtime, min, what is lent to and borrowed from siblings.",
            remedy: "Raise `spec.min` or the shared weight, wait until siblings give back what they borrow, or enable overuse revocation."
        }
        /// The pod may not be preempted, and such pods stay within the quota's `min`.
        QuotaMinExceeded {
            look: "`spec.min` of the quota and its non-preemptible use.",
            remedy: "Raise `spec.min`, or let the pod be preempted (label `quota.scheduling.koordinator.sh/preemptible`)."
        }
        /// A quota above the pod's quota has too little left.
        ParentQuotaExceeded {
            look: "`koordctl explain quota NAME` of the first quota of the path.",
            remedy: "Raise the parent's `max` or `min`, or lower what its other children use."
        }
        /// Another program has given the pod its node, while it waited for this scheduler.
        BoundElsewhere {
            look: "`kubectl get pods -A -o wide | grep -i scheduler` and the Leases: a second installation with another Lease, or another scheduler with a profile of the same name; who binds by hand.",
            remedy: "Give each scheduler names of its own in `schedulerName`, or remove one: two that do not know of each other give out the same resources twice."
        }
        /// The label of the pod names a quota that does not exist, or the root, which takes no pods: the pod counts in the default quota.
        QuotaNotFound {
            look: "The label `quota.scheduling.koordinator.sh/name` of the pod; `kubectl get elasticquotas -A`.",
            remedy: "Create the quota, or correct the label."
        }
        /// A gang of the pod's gang group does not exist, or nothing legal declares it.
        GangUndeclared {
            look: "The PodGroup of the name in the pod's label, or `min-available` in the annotations of its pods.",
            remedy: "Create the PodGroup, or correct the annotation."
        }
        /// The gang has fewer members than it needs, so that none is tried.
        GangWaitingMembers {
            look: "`koordctl why gang NAMESPACE/NAME`: how many members there are.",
            remedy: "Let the workload create its pods (quota, admission, its controller), or lower `minMember`."
        }
        /// Another member represents the whole gang group in the queue.
        GangRepresented {
            look: "That member: `koordctl why POD`.",
            remedy: "Nothing; what is found out about the other member holds for this one."
        }
        /// Another member of the gang group found no node, or another gang came in between, and a gang is placed as a whole.
        GangInfeasible {
            look: "The member that the text names: `koordctl why POD`.",
            remedy: "What helps that member; or a smaller gang (`min-available`, `minMember`) where fewer members are useful."
        }
        /// The pod had its place, and the other members of its gang had none in time.
        GangTimeout {
            look: "`koordctl why gang NAMESPACE/NAME`: which members are missing, and why.",
            remedy: "Create the missing members, make room for them, or raise the gang's waiting time (`scheduleTimeoutSeconds`)."
        }
        /// The gang is planned as a whole, and the plan has another node, or none, for this pod.
        GangUnplanned {
            look: "`koordctl why gang NAMESPACE/NAME`, and the node that the plan has for the pod.",
            remedy: "Nothing for this node; see why the planned one does not take the pod."
        }
        /// The gang requires a network topology, and the topology is unknown.
        NetworkTopologyMissing {
            look: "The ClusterNetworkTopology `default`, and the labels of nodes that it names.",
            remedy: "Create it, or leave the network topology out of the gang."
        }
        /// No part of the network that is narrow enough fits the whole gang.
        NetworkTopologyFull {
            look: "The layers that the text names, with what each offers.",
            remedy: "Make room in one part, prefer a layer instead of requiring it, or use a smaller gang."
        }
        /// The pod requires a reservation, and none on the node matches it.
        ReservationNotMatched {
            look: "`owners` of the Reservations, reservation affinity of the pod, phase of the Reservations.",
            remedy: "Correct the owners or the affinity; create a Reservation; see whether it has expired."
        }
        /// The pod requires a reservation that is kept for others: none of its owners is the pod.
        ReservationOwnerMismatch {
            look: "The field of the Reservation that the operand `field` names, and what the pod has there: labels, name and namespace, controller.",
            remedy: "Correct the owners of the Reservation, or the labels of the pod."
        }
        /// The pod requires a reservation that it owns and that has expired.
        ReservationExpired {
            look: "`spec.ttl`, `spec.expires` and the conditions of the Reservation; whether its node still exists.",
            remedy: "Create a new Reservation with more time (`ttl: 0s` is for ever), or let the pod do without."
        }
        /// The reservations on the node have too little left for the pod, or the one that it requires is used up.
        ReservationFull {
            look: "`/apis/v1/plugins/Reservation/nodeReservations/NODE`, `status.allocated` of the Reservation.",
            remedy: "Reserve more, delete an owner, or use a policy that lets owners take the rest from the node."
        }
        /// A reservation of another allocation policy is on the node.
        ReservationConflict {
            look: "`spec.allocatePolicy` of the Reservations of the node.",
            remedy: "Use one policy a node."
        }
        /// The Reservation, or what the pod says about reservations, makes no sense.
        ReservationInvalid {
            look: "The text names the field.",
            remedy: "Correct it."
        }
        /// The Reservation names another node.
        ReservationNodeMismatch {
            look: "`spec.template.spec.nodeName` of the Reservation.",
            remedy: "Nothing for this node; see why the named one does not take it."
        }
        /// The Reservation takes over running pods, and there are none that do.
        PreAllocationImpossible {
            look: "`spec.preAllocation` of the Reservation, which pods match it, and the plugin's arguments.",
            remedy: "Correct owners or labels, enable the mode for the whole cluster, or do without `pre-allocation-required`."
        }
        /// The node would use more of a resource than LoadAwareScheduling allows.
        NodeHot {
            look: "`status` of the node's NodeMetric, `usageThresholds` of the plugin or of the node's annotation.",
            remedy: "Wait, rebalance with the descheduler, raise the threshold, or add nodes."
        }
        /// The NodeMetric of the node is too old, so that its load is not known.
        NodeMetricStale {
            look: "`status.updateTime` of the NodeMetric, the koordlet of the node.",
            remedy: "Repair koordlet, or accept such nodes (`enableScheduleWhenNodeMetricsExpired`)."
        }
        /// The node has no NodeMetric, or one in which nothing was ever reported, so that its load is not known.
        NodeMetricMissing {
            look: "`kubectl get nodemetrics`, and the koordlet of the node: the operand `agent_state` says whether its pod is ready there, unready or absent.",
            remedy: "Let koordlet run on the node; see its log for what it cannot report."
        }
        /// The kubelet of the node has rejected a pod that requests no more than this one, less than half a minute ago.
        NodeRejected {
            look: "The metric `koord_scheduler_node_conflicts_total`, pods of the node that have failed with a reason such as `OutOfcpu`, and pods that other schedulers place there.",
            remedy: "It is tried again by itself. Give each scheduler its own nodes, or let one of them place all pods."
        }
        /// No NUMA node, or no combination that the policy allows, has enough of a resource.
        NumaUnavailable {
            look: "The NodeResourceTopology of the node, its NUMA topology policy, and what the pods of the node hold.",
            remedy: "Use a weaker policy, lower the requests, or make room on one NUMA node."
        }
        /// The policies of pod and node for CPUs or NUMA nodes contradict each other.
        NumaPolicyMismatch {
            look: "Labels `node.koordinator.sh/` of the node, annotation `scheduling.koordinator.sh/resource-spec` of the pod.",
            remedy: "Let both say the same, or only one of them."
        }
        /// The node does not report its CPUs or NUMA nodes.
        CpuTopologyMissing {
            look: "The NodeResourceTopology of the node, the koordlet that writes it.",
            remedy: "Repair koordlet; see its log for the CPU topology."
        }
        /// The node has too few CPUs left that a pod can have for itself, or too few for the pod's bind policy.
        CpusUnavailable {
            look: "The CPUs that `scheduling.koordinator.sh/resource-status` of the node's pods names.",
            remedy: "Use another bind policy, lower the requests, or move a pod that binds CPUs."
        }
        /// The pod requests exclusive CPUs in an invalid way.
        CpuRequestInvalid {
            look: "The cpu request and the annotation `scheduling.koordinator.sh/resource-spec` of the pod.",
            remedy: "Request whole CPUs, whole cores for FullPCPUs; correct the annotation."
        }
        /// The devices of the node do not do: too few, too small, unhealthy, or not those that the pod selects.
        DeviceUnavailable {
            look: "The Device object of the node (health, labels), `scheduling.koordinator.sh/device-allocated` of its pods.",
            remedy: "Repair unhealthy devices, relax the selector, lower the request, or make room."
        }
        /// The node has too few devices left, and some of this kind are unhealthy.
        DeviceUnhealthy {
            look: "The devices of the node's Device object whose `health` is false; the operand `uuid` names them. For a GPU, `nvidia-smi` and the kernel's messages (Xid) on the node.",
            remedy: "Repair or replace the devices, or drain the node; a pod that can do with less gets what is left."
        }
        /// The node reports no GPUs, and offers parts of them that a device plugin made (MIG), which this scheduler does not give out.
        DeviceUnmanaged {
            look: "`status.allocatable` of the node: the resources that the operand `mig` names.",
            remedy: "Request such a resource instead, which is counted as any other, or switch MIG off on the node and let koordlet report its GPUs."
        }
        /// The devices are free, but not in a partition or scope as the pod needs them.
        DevicePartitionFragmented {
            look: "The partition table and the topology of the Device object, and which pods hold which GPUs.",
            remedy: "Move pods so that a whole partition is free; pack GPUs (strategy MostAllocated or LeastFragmented)."
        }
        /// The node does not report what the pod needs to know of its devices: partitions or topology.
        DeviceTopologyMissing {
            look: "The annotations and `topology` of the node's Device object.",
            remedy: "Repair koordlet or the device plugin that reports it, or do not ask for it."
        }
        /// Devices that must be near each other are not.
        DeviceJointConflict {
            look: "The annotation `scheduling.koordinator.sh/device-joint-allocate` of the pod, the PCIe and NUMA places of the devices.",
            remedy: "Relax the scope, or make room for both kinds under one PCIe switch."
        }
        /// No GPU template has what the pod requests.
        DeviceTemplateMissing {
            look: "The ConfigMap `gpu-shared-resource-templates`, the model of the GPUs.",
            remedy: "Add a template, or request what one of them has."
        }
        /// GPUs of this node cannot be shared in the requested way.
        DeviceNotShareable {
            look: "The label of the isolation provider of the node, the models that the plugin's arguments leave out.",
            remedy: "Install the isolation provider, request whole GPUs, or use another model."
        }
        /// What the pod says about devices makes no sense, or is not possible at once.
        DeviceRequestInvalid {
            look: "The device requests and annotations of the pod; the text names them.",
            remedy: "Correct them."
        }
        /// A resource claim of the pod does not exist yet, is going, or is being given devices.
        ResourceClaimNotReady {
            look: "`kubectl get resourceclaims`, `status.resourceClaimStatuses` of the pod; the text names the claim.",
            remedy: "Create the claim; one from a template is made by kube-controller-manager."
        }
        /// A resource claim has an invalid or unsupported request.
        ResourceClaimInvalid {
            look: "The requests, selectors and constraints of the claim, the DeviceClass that it names.",
            remedy: "Correct them; the text names the request."
        }
        /// The devices of the node do not do for the resource claims of the pod.
        ResourceClaimUnavailable {
            look: "The ResourceSlices of the node, and which claims hold their devices: `kubectl get resourceclaims -A -o yaml`.",
            remedy: "Relax the selectors, ask for fewer devices, or delete claims that nobody uses."
        }
        /// A resource claim of the pod has devices already, which cannot be reached from this node.
        ResourceClaimOutOfReach {
            look: "`status.allocation.nodeSelector` of the claim.",
            remedy: "Nothing for this node; a claim that no pod uses gives its devices back by itself."
        }
        /// As many pods use the resource claim as may.
        ResourceClaimInUse {
            look: "`status.reservedFor` of the claim.",
            remedy: "Use another claim, or one from a template for each pod."
        }
        /// A webhook of the scheduler's configuration refuses the node.
        ExtenderRefused {
            look: "The text, which is the webhook's own; `extenders` in the scheduler's configuration.",
            remedy: "What the webhook says."
        }
        /// A webhook of the scheduler's configuration does not answer, or not in a way that can be understood.
        ExtenderFailed {
            look: "The log of the scheduler and of the webhook; `extenders` in the scheduler's configuration.",
            remedy: "Repair the webhook; with `ignorable: true` pods are placed without it."
        }
        /// A plugin that does not come with this program refused, or the words of a refusal are lost.
        PluginSpecific {
            look: "The text, and the documentation of the plugin.",
            remedy: "What the plugin says."
        }
    }
}
