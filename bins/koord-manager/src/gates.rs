//! The feature gates of the manager.

use koord_program::gates::{Gate, Stage};
use koord_webhooks::DECLARED_WEBHOOKS;

const fn beta(name: &'static str, default: bool) -> Gate {
    Gate { name, default, stage: Stage::Beta }
}

const fn alpha(name: &'static str) -> Gate {
    Gate { name, default: false, stage: Stage::Alpha }
}

/// Every gate that `--feature-gates` takes: those of the original, and `DeclaredWebhooks` for the handlers that it
/// never had, an alias of `--declared-webhooks=enforce` and `=off`.
pub const GATES: &[Gate] = &[
    beta("PodMutatingWebhook", true),
    beta("PodValidatingWebhook", true),
    beta("ElasticMutatingWebhook", true),
    beta("ElasticValidatingWebhook", true),
    beta("WebhookFramework", true),
    alpha("NodeMutatingWebhook"),
    alpha("NodeValidatingWebhook"),
    alpha("ConfigMapValidatingWebhook"),
    alpha("ReservationMutatingWebhook"),
    alpha("ColocationProfileSkipMutatingResources"),
    alpha("ColocationProfileSkipValidatingPriority"),
    alpha("MultiQuotaTree"),
    alpha("ElasticQuotaIgnorePodOverhead"),
    alpha("ElasticQuotaGuaranteeUsage"),
    alpha("ElasticQuotaEnableUpdateResourceKey"),
    alpha("ElasticQuotaEvaluationTransformPod"),
    alpha("DisableDefaultQuota"),
    alpha("SupportParentQuotaSubmitPod"),
    alpha("EnableQuotaAdmission"),
    alpha("EnableQuotaAdmissionOnUpdate"),
    alpha("EnableSyncGPUSharedResource"),
    alpha("ColocationProfileController"),
    alpha("ValidatePodDeviceResource"),
    alpha("EnablePodEnhancedValidator"),
    alpha("DisableExtendedResourceSpec"),
    alpha("DisableDeviceResourceSpec"),
    alpha("BindingAdmissionWebhook"),
    alpha("PriorityTransformer"),
    alpha("PreemptionPolicyTransformer"),
    alpha("ReplaceResourcesTransformer"),
    alpha(DECLARED_WEBHOOKS),
    beta("DisablePVCReservation", false),
];

#[cfg(test)]
mod tests {
    use koord_program::gates::Gates;

    use super::*;

    #[test]
    fn the_beta_gates_of_the_webhooks_are_on_and_everything_else_is_off() {
        let on: Vec<&str> = Gates::new(GATES).iter().filter(|(_, on)| *on).map(|(gate, _)| gate.name).collect();
        assert_eq!(
            on,
            [
                "PodMutatingWebhook",
                "PodValidatingWebhook",
                "ElasticMutatingWebhook",
                "ElasticValidatingWebhook",
                "WebhookFramework"
            ]
        );
    }

    #[test]
    fn gates_that_the_manager_does_not_register_are_refused() {
        let error = Gates::parse(GATES, "ElasticQuotaIgnoreTerminatingPod=true").unwrap_err().to_string();
        assert!(error.starts_with("unrecognized feature gate: ElasticQuotaIgnoreTerminatingPod"), "{error}");
    }
}
