//! The webhook server of an installation.

use serde_json::{Value, json};

use super::{Labels, add_labels};
use crate::{
    admission::{Handler, WebhookKind},
    convert::Conversion,
    document::{WebhookService, rbac::Grant, webhook_configuration},
    rbac::{CONVERSIONS, RbacRule, webhook_server},
};

/// The webhook server of an operator, and who calls it.
#[derive(Clone)]
pub struct Webhooks {
    /// Name of the Service that API servers call. Where another name stands in the configurations, the server replaces it.
    pub service: String,
    /// Port of the server in the pods.
    pub port: u16,
    /// Folder of the certificates; a volume in memory.
    pub certificates: String,
    /// Name of the Secret with the certificates.
    pub secret: String,
    /// Name of the MutatingWebhookConfiguration that the server keeps right.
    pub mutating: String,
    /// Name of the ValidatingWebhookConfiguration that the server keeps right.
    pub validating: String,
    /// Whether [variables](Self::variables) of the Deployment name the server's objects; not where the program knows their names.
    pub named_by_variables: bool,
    /// What the handlers may do. What the server needs for its certificates, its configurations and conversions is added.
    pub rules: Vec<RbacRule>,
    /// The kinds whose objects the server converts between their versions.
    pub conversions: &'static [Conversion],
    /// The webhook configurations, whatever their names are; they are applied under `mutating` and `validating`.
    pub configurations: Vec<Value>,
}

impl Webhooks {
    /// The server of these handlers, with the permissions that they declare. Its Service and both configurations have the name of the
    /// program, and its Secret is called `NAME-certs`.
    pub fn of<C: ?Sized>(name: &str, namespace: &str, handlers: &[Handler<C>]) -> Self {
        let service = WebhookService { namespace, name, ca_bundle: "" };
        let kinds = [WebhookKind::Mutating, WebhookKind::Validating];
        let configurations = kinds.map(|kind| without_authority(webhook_configuration(kind, name, handlers, &service)));
        let has_entries =
            |configuration: &Value| configuration["webhooks"].as_array().is_some_and(|all| !all.is_empty());
        Self {
            service: name.to_owned(),
            port: 9443,
            certificates: format!("/run/{name}-certs"),
            secret: format!("{name}-certs"),
            mutating: name.to_owned(),
            validating: name.to_owned(),
            named_by_variables: true,
            rules: handlers.iter().flat_map(|handler| handler.rbac).copied().collect(),
            conversions: &[],
            configurations: configurations.into_iter().filter(has_entries).collect(),
        }
    }

    /// The environment variables that name the server's objects, each with its value.
    pub fn variables(&self) -> [(&'static str, &str); 4] {
        [
            ("SERVICE_NAME", &self.service),
            ("SECRET_NAME", &self.secret),
            ("MUTATING_WEBHOOK_NAME", &self.mutating),
            ("VALIDATING_WEBHOOK_NAME", &self.validating),
        ]
    }

    /// What the server and its handlers may do.
    pub(super) fn grants(&self) -> Vec<Grant<'_>> {
        let [create, secret, mutating, validating] = webhook_server(&[], &[], &[]);
        let own = [
            Grant::from(create),
            Grant::of_one(secret, &self.secret),
            Grant::of_one(mutating, &self.mutating),
            Grant::of_one(validating, &self.validating),
        ];
        let conversions = (!self.conversions.is_empty()).then_some(CONVERSIONS);
        own.into_iter().chain(self.rules.iter().copied().chain(conversions).map(Grant::from)).collect()
    }

    /// Where API servers find the server.
    pub(super) fn at<'a>(&'a self, namespace: &'a str) -> WebhookService<'a> {
        WebhookService { namespace, name: &self.service, ca_bundle: "" }
    }

    /// Whether the objects of a definition are converted by the server.
    pub(super) fn converts(&self, definition: &Value) -> bool {
        let name = &definition["metadata"]["name"];
        self.conversions.iter().any(|conversion| *name == conversion.definition_name())
    }

    /// The configurations with the labels of the installation, under the names that the server keeps right.
    pub(super) fn objects(&self, labels: &Labels) -> impl Iterator<Item = Value> {
        self.configurations.iter().cloned().map(|mut configuration| {
            let name = match configuration["kind"].as_str() {
                Some("MutatingWebhookConfiguration") => Some(&self.mutating),
                Some("ValidatingWebhookConfiguration") => Some(&self.validating),
                _ => None,
            };
            if let Some(name) = name {
                configuration["metadata"]["name"] = json!(name);
            }
            add_labels(&mut configuration["metadata"], labels);
            configuration
        })
    }
}

/// The server puts its authority there; applying the configuration again must not take it away.
fn without_authority(mut configuration: Value) -> Value {
    for entry in configuration["webhooks"].as_array_mut().into_iter().flatten() {
        if let Some(client) = entry["clientConfig"].as_object_mut() {
            client.remove("caBundle");
        }
    }
    configuration
}
