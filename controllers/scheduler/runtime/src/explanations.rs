//! Answers ScheduleExplanations, and creates them for waiting pods where configured.
//!
//! An explanation is computed on a copy of the engine, which the scheduler makes between two attempts; what is found out there
//! costs it nothing. Each object is answered at once and then once a minute, until its time is over.

mod answer;
mod domains;
mod template;
mod view;

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_resource::{
    controller,
    controller::{ControllerSpec, ResourceKind},
};
use koord_runtime::{
    Core,
    cache::{Change, Entry},
    controller::{Controller, Requests},
    effect::{EffectError, EffectLimits, Effects, Progress},
    error::ReconcileError,
    key::ObjectKey,
    outcome::Outcome,
    store::Store,
    write::{Action, Write},
};
use koord_scheduler_framework::{labels::Labels, pod::Pod};
use koord_types::{
    gang::name_of_pod,
    schedule_explanation::{ScheduleExplanation, ScheduleExplanationStatus},
};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use self::{
    answer::answer,
    template::PodMaker,
    view::{ExplanationView, PriorityClassView},
};
use crate::{
    reader::EngineReader,
    transform::{Transformers, WithPods},
    view::PodViewBy,
};

/// The component of its events.
const COMPONENT: &str = "koord-scheduler";
/// How long an answer holds.
const HOLDS: Duration = Duration::from_mins(1);
/// How long an explanation stays that was written for a pod that waits.
const TTL_OF_WAITING: &str = "1h";
/// One answer after the other, one a second: each needs a copy of what the scheduler knows.
const LIMITS: EffectLimits = EffectLimits { concurrency: 1, per_second: 1.0, burst: 5, ..EffectLimits::DEFAULT };

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ExplanationRequest {
    /// The namespace of the explanation, and so of all pods that it is about.
    namespace: String,
    /// Names pods that exist.
    key: String,
    /// A pod that does not.
    template: Option<Value>,
    /// When this was answered last.
    answered: Option<Timestamp>,
}

/// Answers ScheduleExplanations in their status, and deletes them when their time is over.
#[controller(
    name = "scheduleexplanation",
    for(explanations, writes = [status, create, delete]),
    watches(pods, by = Self::pod_changed),
    reads(priority_classes),
    effects(answers, limits = LIMITS),
    init(written),
)]
pub(crate) struct ExplanationController<const T: u8> {
    explanations: Arc<Store<ExplanationView>>,
    pods: Arc<Store<PodViewBy<T>>>,
    priority_classes: Arc<Store<PriorityClassView>>,
    answers: Arc<Effects<ExplanationRequest, ScheduleExplanationStatus>>,
    reader: EngineReader,
    /// Whether explanations are written for pods that wait.
    writes: bool,
    /// When those of the last minute were written.
    written: Arc<Mutex<BTreeMap<ObjectKey, Timestamp>>>,
}

/// The controller as data, whatever pods it reads.
pub const EXPLANATIONS: ControllerSpec = ExplanationController::<0>::SPEC;

/// Adds the controller, which shares the cache of pods as these transformers make them. `writes` says whether explanations are
/// written for pods and gangs that wait.
pub fn explain(core: &mut Core, reader: EngineReader, transformers: Transformers, writes: bool) {
    transformers.choose(Adding { core, reader, writes });
    // A cluster without the definition asks nothing.
    for watch in core.watches().iter().filter(|watch| watch.kind == ResourceKind::typed::<ScheduleExplanation>()) {
        watch.set_optional("ScheduleExplanations".to_owned());
    }
}

/// Adds the controller for pods of whichever type.
struct Adding<'c> {
    core: &'c mut Core,
    reader: EngineReader,
    writes: bool,
}

impl WithPods for Adding<'_> {
    type Done = ();

    fn with<const T: u8>(self) {
        let Self { core, reader, writes } = self;
        let wired =
            core.add(EXPLANATIONS, COMPONENT, |wiring| ExplanationController::<T>::wire(wiring, reader, writes));
        wired.map_or_else(|never: Infallible| match never {}, drop);
    }
}

impl<const T: u8> ExplanationController<T> {
    /// Asks for an explanation of a pod that waits.
    fn pod_changed(&self, change: &Change<PodViewBy<T>>, requests: &mut Requests) {
        if self.writes
            && let Some(key) = change.new.as_ref().and_then(|entry| explained_by(&change.key, entry))
        {
            requests.enqueue(&key);
        }
    }

    /// The explanation of a pod or gang that waits and has none.
    fn new_explanation(&self, key: &ObjectKey, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::settled();
        let pods = self.pods.read();
        let waits = |pod: &ObjectKey, entry: &Entry<PodViewBy<T>>| explained_by(pod, entry).as_ref() == Some(key);
        let waiting_pod = pods.get(key.as_str()).filter(|entry| waits(key, entry));
        let is_gang = || pods.in_namespace(key.namespace()).any(|(pod, entry)| waits(pod, entry));
        if !self.writes || waiting_pod.is_none() && !is_gang() {
            return outcome;
        }
        let lately =
            self.written.lock().get(key).and_then(|at| at.checked_add(HOLDS).ok()).filter(|until| *until > now);
        if let Some(until) = lately {
            outcome.requeue_after(left(until, now));
            return outcome;
        }
        let kind = ResourceKind::typed::<ScheduleExplanation>();
        let mut metadata = json!({"namespace": key.namespace(), "name": key.name()});
        if let Some(pod) = waiting_pod {
            metadata["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Pod", "name": key.name(), "uid": pod.uid}]);
        }
        let spec = json!({"questionObjectKey": key.name(), "ttl": TTL_OF_WAITING});
        let body = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
        outcome.plan.push(Write { kind, key: key.clone(), action: Action::Create(body) });
        let (written, of) = (Arc::clone(&self.written), key.clone());
        outcome.remember(move || {
            let mut written = written.lock();
            written.retain(|_, at| left(at.saturating_add(HOLDS).unwrap_or(*at), now) > Duration::ZERO);
            written.insert(of, now);
        });
        outcome
    }

    fn explain(
        &self,
        request: ExplanationRequest,
        now: Timestamp,
    ) -> impl Future<Output = Result<ScheduleExplanationStatus, EffectError>> + use<T> {
        let class = request.template.as_ref().and_then(template::priority_class);
        let class = class.and_then(|name| self.priority_classes.read().get(name).map(|class| Arc::clone(&class.value)));
        let reader = self.reader.clone();
        async move {
            let (engine, moment) = reader.copy().await?;
            let answered = tokio::task::spawn_blocking(move || {
                let maker = PodMaker { class: class.as_deref(), transformers: Transformers::of_bits(T) };
                answer(*engine, &request, &maker, moment, now)
            });
            answered.await.map_err(EffectError::new)
        }
    }
}

impl<const T: u8> Controller for ExplanationController<T> {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let explanations = self.explanations.read();
        let Some(entry) = explanations.get(key.as_str()) else { return Ok(self.new_explanation(key, now)) };
        let ExplanationView { spec, status, created } = &*entry.value;
        let mut outcome = Outcome::of(key, entry);
        let over = view::over(spec, *created);
        if over <= now {
            outcome.absent(&explanations, key);
            return Ok(outcome);
        }
        outcome.requeue_after(left(over, now));
        let answered = status.as_ref().and_then(|status| status.last_update_time.as_ref()).map(|time| time.at());
        let due = answered.map(|answered| answered.saturating_add(HOLDS).unwrap_or(Timestamp::MAX));
        if let Some(due) = due.filter(|due| *due > now) {
            outcome.requeue_after(left(due, now));
            return Ok(outcome);
        }
        let request = ExplanationRequest {
            namespace: key.namespace().to_owned(),
            key: spec.question_object_key.clone(),
            template: spec.question_object_template.clone(),
            answered,
        };
        let work = self.explain(request.clone(), now);
        if let Progress::Done(answer) = outcome.effect(&self.answers, key, request, work) {
            outcome.status(&explanations, key, &answer)?;
        }
        Ok(outcome)
    }
}

/// How long it is until a time; nothing where it has passed.
fn left(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}

/// The explanation of a pod that waits: its own, or that of its gang.
fn explained_by<const T: u8>(key: &ObjectKey, entry: &Entry<PodViewBy<T>>) -> Option<ObjectKey> {
    let view = &entry.value.0;
    let pod = &view.pod;
    if pod.deleting || pod.node.is_some() || view.unscheduled().is_none() {
        return None;
    }
    Some(gang_of(pod).unwrap_or_else(|| key.clone()))
}

/// The gang of a pod.
fn gang_of(pod: &Pod) -> Option<ObjectKey> {
    let texts = |texts: &Labels| texts.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (labels, annotations) = (texts(&pod.template.labels), texts(&pod.template.annotations));
    name_of_pod(&labels, &annotations).map(|gang| ObjectKey::new(pod.key.namespace(), gang))
}
