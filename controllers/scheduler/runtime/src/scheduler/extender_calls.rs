//! Calls of extenders, and bindings by them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Api,
    error::ReconcileError,
    write::{Action, Write},
};
use koord_scheduler_engine::{Attempt, Outcome};
use koord_scheduler_framework::{
    extender::{ExtenderArgs, ExtenderError, ExtenderResult},
    pod::Pod,
};
use koord_types::reservation::Reservation;

use super::{
    Next, Scheduler,
    work::{Purpose, Work, as_known, bind},
};
use crate::extender::{ExtenderCall, Webhook};

/// A call of the extenders that are interested in a pod, with the number by which the engine knows it.
pub struct NumberedCall {
    number: u64,
    call: ExtenderCall,
}

/// The result of the call of this number.
pub(crate) type FinishedCall = (u64, ExtenderResult);

impl fmt::Debug for NumberedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("number", &self.number).field("question", &self.call.args).finish()
    }
}

impl NumberedCall {
    /// Calls the extenders.
    pub(crate) async fn send(self) -> FinishedCall {
        (self.number, self.call.send().await)
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("extender", &self.extender).finish_non_exhaustive()
    }
}

impl Work {
    /// Sends it.
    pub(crate) async fn send(&self, api: &Api, kind: ResourceKind) -> Result<(), ReconcileError> {
        if let (Purpose::BindBy(webhook, _), Action::Bind { uid, node, .. }) = (&self.purpose, &self.write.action) {
            return webhook.bind(&self.write.key, uid, node).await;
        }
        let api = api.at(self.purpose.priority());
        let answer = if kind == self.write.kind {
            api.write(&self.write).await?
        } else {
            api.write(&Write { kind, ..self.write.clone() }).await?
        };
        self.purpose.answered(&answer.body);
        Ok(())
    }
}

impl Scheduler {
    /// The same, with extenders. The profiles of its engine call them, and its feed caches the objects that are sent to them.
    pub fn extended_by(mut self, webhooks: Vec<Webhook>) -> Self {
        self.webhooks = webhooks.into_iter().map(Arc::new).collect();
        self
    }

    /// Calls extenders about a pod.
    pub(super) fn call_extenders(&mut self, pod: &Pod, number: u64, args: ExtenderArgs) -> Next {
        // The caches of whole objects may be a moment behind.
        let unknown = || format!("pod {} is not known well enough yet to ask extenders about it", pod.key);
        let instead = match &args {
            ExtenderArgs::Nodes(_) => |message: String| ExtenderResult::Nodes(Err(ExtenderError { message })),
            ExtenderArgs::Victims(_) => |message: String| ExtenderResult::Victims(Err(ExtenderError { message })),
        };
        match self.extender_call(pod, args).ok_or_else(unknown) {
            Ok(call) => Next::CallExtenders(NumberedCall { number, call }),
            Err(unknown) => {
                self.engine.extender_call_finished(number, instead(unknown));
                Next::Attempted
            }
        }
    }

    fn extender_call(&self, pod: &Pod, args: ExtenderArgs) -> Option<ExtenderCall> {
        let (objects, cluster) = (self.feed.objects.as_ref()?, self.engine.cluster());
        let interested = self.webhooks.iter().filter(|webhook| webhook.extender.is_interested(&pod.template));
        let webhooks: Vec<Arc<Webhook>> = interested.cloned().collect();
        let (mut nodes, mut victims) = (BTreeMap::new(), BTreeMap::new());
        if webhooks.iter().any(|webhook| !webhook.knows_objects) {
            match &args {
                ExtenderArgs::Nodes(names) => {
                    nodes.extend(names.iter().filter_map(|name| Some((Arc::clone(name), objects.node(name)?))));
                }
                ExtenderArgs::Victims(of_nodes) => {
                    let pods = of_nodes.values().flat_map(|of_node| &of_node.pods).filter_map(|uid| cluster.pod(uid));
                    let pods = pods.map(|placed| &placed.pod);
                    victims.extend(pods.filter_map(|pod| Some((pod.uid.clone(), objects.pod(pod, cluster)?))));
                }
            }
        }
        Some(ExtenderCall { args, pod: objects.pod(pod, cluster)?, nodes, victims, webhooks })
    }

    pub(crate) fn extender_call_finished(&mut self, (number, result): FinishedCall) {
        self.engine.extender_call_finished(number, result);
    }

    /// A call has panicked, and its pod would wait for ever.
    pub(crate) fn extender_call_lost(&mut self) {
        self.is_working = true;
    }

    /// The binding of an attempt, by a webhook where one is interested.
    pub(super) fn bind(&self, attempt: Box<Attempt>) -> Work {
        self.bind_after(attempt, None)
    }

    /// The same, after a write whose answer has this Reservation.
    pub(super) fn bind_after(&self, attempt: Box<Attempt>, answered: Option<&Reservation>) -> Work {
        let webhook = self.binder(&attempt);
        match (bind(attempt), webhook) {
            (Work { write, purpose: Purpose::Bind(attempt) }, Some(webhook)) => {
                Work { write, purpose: Purpose::BindBy(webhook, attempt) }
            }
            (Work { write, purpose: Purpose::Bind(attempt) }, None) => {
                let write = as_known(write, &attempt.pod, self.engine.cluster(), answered);
                Work { write, purpose: Purpose::Bind(attempt) }
            }
            (work, _) => work,
        }
    }

    /// The webhook that binds the pod of an attempt; none where a write does.
    pub(super) fn binder(&self, attempt: &Attempt) -> Option<Arc<Webhook>> {
        let is_plain = matches!(&attempt.outcome, Outcome::Bind { instead: None, .. });
        let binds = |webhook: &&Arc<Webhook>| {
            !webhook.extender.bind.is_empty() && webhook.extender.is_interested(&attempt.pod.template)
        };
        self.webhooks.iter().find(binds).filter(|_| is_plain).cloned()
    }
}
