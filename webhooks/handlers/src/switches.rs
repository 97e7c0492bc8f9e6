//! Feature gates that the handlers ask for.

/// Feature gates that the handlers ask for, looked up once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    /// `ColocationProfileSkipMutatingResources`
    pub skip_mutating_resources: bool,
    /// `ColocationProfileSkipValidatingPriority`
    pub skip_validating_priority: bool,
    /// `DisableExtendedResourceSpec`
    pub disable_extended_resource_spec: bool,
    /// `DisableDeviceResourceSpec`
    pub disable_device_resource_spec: bool,
    /// `MultiQuotaTree`
    pub multi_quota_tree: bool,
    /// `ValidatePodDeviceResource`
    pub validate_pod_device_resource: bool,
    /// `EnablePodEnhancedValidator`
    pub pod_enhanced_validator: bool,
    /// `BindingAdmissionWebhook`
    pub binding_admission: bool,
    /// `SupportParentQuotaSubmitPod`
    pub support_parent_quota_submit_pod: bool,
    /// `DisableDefaultQuota`
    pub disable_default_quota: bool,
    /// `ElasticQuotaEnableUpdateResourceKey`
    pub update_quota_resource_keys: bool,
    /// `ElasticQuotaGuaranteeUsage`
    pub guarantee_quota_usage: bool,
    /// `EnableQuotaAdmission`
    pub quota_admission: bool,
    /// `EnableQuotaAdmissionOnUpdate`
    pub quota_admission_on_update: bool,
    /// `ElasticQuotaEvaluationTransformPod` and `ReplaceResourcesTransformer`
    pub replace_resources: bool,
}

impl Switches {
    /// The state of the gates.
    pub fn of(gate: impl Fn(&str) -> bool) -> Self {
        Self {
            skip_mutating_resources: gate("ColocationProfileSkipMutatingResources"),
            skip_validating_priority: gate("ColocationProfileSkipValidatingPriority"),
            disable_extended_resource_spec: gate("DisableExtendedResourceSpec"),
            disable_device_resource_spec: gate("DisableDeviceResourceSpec"),
            multi_quota_tree: gate("MultiQuotaTree"),
            validate_pod_device_resource: gate("ValidatePodDeviceResource"),
            pod_enhanced_validator: gate("EnablePodEnhancedValidator"),
            binding_admission: gate("BindingAdmissionWebhook"),
            support_parent_quota_submit_pod: gate("SupportParentQuotaSubmitPod"),
            disable_default_quota: gate("DisableDefaultQuota"),
            update_quota_resource_keys: gate("ElasticQuotaEnableUpdateResourceKey"),
            guarantee_quota_usage: gate("ElasticQuotaGuaranteeUsage"),
            quota_admission: gate("EnableQuotaAdmission"),
            quota_admission_on_update: gate("EnableQuotaAdmissionOnUpdate"),
            replace_resources: gate("ElasticQuotaEvaluationTransformPod") && gate("ReplaceResourcesTransformer"),
        }
    }
}
