//! What is around the agent in the program: watches, the kubelet, writes, time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use koord_koordlet_framework::Node;
use koord_runtime::{
    Core,
    api::Api,
    cache::Change,
    changes::{ChangeSender, ChangeStream, changes},
    clock::SharedClock,
    events::EventSink,
    manager::Manager,
    reflector::Selection,
    store::Store,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    agent::{Agent, Now},
    container_stopper::Runtimes,
    exchange::{Effect, Input, KubeletFailure, Object},
    kubelet_client::KubeletClient,
    objects::{ClaimObject, DeviceObject, Kept, MetricObject, SloObject, TopologyObject, View},
};

/// Inputs that are taken at a time.
const INPUTS_MAX: usize = 1024;
/// The component in events.
pub const COMPONENT: &str = "koordlet";
/// Longest wait: by then the agent looks around again, whatever it said.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// The objects of the node as a stream of inputs.
pub struct Feed {
    stream: ChangeStream<Input>,
}

impl Feed {
    /// Watches the objects of a node: each by its name, and claims of all namespaces where volumes are looked up.
    pub fn of(core: &mut Core, node_name: &str, reads_claims: bool) -> Self {
        let (sender, stream) = changes();
        let by_name = Selection { fields: format!("metadata.name={node_name}"), ..Selection::default() };
        follow::<Node>(core, &sender, &by_name, Object::Node);
        follow::<SloObject>(core, &sender, &by_name, Object::Slo);
        follow::<MetricObject>(core, &sender, &by_name, Object::Metric);
        follow::<TopologyObject>(core, &sender, &by_name, Object::Topology);
        follow::<DeviceObject>(core, &sender, &by_name, Object::Device);
        if reads_claims {
            let store: Arc<Store<View<ClaimObject>>> = core.store(&Selection::default());
            sender.follow(&store, |change: &Change<View<ClaimObject>>| {
                // A claim that is gone is of a pod that is, too.
                let claim = change.new.as_ref()?;
                Some(Input::Object(Object::Claim(Arc::clone(&claim.value.0))))
            });
        }
        // Without Koordinator's definitions the agent goes on, and finds the objects when they come.
        for watch in core.watches() {
            if watch.kind != Node::KIND {
                watch.set_optional("the part of koordlet that reads it".to_owned());
            }
        }
        Self { stream }
    }
}

fn follow<T: Kept>(
    core: &mut Core,
    sender: &ChangeSender<Input>,
    selection: &Selection,
    object: fn(Option<Arc<T>>) -> Object,
) {
    let store: Arc<Store<View<T>>> = core.store(selection);
    sender.follow(&store, move |change: &Change<View<T>>| {
        Some(Input::Object(object(change.new.as_ref().map(|entry| Arc::clone(&entry.value.0)))))
    });
}

/// The agent with what it needs from outside.
pub struct Worker {
    agent: Arc<Mutex<Agent>>,
    feed: Feed,
    outside: Outside,
    answers: mpsc::UnboundedReceiver<Input>,
    core_is_synced: Box<dyn Fn() -> bool + Send + Sync>,
    is_listed: bool,
}

/// Does what the agent asks.
#[derive(Clone)]
struct Outside {
    kubelet: Arc<KubeletClient>,
    runtimes: Runtimes,
    events: Arc<dyn EventSink>,
    clock: SharedClock,
    inputs: mpsc::UnboundedSender<Input>,
}

impl Worker {
    /// Joins an agent with its feed.
    pub fn new(agent: Arc<Mutex<Agent>>, feed: Feed, kubelet: KubeletClient, runtimes: Runtimes, core: &Core) -> Self {
        let (inputs, answers) = mpsc::unbounded_channel();
        let caches = core.caches().clone();
        Self {
            agent,
            feed,
            outside: Outside {
                kubelet: Arc::new(kubelet),
                runtimes,
                events: Arc::clone(core.events()),
                clock: Arc::clone(core.clock()),
                inputs,
            },
            answers,
            core_is_synced: Box::new(move || caches.incomplete().is_empty()),
            is_listed: false,
        }
    }

    /// Where parts of the program put what comes from outside.
    pub fn inputs(&self) -> mpsc::UnboundedSender<Input> {
        self.outside.inputs.clone()
    }

    /// Runs the agent until the token is cancelled.
    async fn run(&mut self, api: &Api, end: &CancellationToken) {
        let mut node: Option<Arc<Node>> = None;
        loop {
            let now = self.outside.now();
            let wait = self.agent.lock().due().since(now.moment).min(IDLE_MAX);
            let sleep = self.outside.clock.sleep(wait);
            tokio::select! {
                biased;
                () = end.cancelled() => return self.agent.lock().stop(self.outside.now()),
                inputs = self.feed.stream.next(INPUTS_MAX) => self.take(inputs, &mut node),
                input = self.answers.recv() => self.take(input, &mut node),
                () = sleep => {}
            }
            if !self.is_listed && (self.core_is_synced)() {
                self.is_listed = true;
                let rest = self.feed.stream.take(INPUTS_MAX);
                self.take(rest, &mut node);
                self.take([Input::Listed], &mut node);
            }
            let started = Instant::now();
            let clock = Arc::clone(&self.outside.clock);
            let effects = self.agent.lock().run(self.outside.now(), &|| clock.moment());
            if started.elapsed() > Duration::from_millis(500) {
                tracing::warn!(milliseconds = started.elapsed().as_millis(), "a round of the agent took long");
            }
            for effect in effects {
                self.outside.carry_out(effect, api, node.as_ref());
            }
        }
    }

    fn take(&mut self, inputs: impl IntoIterator<Item = Input>, node: &mut Option<Arc<Node>>) {
        let now = self.outside.now();
        let mut agent = self.agent.lock();
        for input in inputs {
            if let Input::Object(Object::Node(new)) = &input {
                node.clone_from(new);
            }
            agent.handle(input, now);
        }
    }
}

impl Outside {
    fn now(&self) -> Now {
        Now { moment: self.clock.moment(), time: self.clock.now() }
    }

    /// Does one thing; an answer comes as an input.
    fn carry_out(&self, effect: Effect, api: &Api, node: Option<&Arc<Node>>) {
        let inputs = self.inputs.clone();
        // An answer that no task takes any more is dropped.
        let answer = move |input| drop(inputs.send(input));
        match effect {
            Effect::AskKubelet(path) => {
                let (kubelet, node) = (Arc::clone(&self.kubelet), node.cloned());
                tokio::spawn(async move {
                    let result = match node {
                        Some(node) => kubelet.get(&node, path).await,
                        None => Err(KubeletFailure { status: None, reason: "the node is not known yet".to_owned() }),
                    };
                    answer(Input::Kubelet { path, result });
                });
            }
            Effect::Write { id, write } => {
                let api = api.clone();
                tokio::spawn(async move {
                    let result = match api.write(&write).await {
                        Ok(answer) => Ok((answer.code, answer.body)),
                        // Refused because the object has changed since it was read.
                        Err(error) if error.stale => Ok((409, error.message)),
                        Err(error) => Err(error.message),
                    };
                    answer(Input::Written { id, result });
                });
            }
            Effect::Event(event) => self.events.record(COMPONENT, event),
            Effect::StopContainer { id, container } => {
                let runtimes = self.runtimes.clone();
                tokio::spawn(async move {
                    let result = runtimes.stop(&container).await;
                    answer(Input::Stopped { id, result });
                });
            }
        }
    }
}

/// Gives the agent's task to the manager.
pub fn install(worker: Worker, manager: &mut Manager) {
    let worker = Arc::new(tokio::sync::Mutex::new(worker));
    manager.on_every_replica("agent", move |api, end| {
        let worker = Arc::clone(&worker);
        async move { worker.lock().await.run(&api, &end).await }
    });
}
