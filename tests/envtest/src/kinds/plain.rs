//! Kinds whose only own rules are which half a request writes and when the generation moves.

use serde_json::Value;

use crate::{
    names::NameRule,
    strategy::{Generation, Strategy},
};

/// A kind without further rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple {
    pub(super) status: bool,
    pub(super) generation: Generation,
    pub(super) returns_deleted: bool,
    pub(super) creates_on_update: bool,
    pub(super) name_rule: NameRule,
}

impl Default for Simple {
    fn default() -> Self {
        Self {
            status: false,
            generation: Generation::Untracked,
            returns_deleted: false,
            creates_on_update: false,
            name_rule: NameRule::Subdomain,
        }
    }
}

impl Strategy for Simple {
    fn name_rule(&self) -> NameRule {
        self.name_rule
    }

    fn generation(&self) -> Generation {
        self.generation
    }

    fn has_status(&self) -> bool {
        self.status
    }

    fn creates_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn returns_deleted(&self) -> bool {
        self.returns_deleted
    }
}

/// Webhook configurations: each webhook has many defaults.
pub(super) struct WebhookConfigurations {
    pub(super) is_mutating: bool,
}

impl Strategy for WebhookConfigurations {
    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn set_defaults(&self, object: &mut Value) {
        use serde_json::json;

        use super::pod_template::{below, fill, items};
        let Some(object) = object.as_object_mut() else { return };
        for webhook in items(object, "webhooks") {
            fill(webhook, "failurePolicy", json!("Fail"));
            fill(webhook, "matchPolicy", json!("Equivalent"));
            fill(webhook, "namespaceSelector", json!({}));
            fill(webhook, "objectSelector", json!({}));
            fill(webhook, "timeoutSeconds", json!(10));
            if self.is_mutating {
                fill(webhook, "reinvocationPolicy", json!("Never"));
            }
            for rule in items(webhook, "rules") {
                fill(rule, "scope", json!("*"));
            }
            if let Some(service) = below(webhook, "clientConfig").and_then(|config| below(config, "service")) {
                fill(service, "port", json!(443));
            }
        }
    }
}
