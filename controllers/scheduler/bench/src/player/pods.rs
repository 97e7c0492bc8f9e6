//! Creates pods, with their gangs and volumes.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use koord_runtime::key::ObjectKey;
use serde_json::Value;

use super::{Bar, Run, Seen};
use crate::{
    scenario::CreatePods,
    template::{join, pod_group, with_volume},
};

/// A pod that is to be created, with what it needs before.
struct Planned {
    pod: Value,
    before: Vec<Value>,
    gang: Option<Arc<str>>,
}

impl Run {
    /// Creates pods in their namespace, or this one, and waits for them.
    pub(super) async fn create_pods(&self, pods: &CreatePods, namespace: &str) -> Result<()> {
        let namespace = pods.namespace.as_deref().unwrap_or(namespace);
        self.objects.namespace(&self.dress(), namespace, &Value::Null).await?;
        let gangs = self.gangs(pods, namespace).await?;
        let planned = self.planned(pods, namespace, &gangs)?;
        let keys: Vec<ObjectKey> = planned.iter().map(|planned| key(&planned.pod)).collect();
        let begin = Instant::now();
        if pods.collect_metrics {
            self.measured.lock().begin.get_or_insert(begin);
        }
        let bar = Bar::shown("pods", planned.len());
        let creations = stream::iter(planned).map(|planned| self.create_pod(planned, pods.collect_metrics));
        let mut creations = creations.buffer_unordered(self.concurrency());
        let mut done = 0;
        while creations.try_next().await?.is_some() {
            done += 1;
            bar.show(done);
        }
        drop(bar);
        if pods.collect_metrics {
            self.measured.lock().creation += begin.elapsed();
        }
        if !pods.skip_wait_to_completion {
            self.placed(&keys).await;
        }
        Ok(())
    }

    /// Waits until all of these pods have nodes.
    async fn placed(&self, keys: &[ObjectKey]) {
        let mut left: Vec<&ObjectKey> = keys.iter().collect();
        let bar = Bar::shown("pods with a node", keys.len());
        let waits = |seen: &Seen| seen.placed.is_none() && !seen.is_deleted;
        let count = |pods: &BTreeMap<ObjectKey, Seen>| {
            // Whoever has a node is not looked at again.
            left.retain(|key| pods.get(*key).is_some_and(waits));
            left.len()
        };
        self.pods.until_none(count, |waiting| bar.show(keys.len().saturating_sub(waiting))).await;
    }

    async fn create_pod(&self, planned: Planned, is_measured: bool) -> Result<()> {
        let Planned { pod, before, gang } = planned;
        self.pace.turn().await;
        for object in before {
            self.objects.create(&self.dress(), object).await?;
        }
        let labels = serde_json::from_value(pod["metadata"]["labels"].clone()).unwrap_or_default();
        self.pods.expect(key(&pod), Seen { is_measured, gang, labels, ..Seen::default() });
        self.objects.create(&self.dress(), pod).await
    }

    /// Creates the PodGroups, and gives their names.
    async fn gangs(&self, pods: &CreatePods, namespace: &str) -> Result<Vec<Arc<str>>> {
        let Some(size) = pods.gang_size else { return Ok(Vec::new()) };
        let min = pods.min_member.unwrap_or(size);
        if !pods.count.is_multiple_of(size) {
            bail!("{} pods cannot form gangs of {size}: the last one would never be complete", pods.count);
        }
        let names = (0..pods.count / size).map(|_| Arc::from(self.new_name("gang")));
        let names: Vec<Arc<str>> = names.collect();
        let groups = names.iter().map(|name| Ok(pod_group(name, namespace, min)));
        self.create_all(groups, names.len(), self.concurrency(), "gangs").await?;
        Ok(names)
    }

    fn planned(&self, pods: &CreatePods, namespace: &str, gangs: &[Arc<str>]) -> Result<Vec<Planned>> {
        let name = &*pods.template;
        let template = self.templates.get(name)?;
        let of = |name: &Option<String>| name.as_ref().map(|name| self.templates.get(name)).transpose();
        let (volume, claim) = (of(&pods.volume)?, of(&pods.claim)?);
        let size = pods.gang_size.unwrap_or(1).max(1);
        let one = |index: u32| {
            let mut pod = self.object(&template, name, index.into())?;
            pod["metadata"]["namespace"] = namespace.into();
            let gang = gangs.get((index / size) as usize).cloned();
            if let Some(gang) = &gang {
                join(&mut pod, gang);
            }
            let before = match (&volume, &claim) {
                (Some(volume), Some(claim)) => with_volume(&mut pod, volume.clone(), claim.clone()).into(),
                _ => Vec::new(),
            };
            Ok(Planned { pod, before, gang })
        };
        (0..pods.count).map(one).collect()
    }
}

fn key(pod: &Value) -> ObjectKey {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}
