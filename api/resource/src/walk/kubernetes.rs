//! The types of Kubernetes that specs embed, and that are the same in all versions of a kind.
//!
//! They are those of the groups that every API server has, without lists and without types of one value. Types of `meta/v1` stand here
//! where specs have them; the few whose rules the OpenAPI documents do not state are described in `declare/kubernetes.rs`.

pub(crate) use k8s_openapi::{
    api::{
        admissionregistration::v1 as admissionregistration_v1, apps::v1 as apps_v1,
        authentication::v1 as authentication_v1, authorization::v1 as authorization_v1,
        autoscaling::v1 as autoscaling_v1, autoscaling::v2 as autoscaling_v2, batch::v1 as batch_v1,
        certificates::v1 as certificates_v1, coordination::v1 as coordination_v1, core::v1 as core_v1,
        discovery::v1 as discovery_v1, events::v1 as events_v1, flowcontrol::v1 as flowcontrol_v1,
        networking::v1 as networking_v1, node::v1 as node_v1, policy::v1 as policy_v1, rbac::v1 as rbac_v1,
        resource::v1 as resource_v1, scheduling::v1 as scheduling_v1, storage::v1 as storage_v1,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions_v1,
    apimachinery::pkg::apis::meta::v1 as meta_v1,
    kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration_v1,
};

/// Calls a macro with what stands in the second brackets and with all of them, by package of their OpenAPI definitions.
macro_rules! kubernetes_types {
    ([$($callback:tt)+] $state:tt) => {
        $($callback)+! {
            $state
            admissionregistration_v1 "io.k8s.api.admissionregistration.v1":
                AuditAnnotation ExpressionWarning MatchCondition MatchResources MutatingWebhook MutatingWebhookConfiguration
                NamedRuleWithOperations ParamKind ParamRef RuleWithOperations ServiceReference TypeChecking ValidatingAdmissionPolicy
                ValidatingAdmissionPolicyBinding ValidatingAdmissionPolicyBindingSpec ValidatingAdmissionPolicySpec
                ValidatingAdmissionPolicyStatus ValidatingWebhook ValidatingWebhookConfiguration Validation Variable WebhookClientConfig;
            apiextensions_v1 "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1":
                CustomResourceColumnDefinition CustomResourceConversion CustomResourceDefinition CustomResourceDefinitionCondition
                CustomResourceDefinitionNames CustomResourceDefinitionSpec CustomResourceDefinitionStatus CustomResourceDefinitionVersion
                CustomResourceSubresourceScale CustomResourceSubresources CustomResourceValidation ExternalDocumentation JSONSchemaProps
                SelectableField ServiceReference ValidationRule WebhookClientConfig WebhookConversion;
            apiregistration_v1 "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1":
                APIService APIServiceCondition APIServiceSpec APIServiceStatus ServiceReference;
            apps_v1 "io.k8s.api.apps.v1":
                ControllerRevision DaemonSet DaemonSetCondition DaemonSetSpec DaemonSetStatus DaemonSetUpdateStrategy Deployment
                DeploymentCondition DeploymentSpec DeploymentStatus DeploymentStrategy ReplicaSet ReplicaSetCondition ReplicaSetSpec
                ReplicaSetStatus RollingUpdateDaemonSet RollingUpdateDeployment RollingUpdateStatefulSetStrategy StatefulSet
                StatefulSetCondition StatefulSetOrdinals StatefulSetPersistentVolumeClaimRetentionPolicy StatefulSetSpec StatefulSetStatus
                StatefulSetUpdateStrategy;
            authentication_v1 "io.k8s.api.authentication.v1":
                BoundObjectReference SelfSubjectReview SelfSubjectReviewStatus TokenRequest TokenRequestSpec TokenRequestStatus TokenReview
                TokenReviewSpec TokenReviewStatus UserInfo;
            authorization_v1 "io.k8s.api.authorization.v1":
                FieldSelectorAttributes LabelSelectorAttributes LocalSubjectAccessReview NonResourceAttributes NonResourceRule
                ResourceAttributes ResourceRule SelfSubjectAccessReview SelfSubjectAccessReviewSpec SelfSubjectRulesReview
                SelfSubjectRulesReviewSpec SubjectAccessReview SubjectAccessReviewSpec SubjectAccessReviewStatus SubjectRulesReviewStatus;
            autoscaling_v1 "io.k8s.api.autoscaling.v1":
                CrossVersionObjectReference HorizontalPodAutoscaler HorizontalPodAutoscalerSpec HorizontalPodAutoscalerStatus Scale ScaleSpec
                ScaleStatus;
            autoscaling_v2 "io.k8s.api.autoscaling.v2":
                ContainerResourceMetricSource ContainerResourceMetricStatus CrossVersionObjectReference ExternalMetricSource
                ExternalMetricStatus HPAScalingPolicy HPAScalingRules HorizontalPodAutoscaler HorizontalPodAutoscalerBehavior
                HorizontalPodAutoscalerCondition HorizontalPodAutoscalerSpec HorizontalPodAutoscalerStatus MetricIdentifier MetricSpec
                MetricStatus MetricTarget MetricValueStatus ObjectMetricSource ObjectMetricStatus PodsMetricSource PodsMetricStatus
                ResourceMetricSource ResourceMetricStatus;
            batch_v1 "io.k8s.api.batch.v1":
                CronJob CronJobSpec CronJobStatus Job JobCondition JobSpec JobStatus JobTemplateSpec PodFailurePolicy
                PodFailurePolicyOnExitCodesRequirement PodFailurePolicyOnPodConditionsPattern PodFailurePolicyRule SuccessPolicy
                SuccessPolicyRule UncountedTerminatedPods;
            certificates_v1 "io.k8s.api.certificates.v1":
                CertificateSigningRequest CertificateSigningRequestCondition CertificateSigningRequestSpec CertificateSigningRequestStatus;
            coordination_v1 "io.k8s.api.coordination.v1":
                Lease LeaseSpec;
            core_v1 "io.k8s.api.core.v1":
                AWSElasticBlockStoreVolumeSource Affinity AppArmorProfile AttachedVolume AzureDiskVolumeSource AzureFilePersistentVolumeSource
                AzureFileVolumeSource Binding CSIPersistentVolumeSource CSIVolumeSource Capabilities CephFSPersistentVolumeSource
                CephFSVolumeSource CinderPersistentVolumeSource CinderVolumeSource ClientIPConfig ClusterTrustBundleProjection
                ComponentCondition ComponentStatus ConfigMap ConfigMapEnvSource ConfigMapKeySelector ConfigMapNodeConfigSource
                ConfigMapProjection ConfigMapVolumeSource Container ContainerExtendedResourceRequest ContainerImage ContainerPort
                ContainerResizePolicy ContainerRestartRule ContainerRestartRuleOnExitCodes ContainerState ContainerStateRunning
                ContainerStateTerminated ContainerStateWaiting ContainerStatus ContainerUser DaemonEndpoint DownwardAPIProjection
                DownwardAPIVolumeFile DownwardAPIVolumeSource EmptyDirVolumeSource EndpointAddress EndpointPort EndpointSubset Endpoints
                EnvFromSource EnvVar EnvVarSource EphemeralContainer EphemeralVolumeSource Event EventSeries EventSource ExecAction
                FCVolumeSource FileKeySelector FlexPersistentVolumeSource FlexVolumeSource FlockerVolumeSource GCEPersistentDiskVolumeSource
                GRPCAction GitRepoVolumeSource GlusterfsPersistentVolumeSource GlusterfsVolumeSource HTTPGetAction HTTPHeader HostAlias HostIP
                HostPathVolumeSource ISCSIPersistentVolumeSource ISCSIVolumeSource ImageVolumeSource KeyToPath Lifecycle LifecycleHandler
                LimitRange LimitRangeItem LimitRangeSpec LinuxContainerUser LoadBalancerIngress LoadBalancerStatus LocalObjectReference
                LocalVolumeSource ModifyVolumeStatus NFSVolumeSource Namespace NamespaceCondition NamespaceSpec NamespaceStatus Node NodeAddress
                NodeAffinity NodeCondition NodeConfigSource NodeConfigStatus NodeDaemonEndpoints NodeFeatures NodeRuntimeHandler
                NodeRuntimeHandlerFeatures NodeSelector NodeSelectorRequirement NodeSelectorTerm NodeSpec NodeStatus NodeSwapStatus
                NodeSystemInfo ObjectFieldSelector ObjectReference PersistentVolume PersistentVolumeClaim PersistentVolumeClaimCondition
                PersistentVolumeClaimSpec PersistentVolumeClaimStatus PersistentVolumeClaimTemplate PersistentVolumeClaimVolumeSource
                PersistentVolumeSpec PersistentVolumeStatus PhotonPersistentDiskVolumeSource Pod PodAffinity PodAffinityTerm PodAntiAffinity
                PodCertificateProjection PodCondition PodDNSConfig PodDNSConfigOption PodExtendedResourceClaimStatus PodIP PodOS
                PodReadinessGate PodResourceClaim PodResourceClaimStatus PodSchedulingGate PodSecurityContext PodSpec PodStatus PodTemplate
                PodTemplateSpec PortStatus PortworxVolumeSource PreferredSchedulingTerm Probe ProjectedVolumeSource QuobyteVolumeSource
                RBDPersistentVolumeSource RBDVolumeSource ReplicationController ReplicationControllerCondition ReplicationControllerSpec
                ReplicationControllerStatus ResourceClaim ResourceFieldSelector ResourceHealth ResourceQuota ResourceQuotaSpec
                ResourceQuotaStatus ResourceRequirements ResourceStatus SELinuxOptions ScaleIOPersistentVolumeSource ScaleIOVolumeSource
                ScopeSelector ScopedResourceSelectorRequirement SeccompProfile Secret SecretEnvSource SecretKeySelector SecretProjection
                SecretReference SecretVolumeSource SecurityContext Service ServiceAccount ServiceAccountTokenProjection ServicePort ServiceSpec
                ServiceStatus SessionAffinityConfig SleepAction StorageOSPersistentVolumeSource StorageOSVolumeSource Sysctl TCPSocketAction
                Taint Toleration TopologySelectorLabelRequirement TopologySelectorTerm TopologySpreadConstraint TypedLocalObjectReference
                TypedObjectReference Volume VolumeDevice VolumeMount VolumeMountStatus VolumeNodeAffinity VolumeProjection
                VolumeResourceRequirements VsphereVirtualDiskVolumeSource WeightedPodAffinityTerm WindowsSecurityContextOptions;
            discovery_v1 "io.k8s.api.discovery.v1":
                Endpoint EndpointConditions EndpointHints EndpointPort EndpointSlice ForNode ForZone;
            events_v1 "io.k8s.api.events.v1":
                Event EventSeries;
            flowcontrol_v1 "io.k8s.api.flowcontrol.v1":
                ExemptPriorityLevelConfiguration FlowDistinguisherMethod FlowSchema FlowSchemaCondition FlowSchemaSpec FlowSchemaStatus
                GroupSubject LimitResponse LimitedPriorityLevelConfiguration NonResourcePolicyRule PolicyRulesWithSubjects
                PriorityLevelConfiguration PriorityLevelConfigurationCondition PriorityLevelConfigurationReference
                PriorityLevelConfigurationSpec PriorityLevelConfigurationStatus QueuingConfiguration ResourcePolicyRule ServiceAccountSubject
                Subject UserSubject;
            meta_v1 "io.k8s.apimachinery.pkg.apis.meta.v1":
                DeleteOptions LabelSelector LabelSelectorRequirement OwnerReference Preconditions;
            networking_v1 "io.k8s.api.networking.v1":
                HTTPIngressPath HTTPIngressRuleValue IPAddress IPAddressSpec IPBlock Ingress IngressBackend IngressClass
                IngressClassParametersReference IngressClassSpec IngressLoadBalancerIngress IngressLoadBalancerStatus IngressPortStatus
                IngressRule IngressServiceBackend IngressSpec IngressStatus IngressTLS NetworkPolicy NetworkPolicyEgressRule
                NetworkPolicyIngressRule NetworkPolicyPeer NetworkPolicyPort NetworkPolicySpec ParentReference ServiceBackendPort ServiceCIDR
                ServiceCIDRSpec ServiceCIDRStatus;
            node_v1 "io.k8s.api.node.v1":
                Overhead RuntimeClass Scheduling;
            policy_v1 "io.k8s.api.policy.v1":
                Eviction PodDisruptionBudget PodDisruptionBudgetSpec PodDisruptionBudgetStatus;
            rbac_v1 "io.k8s.api.rbac.v1":
                AggregationRule ClusterRole ClusterRoleBinding PolicyRule Role RoleBinding RoleRef Subject;
            resource_v1 "io.k8s.api.resource.v1":
                AllocatedDeviceStatus AllocationResult CELDeviceSelector CapacityRequestPolicy CapacityRequestPolicyRange CapacityRequirements
                Counter CounterSet Device DeviceAllocationConfiguration DeviceAllocationResult DeviceAttribute DeviceCapacity DeviceClaim
                DeviceClaimConfiguration DeviceClass DeviceClassConfiguration DeviceClassSpec DeviceConstraint DeviceCounterConsumption
                DeviceRequest DeviceRequestAllocationResult DeviceSelector DeviceSubRequest DeviceTaint DeviceToleration ExactDeviceRequest
                NetworkDeviceData OpaqueDeviceConfiguration ResourceClaim ResourceClaimConsumerReference ResourceClaimSpec ResourceClaimStatus
                ResourceClaimTemplate ResourceClaimTemplateSpec ResourcePool ResourceSlice ResourceSliceSpec;
            scheduling_v1 "io.k8s.api.scheduling.v1":
                PriorityClass;
            storage_v1 "io.k8s.api.storage.v1":
                CSIDriver CSIDriverSpec CSINode CSINodeDriver CSINodeSpec CSIStorageCapacity StorageClass TokenRequest VolumeAttachment
                VolumeAttachmentSource VolumeAttachmentSpec VolumeAttachmentStatus VolumeAttributesClass VolumeError VolumeNodeResources;
        }
    };
}

/// Calls a macro with the paths of all of them.
macro_rules! kubernetes_paths {
    ([$callback:ident] $($module:ident $package:literal: $($type:ident)+;)+) => {
        $callback! { $($($crate::walk::kubernetes::$module::$type,)+)+ }
    };
}

pub(crate) use {kubernetes_paths, kubernetes_types};
