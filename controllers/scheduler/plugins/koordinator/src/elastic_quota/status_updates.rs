//! What is written about quotas beside attempts: their status, the quotas that exist in every cluster, and the evictions of
//! pods of quotas that use more than they may (`spec/scheduler.md` 3D.1 and 3D.8).

use koord_core::{
    key::ObjectKey,
    write::{Action, Deletion, Write},
};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{StatusUpdates, cluster::Cluster};
use koord_types::{
    elastic_quota::ElasticQuota,
    quota::{ALLOW_LENT_RESOURCE, DEFAULT_QUOTA, IS_PARENT, PARENT, ROOT_QUOTA, SYSTEM_QUOTA},
};
use serde_json::{Value, json};

use super::{QuotaSettings, Quotas};

const QUOTA: ResourceKind = ResourceKind::typed::<ElasticQuota>();

impl Quotas {
    /// What is to be written now.
    pub(super) fn status_updates(&self, cluster: &Cluster) -> StatusUpdates {
        let writes = self.statuses(cluster).chain(self.missing()).chain(self.evictions(cluster));
        StatusUpdates { writes: writes.collect(), again: self.overuse().looks_at() }
    }

    /// The quotas whose objects do not say what is observed, or what hooks write.
    fn statuses(&self, cluster: &Cluster) -> impl Iterator<Item = Write> {
        self.objects().iter().filter(|(key, _)| self.is_counted(key)).filter_map(|(key, read)| {
            let patch = self.status(key.name())?.instead_of(&read.written).map(|status| status.patch(&read.uid));
            let hooked = Some(self.hooks()).filter(|hooks| !hooks.is_empty());
            let object = hooked.and_then(|_| cluster.objects().get::<ElasticQuota>(key.as_str()));
            let patch = match hooked.zip(object) {
                Some((hooks, object)) => hooks.status_patch(object, &read.uid, patch),
                None => patch,
            };
            let action = Action::Patch { subresource: "", patch: patch? };
            Some(Write { kind: QUOTA, key: key.clone(), action })
        })
    }

    /// Whether the quota of this name is that of this object.
    fn is_counted(&self, key: &ObjectKey) -> bool {
        let is_root = key.name() == ROOT_QUOTA && key.namespace() == &*self.settings().namespace;
        is_root || self.forest().node(key.name()).is_some_and(|node| node.quota.namespace == key.namespace())
    }

    /// The quotas that exist in every cluster and have no object yet.
    fn missing(&self) -> impl Iterator<Item = Write> {
        everywhere(self.settings()).into_iter().filter_map(|(name, object)| {
            let key = ObjectKey::new(&self.settings().namespace, name);
            let is_missing = !self.objects().contains_key(&key);
            is_missing.then_some(Write { kind: QUOTA, key, action: Action::Create(object) })
        })
    }

    /// The pods that quotas lose.
    fn evictions(&self, cluster: &Cluster) -> impl Iterator<Item = Write> {
        let pods = self.overuse().lost().filter_map(|uid| cluster.pod(uid)).map(|placed| &placed.pod);
        pods.filter(|pod| pod.node.is_some() && !pod.deleting).map(|pod| {
            let action = Action::Evict(Deletion::of(pod.uid.clone()));
            Write { kind: ResourceKind::POD, key: pod.key.clone(), action }
        })
    }
}

/// The quotas that exist in every cluster, as they are made.
fn everywhere(settings: &QuotaSettings) -> [(&'static str, Value); 3] {
    let root = json!({ALLOW_LENT_RESOURCE.name(): "false", IS_PARENT.name(): "true", PARENT: ""});
    [
        (ROOT_QUOTA, root, json!({})),
        (SYSTEM_QUOTA, json!({}), json!({"max": settings.system_max})),
        (DEFAULT_QUOTA, json!({}), json!({"max": settings.default_max})),
    ]
    .map(|(name, labels, spec)| {
        let metadata = json!({"name": name, "namespace": &*settings.namespace, "labels": labels});
        (name, json!({"apiVersion": QUOTA.api_version(), "kind": QUOTA.kind, "metadata": metadata, "spec": spec}))
    })
}
