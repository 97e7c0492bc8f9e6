//! The client of extenders: HTTP calls within limits of time and bytes, with the JSON of `k8s.io/kube-scheduler/extender/v1`.
//!
//! The engine decides when extenders are called and what follows from their results.

mod protocol;
#[cfg(test)]
mod tests;
pub mod verbs;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use koord_runtime::{
    error::{Fault, ReconcileError, in_one_line},
    key::ObjectKey,
    uid::Uid,
};
use koord_scheduler_framework::extender::{
    Extender, ExtenderArgs, ExtenderError, ExtenderResult, NodeVictims, Nodes, Victims,
};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::task::JoinSet;

use self::verbs::{AnswerError, Bind, Filter, Preempt, Prioritize, Verb};

/// A webhook that takes part in scheduling, and the way to it.
#[derive(Clone)]
pub struct Webhook {
    /// What decisions depend on.
    pub extender: Extender,
    /// Sends requests to it: its URL is that of the extender.
    pub client: Client,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long an answer may be.
    pub answer_bytes_max: usize,
    /// Whether it knows all nodes and pods, so that names are enough.
    pub knows_objects: bool,
}

/// A call of extenders, with the objects that they may need.
pub(crate) struct ExtenderCall {
    pub(crate) args: ExtenderArgs,
    /// The pod as it is sent.
    pub(crate) pod: Value,
    /// Nodes by name, where an extender does not know them.
    pub(crate) nodes: BTreeMap<Arc<str>, Value>,
    /// Pods that would be evicted, where an extender does not know them.
    pub(crate) victims: BTreeMap<Uid, Value>,
    /// The extenders that are interested in the pod, in their order.
    pub(crate) webhooks: Vec<Arc<Webhook>>,
}

/// Why the call of an extender has no result.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("Post {url:?}: {source}")]
    Request { url: String, source: RequestError },
    #[error("Post {url:?}: no answer within {timeout:?}")]
    Timeout { url: String, timeout: Duration },
    #[error("failed {verb} with extender at URL {url}, code {code}")]
    Status { verb: String, url: String, code: u16 },
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// Why a request to an extender failed.
#[derive(Debug, Error)]
pub enum RequestError {
    #[error(transparent)]
    Url(#[from] http::Error),
    #[error("{}", in_one_line(.0))]
    Connection(#[source] kube::Error),
    #[error("{}", in_one_line(&**.0))]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl From<CallError> for ExtenderError {
    fn from(error: CallError) -> Self {
        Self { message: error.to_string() }
    }
}

impl Webhook {
    /// The longest answer of an extender: several thousand whole nodes.
    pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

    /// Binds a pod.
    pub(crate) async fn bind(&self, pod: &ObjectKey, uid: &Uid, node: &str) -> Result<(), ReconcileError> {
        let (name, namespace) = (pod.name(), pod.namespace());
        let args = json!({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node});
        // Whoever did not answer in time may have bound the pod: then its watch has said so before.
        let refused = |error: CallError| ReconcileError::new(Fault::User, error.to_string());
        self.send(Bind, &args).await.map_err(refused)
    }

    /// Sends a request, and reads the answer.
    async fn send<V: Verb>(&self, call: V, args: &Value) -> Result<V::Answer, CallError> {
        let (verb, url) = (V::path(&self.extender), verbs::url::<V>(&self.extender));
        let answer = match tokio::time::timeout(self.timeout, self.exchange(verb, args)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(source)) => return Err(CallError::Request { url, source }),
            Err(_) => return Err(CallError::Timeout { url, timeout: self.timeout }),
        };
        let (status, body) = answer;
        if status != StatusCode::OK {
            return Err(CallError::Status { verb: verb.to_owned(), url, code: status.as_u16() });
        }
        Ok(call.check(&self.extender, &body)?)
    }

    async fn exchange(&self, verb: &str, args: &Value) -> Result<(StatusCode, Vec<u8>), RequestError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/{verb}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(args.to_string().into_bytes()))?;
        let answer = self.client.send(request).await.map_err(RequestError::Connection)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), self.answer_bytes_max).collect().await;
        let body = body.map_err(|error| match in_one_line(&*error) {
            text if text.contains("length limit") => RequestError::TooLong(self.answer_bytes_max),
            _ => RequestError::Body(error),
        })?;
        Ok((status, body.to_bytes().to_vec()))
    }
}

impl ExtenderCall {
    /// Calls one extender after the other.
    pub(crate) async fn send(self) -> ExtenderResult {
        match &self.args {
            ExtenderArgs::Nodes(names) => {
                ExtenderResult::Nodes(self.filter_and_prioritize(names).await.map_err(ExtenderError::from))
            }
            ExtenderArgs::Victims(victims) => {
                ExtenderResult::Victims(self.process_preemption(victims.clone()).await.map_err(ExtenderError::from))
            }
        }
    }

    /// Each extender filters the nodes that the one before has left. All of them rate the nodes that are left in the end.
    async fn filter_and_prioritize(&self, names: &[Arc<str>]) -> Result<Nodes, CallError> {
        let requested: BTreeSet<Arc<str>> = names.iter().cloned().collect();
        let mut left = names.to_vec();
        let mut failed = BTreeMap::new();
        for webhook in self.webhooks.iter().filter(|webhook| !webhook.extender.filter.is_empty()) {
            if left.is_empty() {
                break;
            }
            let args = self.about_nodes(webhook, &left);
            let filter = Filter { requested: &requested, left: &left, knows_objects: webhook.knows_objects };
            let filtered = webhook.send(filter, &args).await;
            match filtered {
                Ok((accepted, more)) => {
                    failed.extend(more);
                    left = accepted;
                }
                Err(error) if webhook.extender.is_ignorable => {
                    tracing::warn!(
                        error = error.to_string(),
                        extender = webhook.extender.url,
                        "an extender is passed over"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        let mut accepted: BTreeMap<Arc<str>, i64> = left.iter().map(|name| (Arc::clone(name), 0)).collect();
        // A node without a rival needs no rating.
        if left.len() > 1 {
            for (node, score) in self.ratings(&left).await {
                if let Some(known) = accepted.get_mut(&*node) {
                    *known = verbs::plus(*known, score);
                }
            }
        }
        failed.retain(|node, _| !accepted.contains_key(node));
        Ok(Nodes { requested, accepted, failed })
    }

    /// What extenders add to the scores of nodes. One that fails adds nothing.
    async fn ratings(&self, left: &[Arc<str>]) -> Vec<(String, i64)> {
        let mut calls = JoinSet::new();
        for webhook in self.webhooks.iter().filter(|webhook| !webhook.extender.prioritize.is_empty()) {
            let (webhook, args) = (Arc::clone(webhook), self.about_nodes(webhook, left));
            calls.spawn(async move {
                webhook.send(Prioritize, &args).await.inspect_err(|error| {
                    tracing::warn!(
                        error = error.to_string(),
                        extender = webhook.extender.url,
                        "an extender rates no nodes"
                    );
                })
            });
        }
        let mut ratings = Vec::new();
        while let Some(rated) = calls.join_next().await {
            if let Ok(Ok(scores)) = rated {
                ratings.extend(scores);
            }
        }
        ratings
    }

    fn about_nodes(&self, webhook: &Webhook, left: &[Arc<str>]) -> Value {
        if webhook.knows_objects {
            return json!({"Pod": self.pod, "Nodes": null, "NodeNames": left});
        }
        let items: Vec<&Value> = left.iter().filter_map(|name| self.nodes.get(name)).collect();
        let nodes = json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": items});
        json!({"Pod": self.pod, "Nodes": nodes, "NodeNames": null})
    }

    /// Each extender chooses among the victims that the one before has left.
    async fn process_preemption(&self, mut victims: Victims) -> Result<Victims, CallError> {
        for webhook in self.webhooks.iter().filter(|webhook| !webhook.extender.preempt.is_empty()) {
            if victims.is_empty() {
                break;
            }
            let args = self.about_victims(webhook, &victims);
            match webhook.send(Preempt, &args).await {
                Ok(chosen) => victims = chosen,
                Err(error) if webhook.extender.is_ignorable => {
                    tracing::warn!(
                        error = error.to_string(),
                        extender = webhook.extender.url,
                        "an extender is passed over"
                    );
                }
                Err(error) => {
                    tracing::warn!(
                        error = error.to_string(),
                        extender = webhook.extender.url,
                        "no room is made: an extender fails"
                    );
                    return Err(error);
                }
            }
        }
        Ok(victims)
    }

    fn about_victims(&self, webhook: &Webhook, victims: &Victims) -> Value {
        let of_nodes = |pods: &dyn Fn(&NodeVictims) -> Vec<Value>| -> BTreeMap<Arc<str>, Value> {
            let of_node =
                |of_node: &NodeVictims| json!({"Pods": pods(of_node), "NumPDBViolations": of_node.violations});
            victims.iter().map(|(node, victims)| (Arc::clone(node), of_node(victims))).collect()
        };
        if webhook.knows_objects {
            let named = of_nodes(&|victims| victims.pods.iter().map(|uid| json!({ "UID": uid })).collect());
            return json!({"Pod": self.pod, "NodeNameToVictims": null, "NodeNameToMetaVictims": named});
        }
        let whole = of_nodes(&|victims| victims.pods.iter().filter_map(|uid| self.victims.get(uid)).cloned().collect());
        json!({"Pod": self.pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": null})
    }
}
