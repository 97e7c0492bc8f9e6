//! Webhooks that are asked about pods, and that bind them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use koord_api::reservation::Reservation;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Api,
    error::ReconcileError,
    write::{Action, Write},
};
use koord_scheduler_engine::{Attempt, Outcome};
use koord_scheduler_framework::{
    extender::{Answer, ExtenderError, Question},
    pod::Pod,
};

use super::{
    Next, Scheduler,
    work::{Purpose, Work, as_known, bind},
};
use crate::extender::{ExtenderCall, Webhook};

/// A question to webhooks, with the number by which the engine knows it.
pub struct Asking {
    number: u64,
    asked: ExtenderCall,
}

/// The answer to a question of this number.
pub(crate) type Answered = (u64, Answer);

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("number", &self.number).field("question", &self.asked.question).finish()
    }
}

impl Asking {
    /// Asks.
    pub(crate) async fn answer(self) -> Answered {
        (self.number, self.asked.answer().await)
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
    /// The same, with webhooks that take part. The profiles of its engine ask them, and its feed keeps what they are shown.
    pub fn extended_by(mut self, webhooks: Vec<Webhook>) -> Self {
        self.webhooks = webhooks.into_iter().map(Arc::new).collect();
        self
    }

    /// What webhooks are asked about a pod.
    pub(super) fn ask(&mut self, pod: &Pod, number: u64, question: Question) -> Next {
        // The caches of whole objects may be a moment behind.
        let unknown = || format!("pod {} is not known well enough yet to ask extenders about it", pod.key);
        let instead = match &question {
            Question::Nodes(_) => |message: String| Answer::Nodes(Err(ExtenderError { message })),
            Question::Victims(_) => |message: String| Answer::Victims(Err(ExtenderError { message })),
        };
        match self.asked(pod, question).ok_or_else(unknown) {
            Ok(asked) => Next::Ask(Asking { number, asked }),
            Err(unknown) => {
                self.engine.answered(number, instead(unknown));
                Next::Attempted
            }
        }
    }

    fn asked(&self, pod: &Pod, question: Question) -> Option<ExtenderCall> {
        let (objects, cluster) = (self.feed.objects.as_ref()?, self.engine.cluster());
        let interested = self.webhooks.iter().filter(|webhook| webhook.extender.is_interested(&pod.template));
        let webhooks: Vec<Arc<Webhook>> = interested.cloned().collect();
        let (mut nodes, mut victims) = (BTreeMap::new(), BTreeMap::new());
        if webhooks.iter().any(|webhook| !webhook.knows_objects) {
            match &question {
                Question::Nodes(names) => {
                    nodes.extend(names.iter().filter_map(|name| Some((Arc::clone(name), objects.node(name)?))));
                }
                Question::Victims(of_nodes) => {
                    let pods = of_nodes.values().flat_map(|of_node| &of_node.pods).filter_map(|uid| cluster.pod(uid));
                    let pods = pods.map(|placed| &placed.pod);
                    victims.extend(pods.filter_map(|pod| Some((pod.uid.clone(), objects.pod(pod, cluster)?))));
                }
            }
        }
        Some(ExtenderCall { question, pod: objects.pod(pod, cluster)?, nodes, victims, webhooks })
    }

    /// A question was answered.
    pub(crate) fn answered(&mut self, (number, answer): Answered) {
        self.engine.answered(number, answer);
    }

    /// A question has ended in a panic, and its pod would wait for ever.
    pub(crate) fn answer_lost(&mut self) {
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
