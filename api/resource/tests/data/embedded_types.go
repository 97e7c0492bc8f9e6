// Embeds types of Kubernetes in a custom kind; embedded_types.yaml is the CRD that controller-gen makes of it. Every field is named
// by the OpenAPI definition of its type. In a folder of its own:
//
//	go mod init embedded && go get k8s.io/api@v0.34.13 k8s.io/apimachinery@v0.34.13
//	go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.1 crd:maxDescLen=0 paths=. output:stdout > embedded_types.yaml
//
// +groupName=golden.example.com
// +versionName=v1
package embedded

import (
	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	storage "k8s.io/api/storage/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +kubebuilder:object:root=true
type Embedded struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Spec EmbeddedSpec `json:"spec"`
}

type EmbeddedSpec struct {
	AdmissionMatchResources                             admission.MatchResources                             `json:"io.k8s.api.admissionregistration.v1.MatchResources"`
	AdmissionNamedRuleWithOperations                    admission.NamedRuleWithOperations                    `json:"io.k8s.api.admissionregistration.v1.NamedRuleWithOperations"`
	AdmissionParamRef                                   admission.ParamRef                                   `json:"io.k8s.api.admissionregistration.v1.ParamRef"`
	AdmissionValidatingAdmissionPolicySpec              admission.ValidatingAdmissionPolicySpec              `json:"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec"`
	AdmissionValidatingWebhook                          admission.ValidatingWebhook                          `json:"io.k8s.api.admissionregistration.v1.ValidatingWebhook"`
	AppsControllerRevision                              apps.ControllerRevision                              `json:"io.k8s.api.apps.v1.ControllerRevision"`
	AppsDaemonSetUpdateStrategy                         apps.DaemonSetUpdateStrategy                         `json:"io.k8s.api.apps.v1.DaemonSetUpdateStrategy"`
	AppsDeploymentStrategy                              apps.DeploymentStrategy                              `json:"io.k8s.api.apps.v1.DeploymentStrategy"`
	AppsStatefulSetOrdinals                             apps.StatefulSetOrdinals                             `json:"io.k8s.api.apps.v1.StatefulSetOrdinals"`
	AppsStatefulSetPersistentVolumeClaimRetentionPolicy apps.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy"`
	AppsStatefulSetStatus                               apps.StatefulSetStatus                               `json:"io.k8s.api.apps.v1.StatefulSetStatus"`
	AppsStatefulSetUpdateStrategy                       apps.StatefulSetUpdateStrategy                       `json:"io.k8s.api.apps.v1.StatefulSetUpdateStrategy"`
	Autoscalingv1ScaleSpec                              autoscalingv1.ScaleSpec                              `json:"io.k8s.api.autoscaling.v1.ScaleSpec"`
	AutoscalingHorizontalPodAutoscalerSpec              autoscaling.HorizontalPodAutoscalerSpec              `json:"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec"`
	BatchCronJobSpec                                    batch.CronJobSpec                                    `json:"io.k8s.api.batch.v1.CronJobSpec"`
	CoordinationLeaseSpec                               coordination.LeaseSpec                               `json:"io.k8s.api.coordination.v1.LeaseSpec"`
	CoreConfigMap                                       core.ConfigMap                                       `json:"io.k8s.api.core.v1.ConfigMap"`
	CoreEvent                                           core.Event                                           `json:"io.k8s.api.core.v1.Event"`
	CoreEndpointAddress                                 core.EndpointAddress                                 `json:"io.k8s.api.core.v1.EndpointAddress"`
	CoreEndpointPort                                    core.EndpointPort                                    `json:"io.k8s.api.core.v1.EndpointPort"`
	CoreLimitRangeSpec                                  core.LimitRangeSpec                                  `json:"io.k8s.api.core.v1.LimitRangeSpec"`
	CoreLocalObjectReference                            core.LocalObjectReference                            `json:"io.k8s.api.core.v1.LocalObjectReference"`
	CoreNamespaceSpec                                   core.NamespaceSpec                                   `json:"io.k8s.api.core.v1.NamespaceSpec"`
	CoreNodeAffinity                                    core.NodeAffinity                                    `json:"io.k8s.api.core.v1.NodeAffinity"`
	CoreNodeConfigSource                                core.NodeConfigSource                                `json:"io.k8s.api.core.v1.NodeConfigSource"`
	CoreNodeRuntimeHandler                              core.NodeRuntimeHandler                              `json:"io.k8s.api.core.v1.NodeRuntimeHandler"`
	CoreNodeSelector                                    core.NodeSelector                                    `json:"io.k8s.api.core.v1.NodeSelector"`
	CoreObjectReference                                 core.ObjectReference                                 `json:"io.k8s.api.core.v1.ObjectReference"`
	CorePersistentVolumeClaim                           core.PersistentVolumeClaim                           `json:"io.k8s.api.core.v1.PersistentVolumeClaim"`
	CorePersistentVolumeSpec                            core.PersistentVolumeSpec                            `json:"io.k8s.api.core.v1.PersistentVolumeSpec"`
	CorePodCondition                                    core.PodCondition                                    `json:"io.k8s.api.core.v1.PodCondition"`
	CorePodDNSConfig                                    core.PodDNSConfig                                    `json:"io.k8s.api.core.v1.PodDNSConfig"`
	CoreReplicationControllerStatus                     core.ReplicationControllerStatus                     `json:"io.k8s.api.core.v1.ReplicationControllerStatus"`
	CoreResourceQuotaSpec                               core.ResourceQuotaSpec                               `json:"io.k8s.api.core.v1.ResourceQuotaSpec"`
	CoreSecret                                          core.Secret                                          `json:"io.k8s.api.core.v1.Secret"`
	CoreSecretReference                                 core.SecretReference                                 `json:"io.k8s.api.core.v1.SecretReference"`
	CoreServiceSpec                                     core.ServiceSpec                                     `json:"io.k8s.api.core.v1.ServiceSpec"`
	CoreServiceStatus                                   core.ServiceStatus                                   `json:"io.k8s.api.core.v1.ServiceStatus"`
	CoreTaint                                           core.Taint                                           `json:"io.k8s.api.core.v1.Taint"`
	CoreToleration                                      core.Toleration                                      `json:"io.k8s.api.core.v1.Toleration"`
	DiscoveryEndpoint                                   discovery.Endpoint                                   `json:"io.k8s.api.discovery.v1.Endpoint"`
	DiscoveryEndpointPort                               discovery.EndpointPort                               `json:"io.k8s.api.discovery.v1.EndpointPort"`
	FlowcontrolFlowSchemaSpec                           flowcontrol.FlowSchemaSpec                           `json:"io.k8s.api.flowcontrol.v1.FlowSchemaSpec"`
	FlowcontrolLimitedPriorityLevelConfiguration        flowcontrol.LimitedPriorityLevelConfiguration        `json:"io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration"`
	NetworkingIngressClassSpec                          networking.IngressClassSpec                          `json:"io.k8s.api.networking.v1.IngressClassSpec"`
	NetworkingIngressSpec                               networking.IngressSpec                               `json:"io.k8s.api.networking.v1.IngressSpec"`
	NetworkingIngressStatus                             networking.IngressStatus                             `json:"io.k8s.api.networking.v1.IngressStatus"`
	NetworkingNetworkPolicySpec                         networking.NetworkPolicySpec                         `json:"io.k8s.api.networking.v1.NetworkPolicySpec"`
	NodeOverhead                                        node.Overhead                                        `json:"io.k8s.api.node.v1.Overhead"`
	NodeScheduling                                      node.Scheduling                                      `json:"io.k8s.api.node.v1.Scheduling"`
	PolicyPodDisruptionBudgetSpec                       policy.PodDisruptionBudgetSpec                       `json:"io.k8s.api.policy.v1.PodDisruptionBudgetSpec"`
	RbacAggregationRule                                 rbac.AggregationRule                                 `json:"io.k8s.api.rbac.v1.AggregationRule"`
	RbacPolicyRule                                      rbac.PolicyRule                                      `json:"io.k8s.api.rbac.v1.PolicyRule"`
	RbacRoleRef                                         rbac.RoleRef                                         `json:"io.k8s.api.rbac.v1.RoleRef"`
	RbacSubject                                         rbac.Subject                                         `json:"io.k8s.api.rbac.v1.Subject"`
	ResourceAllocatedDeviceStatus                       resource.AllocatedDeviceStatus                       `json:"io.k8s.api.resource.v1.AllocatedDeviceStatus"`
	ResourceDevice                                      resource.Device                                      `json:"io.k8s.api.resource.v1.Device"`
	ResourceDeviceClassSpec                             resource.DeviceClassSpec                             `json:"io.k8s.api.resource.v1.DeviceClassSpec"`
	ResourceResourceClaimTemplateSpec                   resource.ResourceClaimTemplateSpec                   `json:"io.k8s.api.resource.v1.ResourceClaimTemplateSpec"`
	StorageCSIDriverSpec                                storage.CSIDriverSpec                                `json:"io.k8s.api.storage.v1.CSIDriverSpec"`
	StorageCSINodeSpec                                  storage.CSINodeSpec                                  `json:"io.k8s.api.storage.v1.CSINodeSpec"`
	StorageStorageClass                                 storage.StorageClass                                 `json:"io.k8s.api.storage.v1.StorageClass"`
	MetaDeleteOptions                                   meta.DeleteOptions                                   `json:"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"`
	MetaOwnerReference                                  meta.OwnerReference                                  `json:"io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"`
	MetaLabelSelector                                   meta.LabelSelector                                   `json:"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"`
	MetaObjectMeta                                      meta.ObjectMeta                                      `json:"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"`
	MetaCondition                                       meta.Condition                                       `json:"io.k8s.apimachinery.pkg.apis.meta.v1.Condition"`
	MetaTime                                            meta.Time                                            `json:"io.k8s.apimachinery.pkg.apis.meta.v1.Time"`
	MetaMicroTime                                       meta.MicroTime                                       `json:"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"`
	QuantityQuantity                                    quantity.Quantity                                    `json:"io.k8s.apimachinery.pkg.api.resource.Quantity"`
	RuntimeRawExtension                                 runtime.RawExtension                                 `json:"io.k8s.apimachinery.pkg.runtime.RawExtension"`
	IntstrIntOrString                                   intstr.IntOrString                                   `json:"io.k8s.apimachinery.pkg.util.intstr.IntOrString"`
}
