//! Objects in memory: what is written changes them, and the caches that want them are told.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use jiff::Timestamp;
use koord_program::plan::{feed, kind_of, planned, wanting};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    key::ObjectKey,
    write::{Action, Write},
};
use serde_json::{Value, json};

use crate::scenario;

/// All objects of the kinds that the scheduler reads.
pub(crate) struct World {
    core: Core,
    objects: BTreeMap<(ResourceKind, ObjectKey), Value>,
    revision: u64,
}

/// What a write means to a pod.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// It runs on a node.
    Bound(ObjectKey, String),
    /// It is gone.
    Deleted(ObjectKey),
}

impl World {
    /// The world of these caches. They are complete from now on.
    pub(crate) fn new(core: Core, objects: &[Value]) -> Result<Self> {
        core.watches().iter().for_each(|watch| watch.sink.begin_list(true));
        let mut world = Self { core, objects: BTreeMap::new(), revision: 0 };
        // In the order in which a scheduler that starts would learn of them.
        let order = |object: &&Value| match object["kind"].as_str() {
            Some("Node") => 0,
            Some("Pod") => 2,
            _ => 1,
        };
        let mut sorted: Vec<&Value> = objects.iter().collect();
        sorted.sort_by_key(order);
        sorted.into_iter().try_for_each(|object| world.add(object.clone()))?;
        world.core.watches().iter().for_each(|watch| watch.sink.end_list());
        Ok(world)
    }

    pub(crate) fn objects(&self) -> Vec<Value> {
        self.objects.values().cloned().collect()
    }

    /// An object appears. One of a kind that nobody reads does not matter.
    pub(crate) fn add(&mut self, mut object: Value) -> Result<()> {
        let Some(kind) = kind_of(&self.core, &object)? else { return Ok(()) };
        koord_program::files::as_stored(&mut object, kind.namespaced);
        let key = if kind.namespaced { scenario::key(&object) } else { cluster_key(&object) };
        self.put(kind, key, object)
    }

    /// A pod is gone.
    pub(crate) fn remove_pod(&mut self, key: &ObjectKey) -> Result<()> {
        self.remove(ResourceKind::POD, key)
    }

    /// Does what is written; what is not there is not changed.
    pub(crate) fn write(&mut self, write: &Write, now: Timestamp) -> Result<Effect> {
        let Write { kind, key, action } = write;
        let before = self.objects.get(&(*kind, key.clone())).cloned().unwrap_or_default();
        let is_new = matches!(action, Action::Create(_) | Action::Apply { .. });
        if before.is_null() && !is_new {
            return Ok(Effect::None);
        }
        let mut after = planned(action, &before, self.core.field_manager())
            .map_err(|error| anyhow!("{} {key} cannot be applied: {error}", kind.kind))?;
        if after.is_null() {
            self.remove(*kind, key)?;
            return Ok(if *kind == ResourceKind::POD { Effect::Deleted(key.clone()) } else { Effect::None });
        }
        let effect = match action {
            Action::Bind { node, .. } => {
                run(&mut after, now);
                Effect::Bound(key.clone(), node.clone())
            }
            _ => Effect::None,
        };
        if after != before {
            if after["metadata"]["uid"].is_null() {
                after["metadata"]["uid"] = json!(format!("{}/{key}", kind.kind));
            }
            self.put(*kind, key.clone(), after)?;
        }
        Ok(effect)
    }

    fn put(&mut self, kind: ResourceKind, key: ObjectKey, mut object: Value) -> Result<()> {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        feed(&wanting(&self.core, kind, &object)?, &object.to_string())?;
        self.objects.insert((kind, key), object);
        Ok(())
    }

    fn remove(&mut self, kind: ResourceKind, key: &ObjectKey) -> Result<()> {
        let Some(mut object) = self.objects.remove(&(kind, key.clone())) else { return Ok(()) };
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let text = object.to_string();
        for watch in wanting(&self.core, kind, &object)? {
            watch.sink.remove(&text).map_err(|error| anyhow!("{} {key} cannot be removed: {error}", kind.kind))?;
        }
        Ok(())
    }
}

fn cluster_key(object: &Value) -> ObjectKey {
    ObjectKey::cluster(object["metadata"]["name"].as_str().unwrap_or_default())
}

/// A pod that is bound runs at once.
fn run(pod: &mut Value, now: Timestamp) {
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|type_| json!({"type": type_, "status": "True", "lastTransitionTime": time}));
    pod["status"] = json!({"phase": "Running", "startTime": time, "conditions": conditions});
}
