//! The feature gates of the manager.

use koord_program::gates::{Gate, Gates, Stage};
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

/// Gates of the original that have no effect here, each with the reason.
const IDLE: [(&str, &str); 4] = [
    (
        "ElasticQuotaIgnorePodOverhead",
        "a pod is charged with its overhead, as in the original; koord-scheduler has this gate",
    ),
    (
        "PriorityTransformer",
        "what a pod is charged to its quota does not follow from its priority; koord-scheduler has this gate",
    ),
    (
        "PreemptionPolicyTransformer",
        "nothing that the manager decides follows from the preemption policy; koord-scheduler has this gate",
    ),
    ("DisablePVCReservation", "it is one of koord-descheduler"),
];

/// Gates that are set otherwise than by default and have no effect, each with the reason.
pub(crate) fn without_effect(gates: &Gates) -> impl Iterator<Item = (&'static str, &'static str)> {
    let changed = gates.iter().filter(|(gate, is_on)| gate.default != *is_on).map(|(gate, _)| gate.name);
    changed.filter_map(|name| IDLE.iter().find(|(idle, _)| *idle == name)).copied()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

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
        for folder in ["bins/koord-manager/src", "webhooks/handlers/src", "controllers/manager/src", "api/types/src"] {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), &mut asked);
        }
        for gate in GATES {
            let is_asked = asked.contains(&format!("{:?}", gate.name));
            let is_idle = IDLE.iter().any(|(idle, _)| *idle == gate.name);
            assert!(is_asked != is_idle, "{}: asked for {is_asked}, without effect {is_idle}", gate.name);
        }
        let gates =
            Gates::parse(GATES, "PriorityTransformer=true,DisablePVCReservation=false,MultiQuotaTree=true").unwrap();
        let named: Vec<_> = without_effect(&gates).map(|(gate, _)| gate).collect();
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
