//! What goes on beside the pods that are measured: objects that come and go.

use std::{collections::VecDeque, sync::Arc};

use anyhow::Result;
use koord_runtime::key::ObjectKey;
use serde_json::{Value, json};

use super::Run;
use crate::{
    pace::Pace,
    pods::selected,
    scenario::{Churn, ChurnMode, DeletePods, Selection},
};

impl Run {
    /// The pods that a deletion means, as they are known now.
    pub(super) fn keys_to_delete(&self, deletion: &DeletePods) -> Vec<ObjectKey> {
        let namespace = deletion.namespace.as_deref().unwrap_or(&self.scenario.namespace);
        let label_selector = deletion.label_selector.clone();
        let selection = Selection { namespaces: vec![namespace.to_owned()], label_selector };
        let pods = self.pods.all();
        pods.iter().filter(|(key, seen)| selected(&selection, key, seen)).map(|(key, _)| key.clone()).collect()
    }

    /// Deletes pods, so many a second.
    pub(super) async fn delete_pods(self: Arc<Self>, per_second: Option<u32>, keys: Vec<ObjectKey>) -> Result<()> {
        let pace = Pace::new(per_second.unwrap_or(0), 1);
        for key in keys {
            pace.turn().await;
            let metadata = json!({"name": key.name(), "namespace": key.namespace()});
            self.objects.delete(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})).await?;
        }
        Ok(())
    }

    /// Creates objects of each template again and again.
    pub(super) async fn churn(self: Arc<Self>, churn: Churn) -> Result<()> {
        let namespace = churn.namespace.as_deref().unwrap_or(&self.scenario.namespace);
        self.objects.namespace(&self.dress(), namespace, &Value::Null).await?;
        let mut ticks = tokio::time::interval(churn.interval.to_std().unwrap_or_default());
        let is_recreated = churn.mode == ChurnMode::Recreate;
        let at_once = churn.number.unwrap_or(1) as usize * churn.templates.len();
        let rounds = churn.number.filter(|_| !is_recreated).map_or(u64::MAX, u64::from);
        let mut there = VecDeque::new();
        for index in 0..rounds {
            ticks.tick().await;
            for name in &churn.templates {
                if is_recreated
                    && there.len() >= at_once
                    && let Some(oldest) = there.pop_front()
                {
                    self.objects.delete(oldest).await?;
                }
                let mut object = self.object(&self.templates.get(name)?, name, index)?;
                if !matches!(object["kind"].as_str(), Some("Node" | "Namespace" | "PersistentVolume")) {
                    object["metadata"]["namespace"] = namespace.into();
                }
                self.objects.create(&self.dress(), object.clone()).await?;
                there.extend(is_recreated.then_some(object));
            }
        }
        Ok(())
    }
}
