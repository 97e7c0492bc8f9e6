//! The cluster that is looked at.

use std::time::Duration;

use http::header;
use jiff::Timestamp;
use koord_runtime::error::in_one_line;
use koord_webhook::Environment;
use kube::Client;
use serde_json::Value;

use super::finding::{Finding, Severity};
use crate::{
    cli::{Check, DoctorArgs},
    connect,
};

/// How long a server may take to answer the first question.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// A cluster that answers.
pub(super) struct Cluster {
    pub(super) client: Client,
    /// The time by which is judged.
    pub(super) now: Timestamp,
    /// As `/version` tells it.
    pub(super) version: Value,
    /// What the server's clock shows.
    pub(super) server_time: Option<Timestamp>,
    /// The names of the webhook server's objects: the manager's environment variables and defaults.
    pub(super) installed: Environment,
}

/// Something that could not be read.
#[derive(Debug)]
pub(super) struct Obstacle {
    pub(super) path: String,
    pub(super) message: String,
    pub(super) forbidden: bool,
}

impl Cluster {
    /// Asks the server for its version; a finding when it cannot be asked.
    pub(super) async fn reach(args: &DoctorArgs) -> Result<Self, Box<Finding>> {
        let unreachable = |problem: String, remedy: &str| {
            let (check, severity) = (Check::Server, Severity::Error);
            Box::new(Finding { check, severity, object: "API server".to_owned(), problem, remedy: remedy.to_owned() })
        };
        let client = connect::client(&args.answer.cluster)
            .await
            .map_err(|error| unreachable(format!("{error:#}"), "name a kubeconfig that works with --kubeconfig"))?;
        let environment = |name: &str| match name {
            "POD_NAMESPACE" => Some(args.namespace.clone()),
            name => std::env::var(name).ok(),
        };
        let installed = Environment::from(environment)
            .map_err(|error| unreachable(error.to_string(), "unset the variable, or set it as koord-manager has it"))?;
        let answer = tokio::time::timeout(ANSWER_MAX, version(&client)).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {ANSWER_MAX:?}")));
        let remedy = "see that the server runs and that kubeconfig and context are right: kubectl cluster-info";
        let (version, server_time) = answer.map_err(|error| unreachable(error, remedy))?;
        Ok(Self { client, now: args.at.unwrap_or_else(Timestamp::now), version, server_time, installed })
    }

    /// An object; none when there is none.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>, Obstacle> {
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| obstacle(path, &error))?;
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(refused(path, &error)),
        }
    }

    /// What the server makes of an object that is not stored, such as a review.
    pub(super) async fn post(&self, path: &str, object: &Value) -> Result<Value, Obstacle> {
        post(&self.client, path, object).await
    }
}

/// See [`Cluster::post`].
pub(super) async fn post(client: &Client, path: &str, object: &Value) -> Result<Value, Obstacle> {
    let request = http::Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(object.to_string().into_bytes()).map_err(|error| obstacle(path, &error))?;
    client.request(request).await.map_err(|error| refused(path, &error))
}

fn obstacle(path: &str, error: &(dyn std::error::Error + 'static)) -> Obstacle {
    Obstacle { path: path.to_owned(), message: in_one_line(error), forbidden: false }
}

fn refused(path: &str, error: &kube::Error) -> Obstacle {
    match error {
        kube::Error::Api(status) => Obstacle {
            path: path.to_owned(),
            message: status.message.clone(),
            forbidden: matches!(status.code, 401 | 403),
        },
        error => obstacle(path, error),
    }
}

/// An obstacle that a list met.
pub(super) fn unlisted(path: &str, error: &anyhow::Error) -> Obstacle {
    match error.downcast_ref::<kube::Error>() {
        Some(error) => refused(path, error),
        None => Obstacle { path: path.to_owned(), message: format!("{error:#}"), forbidden: false },
    }
}

async fn version(client: &Client) -> Result<(Value, Option<Timestamp>), String> {
    let request =
        http::Request::get("/version").body(kube::client::Body::empty()).map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| in_one_line(&error))?;
    let (code, date) = (response.status(), connect::date(response.headers()));
    if !code.is_success() {
        return Err(format!("it answers {code} to /version"));
    }
    let body = response.into_body().collect_bytes().await.map_err(|error| in_one_line(&error))?;
    let version = serde_json::from_slice(&body).map_err(|_| "what answers is no Kubernetes API server".to_owned())?;
    Ok((version, date))
}
