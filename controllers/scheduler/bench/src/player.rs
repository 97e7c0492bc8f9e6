//! Plays a scenario: one operation after the other.

mod background;
mod pods;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    objects::Objects,
    pace::Pace,
    pods::{Pods, Seen, selected},
    progress::Bar,
    scenario::{Barrier, CreateAny, CreateNamespaces, CreateNodes, Scenario, Selection, Stage, Step, UpdateAny},
    template::{Dress, Templates, filled, merge},
};

/// What a run needs, and what is known of it.
pub struct Run {
    pub id: String,
    pub scenario: Scenario,
    pub(crate) templates: Templates,
    pub objects: Objects,
    pub pods: Arc<Pods>,
    pub(crate) pace: Pace,
    /// Pods are kept off nodes that are not of this run.
    pub(crate) keeps_off: bool,
    pub(crate) measured: Mutex<Measured>,
    /// Numbers of objects that have no name of their own.
    numbers: AtomicU64,
}

/// What is measured, beside the pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// How many nodes were created.
    pub(crate) nodes: usize,
    /// When the first measured pods were about to be created, or watched.
    pub(crate) begin: Option<Instant>,
    /// How long the creation of the measured pods took.
    pub(crate) creation: Duration,
    /// Pods that get a node between these times are measured.
    window: Option<(Instant, Selection)>,
}

impl Run {
    /// A run of a scenario that has not begun.
    pub fn new(id: String, scenario: Scenario, objects: Objects, qps: Option<u32>, keeps_off: bool) -> Self {
        let limit = qps.or(scenario.client_qps).unwrap_or(0);
        let pace = Pace::new(limit, scenario.client_burst.unwrap_or(limit).max(1));
        let templates = Templates::of(&scenario);
        let (pods, measured, numbers) = (Pods::shared(), Mutex::default(), AtomicU64::new(0));
        Self { id, scenario, templates, objects, pods, pace, keeps_off, measured, numbers }
    }

    /// Plays the scenario until every pod that it waits for has its node.
    pub async fn play(self: &Arc<Self>) -> Result<()> {
        let mut background = JoinSet::new();
        self.pods.followed().await;
        for step in self.scenario.steps() {
            self.step(step, &mut background).await?;
            // What goes on beside it has failed for good.
            while let Some(ended) = background.try_join_next() {
                ended??;
            }
        }
        self.stop_measuring();
        Ok(())
    }

    async fn step(self: &Arc<Self>, step: Step, background: &mut JoinSet<Result<()>>) -> Result<()> {
        match step {
            Step::CreateNodes(nodes) => self.create_nodes(&nodes).await,
            Step::CreateNamespaces(namespaces) => self.create_namespaces(&namespaces).await,
            Step::CreatePods(pods) => self.create_pods(&pods, &self.scenario.namespace).await,
            Step::CreatePodSets(sets) => {
                for index in 0..sets.count {
                    self.create_pods(&sets.create_pods, &format!("{}-{index}", sets.namespace_prefix)).await?;
                }
                Ok(())
            }
            Step::CreateAny(any) => self.create_any(&any).await,
            Step::UpdateAny(any) => self.update_any(&any).await,
            Step::DeletePods(deletion) => {
                let keys = self.keys_to_delete(&deletion);
                let deleting = Arc::clone(self).delete_pods(deletion.per_second, keys);
                if deletion.skip_wait_to_completion {
                    background.spawn(deleting);
                    return Ok(());
                }
                deleting.await
            }
            Step::Churn(churn) => {
                background.spawn(Arc::clone(self).churn(churn));
                Ok(())
            }
            Step::Barrier(barrier) => {
                self.barrier(barrier).await;
                Ok(())
            }
            Step::Sleep(span) => {
                tokio::time::sleep(span.to_std().unwrap_or_default()).await;
                Ok(())
            }
            Step::StartCollectingMetrics(selection) => {
                let now = Instant::now();
                let mut measured = self.measured.lock();
                measured.begin.get_or_insert(now);
                measured.window = Some((now, selection));
                Ok(())
            }
            Step::StopCollectingMetrics => {
                self.stop_measuring();
                Ok(())
            }
        }
    }

    /// Marks the pods of the window that ends.
    pub fn stop_measuring(&self) {
        let Some((begin, selection)) = self.measured.lock().window.take() else { return };
        for (key, seen) in self.pods.all().iter_mut() {
            let is_late = seen.placed.is_none_or(|placed| placed >= begin);
            let is_gone = seen.is_deleted && seen.placed.is_none();
            seen.is_measured |= seen.is_expected && is_late && !is_gone && selected(&selection, key, seen);
        }
    }

    fn dress(&self) -> Dress<'_> {
        Dress { run: &self.id, scheduler: &self.scenario.scheduler_name, keeps_off: self.keeps_off }
    }

    /// How many requests are on their way at once.
    fn concurrency(&self) -> usize {
        self.scenario.concurrency as usize
    }

    /// The object of a template with this number, with a name of its own where the template has none.
    fn object(&self, template: &Value, name: &str, index: u64) -> Result<Value> {
        let mut object = filled(template, index)?;
        if !object["kind"].is_string() || !object["apiVersion"].is_string() {
            bail!("template {name}: an object needs apiVersion and kind");
        }
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = self.new_name(name).into();
        }
        Ok(object)
    }

    /// A name that no other object has.
    fn new_name(&self, what: &str) -> String {
        format!("bench-{}-{what}-{}", self.id, self.numbers.fetch_add(1, Ordering::Relaxed))
    }

    async fn create_nodes(&self, nodes: &CreateNodes) -> Result<()> {
        let name = &*nodes.template;
        let template = self.templates.get(name)?;
        let objects = (0..nodes.count).map(|index| {
            let mut node = self.object(&template, name, index.into())?;
            for (label, values) in &nodes.labels {
                let value = values.iter().cycle().nth(index as usize % values.len().max(1));
                if let Some(value) = value {
                    node["metadata"]["labels"][label] = value.as_str().into();
                }
            }
            Ok(node)
        });
        let workers = self.scenario.node_creation_workers as usize;
        self.create_all(objects, nodes.count as usize, workers, "nodes").await?;
        self.measured.lock().nodes += nodes.count as usize;
        Ok(())
    }

    async fn create_namespaces(&self, namespaces: &CreateNamespaces) -> Result<()> {
        for index in 0..namespaces.count {
            let name = format!("{}-{index}", namespaces.prefix);
            self.objects.namespace(&self.dress(), &name, &json!(namespaces.labels)).await?;
        }
        Ok(())
    }

    async fn create_any(&self, any: &CreateAny) -> Result<()> {
        let template = self.templates.get(&any.template)?;
        if let Some(namespace) = &any.namespace {
            self.objects.namespace(&self.dress(), namespace, &Value::Null).await?;
        }
        let count = any.count;
        let objects = (0..count).map(|index| {
            let mut object = self.object(&template, &any.template, index.into())?;
            if let Some(namespace) = &any.namespace {
                object["metadata"]["namespace"] = namespace.as_str().into();
            }
            Ok(object)
        });
        self.create_all(objects, count as usize, self.concurrency(), &any.template).await
    }

    async fn create_all(
        &self,
        objects: impl Iterator<Item = Result<Value>>,
        count: usize,
        workers: usize,
        what: &str,
    ) -> Result<()> {
        let bar = Bar::shown(what, count);
        let creations = stream::iter(objects).map(|object| async move {
            self.pace.turn().await;
            self.objects.create(&self.dress(), object?).await
        });
        let mut done = 0;
        let mut creations = creations.buffer_unordered(workers);
        while creations.try_next().await?.is_some() {
            done += 1;
            bar.show(done);
        }
        Ok(())
    }

    async fn update_any(&self, any: &UpdateAny) -> Result<()> {
        let template = self.templates.get(&any.template)?;
        let pace = Pace::new(any.update_per_second.unwrap_or(0), 1);
        for index in 0..any.count {
            pace.turn().await;
            let mut change = filled(&template, index.into())?;
            if change["metadata"]["name"].is_null() {
                bail!("template {}: metadata.name must say what is changed", any.template);
            }
            if let Some(namespace) = &any.namespace {
                merge(&mut change, &json!({"metadata": {"namespace": namespace}}));
            }
            self.objects.change(change, any.subresource.as_deref()).await?;
        }
        Ok(())
    }

    async fn barrier(&self, barrier: Barrier) {
        let Barrier { stage_requirement, namespaces, label_selector } = barrier;
        let selection = Selection { namespaces, label_selector };
        self.wait(&selection, stage_requirement, "pods").await;
    }

    /// Waits until so much has come of all pods of a selection.
    async fn wait(&self, selection: &Selection, stage: Stage, what: &str) {
        let mut left = Pods::left(selection, stage);
        let all = left(&self.pods.all());
        let bar = Bar::shown(&format!("{what} with a node"), all);
        self.pods.until_none(left, |waiting| bar.show(all.saturating_sub(waiting))).await;
    }
}
