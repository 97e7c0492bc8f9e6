//! Objects of a run at the API server: created, changed and removed, with memory of where they are.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use koord_program::dynamic::typed;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::template::{Dress, RUN_LABEL};

/// How often is looked whether a namespace is gone.
const RECHECK: Duration = Duration::from_millis(100);

/// Where objects were created: their kind, by version and plural, and their namespace.
type Place = (String, String, String, Option<String>);

/// The objects of a run.
pub struct Objects {
    client: Client,
    places: Mutex<BTreeSet<Place>>,
}

impl Objects {
    /// Nothing was created yet.
    pub fn new(client: Client) -> Self {
        Self { client, places: Mutex::default() }
    }

    /// Creates an object. A node is ready at once: what marks new nodes as not ready is taken off.
    pub(crate) async fn create(&self, dress: &Dress<'_>, mut object: Value) -> Result<()> {
        dress.put_on(&mut object);
        let (taints, status) = (object["spec"]["taints"].clone(), object["status"].clone());
        let what = named(&object);
        let is_node = object["kind"] == "Node";
        let (api, object) = self.typed(object)?;
        let created = api.create(&PostParams::default(), &object).await;
        let created = created.with_context(|| format!("{what} cannot be created"))?;
        if is_node && created.data["spec"]["taints"] != taints {
            let ready = Patch::Merge(json!({"spec": {"taints": taints}}));
            let patched = api.patch(&created.name_any(), &PatchParams::default(), &ready).await;
            patched.with_context(|| format!("the taints of {what} cannot be changed"))?;
        }
        if !is_node && status.is_object() {
            self.patch(&api, &created.name_any(), Some("status"), json!({"status": status})).await?;
        }
        Ok(())
    }

    /// Creates a namespace, unless it is there, or is made by another operation meanwhile.
    pub(crate) async fn namespace(&self, dress: &Dress<'_>, name: &str, labels: &Value) -> Result<()> {
        let api = Api::<Namespace>::all(self.client.clone());
        let cannot = || format!("namespace {name} cannot be read");
        while let Some(known) = api.get_opt(name).await.with_context(cannot)? {
            if known.metadata.deletion_timestamp.is_none() {
                return Ok(());
            }
            // That of an earlier run is still being removed.
            tokio::time::sleep(RECHECK).await;
        }
        let metadata = json!({"name": name, "labels": labels});
        let created = self.create(dress, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await;
        let is_there = |error: &anyhow::Error| {
            error.downcast_ref().is_some_and(|error| matches!(error, kube::Error::Api(status) if status.code == 409))
        };
        if created.as_ref().is_err_and(is_there) { Ok(()) } else { created }
    }

    /// Changes an object by a merge patch that names it.
    pub(crate) async fn change(&self, mut change: Value, subresource: Option<&str>) -> Result<()> {
        Dress::keep_on(&mut change);
        let metadata = json!({"name": change["metadata"]["name"], "namespace": change["metadata"]["namespace"]});
        let named = json!({"apiVersion": change["apiVersion"], "kind": change["kind"], "metadata": metadata});
        let (api, object) = self.typed(named)?;
        self.patch(&api, &object.name_any(), subresource, change).await
    }

    async fn patch(&self, api: &Api<DynamicObject>, name: &str, part: Option<&str>, patch: Value) -> Result<()> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = match part {
            Some(part) => api.patch_subresource(part, name, &params, &patch).await,
            None => api.patch(name, &params, &patch).await,
        };
        patched.map(drop).with_context(|| format!("{name} cannot be changed"))
    }

    /// Deletes an object at once; one that is gone is no error.
    pub(crate) async fn delete(&self, object: Value) -> Result<()> {
        let what = named(&object);
        let (api, object) = self.typed(object)?;
        match api.delete(&object.name_any(), &DeleteParams::default().grace_period(0)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop).with_context(|| format!("{what} cannot be deleted")),
        }
    }

    /// An object, and where objects of its kind live; noted for the removal.
    fn typed(&self, object: Value) -> Result<(Api<DynamicObject>, DynamicObject)> {
        let (api, object) = typed(&self.client, object)?;
        let types = object.types.as_ref().context("an object without a kind")?;
        let place = (types.api_version.clone(), types.kind.clone(), api.resource_url().to_owned(), object.namespace());
        self.places.lock().insert(place);
        Ok((api, object))
    }

    /// Removes everything that carries the label of a run: pods first, nodes and namespaces last.
    pub async fn remove_all(&self, run: &str) -> Result<()> {
        let mut places: Vec<Place> = self.places.lock().iter().cloned().collect();
        let order = |kind: &str| match kind {
            "Pod" => 0,
            "Node" => 2,
            "Namespace" => 3,
            _ => 1,
        };
        places.sort_by_key(|(_, kind, ..)| order(kind));
        for (version, kind, _, namespace) in places {
            let probe = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
            let (api, _) = typed(&self.client, probe)?;
            self.remove_labelled(&api, &kind, run).await?;
        }
        Ok(())
    }

    async fn remove_labelled(&self, api: &Api<DynamicObject>, kind: &str, run: &str) -> Result<()> {
        let labelled = ListParams::default().labels(&format!("{RUN_LABEL}={run}"));
        let cannot = || format!("objects of kind {kind} with the label {RUN_LABEL}={run} cannot be removed");
        if matches!(kind, "Pod" | "Namespace") {
            for object in api.list(&labelled).await.with_context(cannot)? {
                let name = object.name_any();
                if kind == "Namespace" {
                    // Namespaces cannot be deleted as a collection.
                    api.delete(&name, &DeleteParams::default()).await.map(drop).with_context(cannot)?;
                } else if !object.finalizers().is_empty() {
                    self.patch(api, &name, None, json!({"metadata": {"finalizers": null}}))
                        .await
                        .with_context(cannot)?;
                }
            }
        }
        if kind != "Namespace" {
            let at_once = DeleteParams::default().grace_period(0);
            api.delete_collection(&at_once, &labelled).await.map(drop).with_context(cannot)?;
        }
        Ok(())
    }
}

/// What messages call an object.
fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}
