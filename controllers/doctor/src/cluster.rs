//! The cluster that is looked at.

use http::header;
use jiff::Timestamp;
use koord_manager_assembly::webhook_defaults;
use koord_program::{
    connect::{self, Server, Unreachable},
    findings::{Finding, Severity},
    obstacle::Obstacle,
};
use koord_webhook_server::Environment;
use kube::Client;
use serde_json::Value;

use crate::{Check, Options};

/// A cluster that answers.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// The time by which is judged.
    pub(crate) now: Timestamp,
    /// The body of `/version`.
    pub(crate) version: Value,
    /// What the server's clock shows.
    pub(crate) server_time: Option<Timestamp>,
    /// The names of the webhook server's objects: the manager's environment variables and defaults.
    pub(crate) installed: Environment,
}

impl Cluster {
    /// Asks the server for its version; a finding when it cannot be asked.
    pub(crate) async fn reach(options: &Options<'_>) -> Result<Self, Box<Finding>> {
        let unreachable = |problem: String, remedy: &str| {
            let (check, severity) = (Check::Server.name(), Severity::Error);
            Box::new(Finding { check, severity, object: "API server".to_owned(), problem, remedy: remedy.to_owned() })
        };
        let reached = connect::reach(&options.cluster).await;
        let Server { client, time, version, .. } =
            reached.map_err(|Unreachable { problem, remedy }| unreachable(problem, &remedy))?;
        let environment = |name: &str| match name {
            "POD_NAMESPACE" => Some(options.namespace.to_owned()),
            name => std::env::var(name).ok(),
        };
        let installed = Environment::of(webhook_defaults(), environment)
            .map_err(|error| unreachable(error.to_string(), "unset the variable, or set it as koord-manager has it"))?;
        Ok(Self { client, now: options.at.unwrap_or_else(Timestamp::now), version, server_time: time, installed })
    }

    /// An object; none when there is none.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, Obstacle> {
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| Obstacle::new(path, &error))?;
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(Obstacle::refused(path, &error)),
        }
    }

    /// What the server makes of an object that is not stored, such as a review.
    pub(crate) async fn post(&self, path: &str, object: &Value) -> Result<Value, Obstacle> {
        post(&self.client, path, object).await
    }
}

/// What the server makes of an object that is not stored, for tasks that outlive the borrow of a [`Cluster`].
pub(crate) async fn post(client: &Client, path: &str, object: &Value) -> Result<Value, Obstacle> {
    let request = http::Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(object.to_string().into_bytes()).map_err(|error| Obstacle::new(path, &error))?;
    client.request(request).await.map_err(|error| Obstacle::refused(path, &error))
}
