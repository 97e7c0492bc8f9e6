//! What the caches keep of quotas, of the profiles that make them, and of the pods that are charged to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_quota::{BoundPods, Quota};
use koord_resource::{Resource, ResourceList, admission::or_default, controller::ResourceKind};
use koord_runtime::{
    cache::Cache,
    index::{By, Index, Term},
    intern::Interner,
    key::ObjectKey,
    projection::{DecodeError, Labels, MetadataOnly, Projection, WireObject},
    uid::Uid,
};
use koord_types::{
    elastic_quota::ElasticQuota,
    elastic_quota_profile::ElasticQuotaProfile,
    quota::{NAME, TREE_ID},
};
use serde::Deserialize;

/// A quota as a cache keeps it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CachedQuota(pub(crate) Quota);

impl Deref for CachedQuota {
    type Target = Quota;

    fn deref(&self) -> &Quota {
        &self.0
    }
}

/// The key of a quota in a cache.
pub(crate) fn key_of(quota: &Quota) -> ObjectKey {
    ObjectKey::new(&quota.namespace, &quota.name)
}

/// Reads a quota's JSON text.
pub(crate) fn read(text: &str) -> Result<CachedQuota, DecodeError> {
    let wire = serde_json::from_str(text).map_err(|error| DecodeError::new("the quota", error))?;
    CachedQuota::project(wire, &mut Interner::default())
}

/// What is read of an ElasticQuota.
#[derive(Deserialize)]
pub(crate) struct QuotaMembers {
    #[serde(default, deserialize_with = "or_default")]
    spec: Bounds,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Bounds {
    #[serde(deserialize_with = "or_default")]
    min: ResourceList,
    #[serde(deserialize_with = "or_default")]
    max: ResourceList,
}

impl Projection for CachedQuota {
    const KIND: ResourceKind = ResourceKind::of(&ElasticQuota::INFO);
    type Wire<'a> = WireObject<'a, QuotaMembers>;
    type Index = QuotaNames;

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let WireObject { metadata, members: QuotaMembers { spec } } = wire;
        let labels = Labels::read("metadata.labels", metadata.labels, strings)?;
        let annotations = Labels::read("metadata.annotations", metadata.annotations, strings)?;
        let quota =
            Quota::placed(&metadata.namespace, &metadata.name, |key| labels.get(key), |key| annotations.get(key));
        Ok(Self(Quota { min: spec.min, max: spec.max, ..quota }))
    }
}

/// Quotas by name, whatever their namespace, by the quota above, and by the namespaces that are bound to them. Keys
/// stay in order, so that of several the same one is always found.
#[derive(Debug, Default)]
pub(crate) struct QuotaNames {
    named: Keys,
    below: Keys,
    bound: Keys,
}

type Keys = BTreeMap<String, BTreeSet<ObjectKey>>;

impl QuotaNames {
    pub(crate) fn named(&self, name: &str) -> Option<&ObjectKey> {
        self.all_named(name).next()
    }

    pub(crate) fn all_named(&self, name: &str) -> impl Iterator<Item = &ObjectKey> {
        self.named.get(name).into_iter().flatten()
    }

    pub(crate) fn below(&self, parent: &str) -> impl Iterator<Item = &ObjectKey> {
        self.below.get(parent).into_iter().flatten()
    }

    pub(crate) fn bound_to(&self, namespace: &str) -> Option<&ObjectKey> {
        self.bound.get(namespace)?.first()
    }

    /// Each map with the names under which it finds a quota.
    fn places<'s, 'q>(&'s mut self, quota: &'q Quota) -> impl Iterator<Item = (&'s mut Keys, &'q [String])> {
        use std::slice::from_ref;
        [
            (&mut self.named, from_ref(&quota.name)),
            (&mut self.below, from_ref(&quota.parent)),
            (&mut self.bound, &quota.namespaces[..]),
        ]
        .into_iter()
    }
}

impl Index<CachedQuota> for QuotaNames {
    fn insert(&mut self, key: &ObjectKey, quota: &CachedQuota) {
        for (keys, names) in self.places(quota) {
            for name in names {
                keys.entry(name.clone()).or_default().insert(key.clone());
            }
        }
    }

    fn remove(&mut self, key: &ObjectKey, quota: &CachedQuota) {
        for (keys, names) in self.places(quota) {
            for name in names {
                let Some(found) = keys.get_mut(name) else { continue };
                found.remove(key);
                if found.is_empty() {
                    keys.remove(name);
                }
            }
        }
    }
}

/// The nodes of a quota tree.
#[derive(Debug, PartialEq)]
pub(crate) struct QuotaProfile {
    pub(crate) tree_id: String,
    pub(crate) node_selector: LabelSelector,
}

/// What is read of an ElasticQuotaProfile.
#[derive(Deserialize)]
pub(crate) struct QuotaProfileMembers {
    #[serde(default)]
    spec: Nodes,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Nodes {
    node_selector: Option<LabelSelector>,
}

impl Projection for QuotaProfile {
    const KIND: ResourceKind = ResourceKind::of(&ElasticQuotaProfile::INFO);
    type Wire<'a> = WireObject<'a, QuotaProfileMembers>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let labels = Labels::read("metadata.labels", wire.metadata.labels, strings)?;
        Ok(Self {
            tree_id: labels.get(TREE_ID).unwrap_or_default().to_owned(),
            node_selector: wire.members.spec.node_selector.unwrap_or_default(),
        })
    }
}

/// The quota that a pod names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlacedPod {
    quota: Option<Arc<str>>,
}

impl Projection for PlacedPod {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = By<Self, ByQuota>;

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let labels = Labels::read_some("metadata.labels", wire.metadata.labels, strings, |key| key == NAME)?;
        Ok(Self { quota: labels.get(NAME).filter(|name| !name.is_empty()).map(|name| strings.intern(name)) })
    }

    /// There are many pods of a quota, and they differ in nothing that is kept.
    fn shared(self, _: &ObjectKey, _: &Uid, strings: &mut Interner) -> Arc<Self> {
        strings.share(self)
    }
}

/// Finds pods by the quota that they name.
#[derive(Debug)]
pub(crate) struct ByQuota;

impl Term<PlacedPod> for ByQuota {
    type Value = Arc<str>;

    fn terms(_: &ObjectKey, pod: &PlacedPod, found_by: &mut dyn FnMut(Arc<str>)) {
        pod.quota.iter().cloned().for_each(found_by);
    }
}

/// The pods of a cache.
pub(crate) struct Pods<'a>(pub(crate) &'a Cache<PlacedPod>);

impl BoundPods for Pods<'_> {
    fn of_quota(&self, quota: &str) -> bool {
        self.0.index().get(quota).next().is_some()
    }

    fn in_namespace(&self, namespace: &str) -> bool {
        self.0.in_namespace(namespace).next().is_some()
    }
}
