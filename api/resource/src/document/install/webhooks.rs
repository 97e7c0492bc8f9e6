//! The webhook server of an installation.

use serde_json::Value;

use super::{Labels, add_labels};
use crate::{
    admission::{Handler, WebhookKind},
    convert::Conversion,
    document::{WebhookService, webhook_configuration},
};

/// The webhook server of an operator, and who calls it.
#[derive(Clone)]
pub struct Webhooks {
    /// Name of the Service that API servers call.
    pub service: String,
    /// Port of the server in the pods.
    pub port: u16,
    /// Folder of the certificates; a volume in memory.
    pub certificates: String,
    /// Variables that name the server's objects; empty where the program knows their names.
    pub environment: Vec<(String, String)>,
    /// The kinds whose objects the server converts between their versions.
    pub conversions: &'static [Conversion],
    /// The webhook configurations.
    pub configurations: Vec<Value>,
}

impl Webhooks {
    /// The server of these handlers. Its Service and both configurations have the name of the program, and its Secret is called
    /// `NAME-certs`.
    pub fn of<C: ?Sized>(name: &str, namespace: &str, handlers: &[Handler<C>]) -> Self {
        let service = WebhookService { namespace, name, ca_bundle: "" };
        let kinds = [WebhookKind::Mutating, WebhookKind::Validating];
        let configurations = kinds.map(|kind| without_authority(webhook_configuration(kind, name, handlers, &service)));
        let has_entries =
            |configuration: &Value| configuration["webhooks"].as_array().is_some_and(|all| !all.is_empty());
        let variable = |variable: &str, value: &str| (variable.to_owned(), value.to_owned());
        Self {
            service: name.to_owned(),
            port: 9443,
            certificates: format!("/run/{name}-certs"),
            environment: vec![
                variable("SERVICE_NAME", name),
                variable("SECRET_NAME", &format!("{name}-certs")),
                variable("MUTATING_WEBHOOK_NAME", name),
                variable("VALIDATING_WEBHOOK_NAME", name),
            ],
            conversions: &[],
            configurations: configurations.into_iter().filter(has_entries).collect(),
        }
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

    /// The configurations with the labels of the installation.
    pub(super) fn labelled(&self, labels: &Labels) -> impl Iterator<Item = Value> {
        self.configurations.iter().cloned().map(|mut configuration| {
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
