//! The feature gates of the manager.

use koord_program::gates::Gate;
use koord_webhook_handlers::DECLARED_WEBHOOKS;

/// Every gate that `--feature-gates` takes: those of the original, and `DeclaredWebhooks` for the handlers that it
/// never had, an alias of `--declared-webhooks=enforce` and `=off`.
pub const GATES: &[Gate] = &[
    Gate::beta("PodMutatingWebhook", true),
    Gate::beta("PodValidatingWebhook", true),
    Gate::beta("ElasticMutatingWebhook", true),
    Gate::beta("ElasticValidatingWebhook", true),
    Gate::beta("WebhookFramework", true),
    Gate::alpha("NodeMutatingWebhook"),
    Gate::alpha("NodeValidatingWebhook"),
    Gate::alpha("ConfigMapValidatingWebhook"),
    Gate::alpha("ReservationMutatingWebhook"),
    Gate::alpha("ColocationProfileSkipMutatingResources"),
    Gate::alpha("ColocationProfileSkipValidatingPriority"),
    Gate::alpha("MultiQuotaTree"),
    Gate::alpha("ElasticQuotaIgnorePodOverhead")
        .without_effect("a pod is charged with its overhead, as in the original; koord-scheduler has this gate"),
    Gate::alpha("ElasticQuotaGuaranteeUsage"),
    Gate::alpha("ElasticQuotaEnableUpdateResourceKey"),
    Gate::alpha("ElasticQuotaEvaluationTransformPod"),
    Gate::alpha("DisableDefaultQuota"),
    Gate::alpha("SupportParentQuotaSubmitPod"),
    Gate::alpha("EnableQuotaAdmission"),
    Gate::alpha("EnableQuotaAdmissionOnUpdate"),
    Gate::alpha("EnableSyncGPUSharedResource"),
    Gate::alpha("ColocationProfileController"),
    Gate::alpha("ValidatePodDeviceResource"),
    Gate::alpha("EnablePodEnhancedValidator"),
    Gate::alpha("DisableExtendedResourceSpec"),
    Gate::alpha("DisableDeviceResourceSpec"),
    Gate::alpha("BindingAdmissionWebhook"),
    Gate::alpha("PriorityTransformer").without_effect(
        "what a pod is charged to its quota does not follow from its priority; koord-scheduler has this gate",
    ),
    Gate::alpha("PreemptionPolicyTransformer").without_effect(
        "nothing that the manager decides follows from the preemption policy; koord-scheduler has this gate",
    ),
    Gate::alpha("ReplaceResourcesTransformer"),
    Gate::alpha(DECLARED_WEBHOOKS),
    Gate::beta("DisablePVCReservation", false).without_effect("it is one of koord-descheduler"),
];

/// The gate with which nodes offer parts of their GPUs.
pub const GPU_SHARES: &str = "EnableSyncGPUSharedResource";

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use koord_program::gates::Gates;

    use super::*;

    /// The sources below a folder but for this file.
    fn sources(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("gates.rs") {
                let source = fs::read_to_string(&path).unwrap();
                text.push_str(source.split("#[cfg(test)]\nmod tests {").next().unwrap());
            }
        }
    }

    #[test]
    fn every_gate_is_asked_for_or_said_to_have_no_effect() {
        let mut asked = String::new();
        for folder in [
            "controllers/manager/assembly/src",
            "bins/koord-manager/src",
            "webhooks/handlers/src",
            "controllers/manager/controllers/src",
            "api/types/src",
        ] {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(folder), &mut asked);
        }
        for gate in GATES {
            let is_asked = asked.contains(&format!("{:?}", gate.name));
            assert!(is_asked != gate.no_effect.is_some(), "{}: asked for {is_asked}, {:?}", gate.name, gate.no_effect);
        }
        let gates =
            Gates::parse(GATES, "PriorityTransformer=true,DisablePVCReservation=false,MultiQuotaTree=true").unwrap();
        let named: Vec<_> = gates.without_effect().map(|(gate, _)| gate).collect();
        assert_eq!(named, ["PriorityTransformer"]);
    }

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
