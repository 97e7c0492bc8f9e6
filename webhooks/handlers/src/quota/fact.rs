//! What the caches keep of quotas, of the profiles that make them, and of the pods that are charged to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_api::{
    elastic_quota::ElasticQuota,
    elastic_quota_profile::ElasticQuotaProfile,
    quota::{
        ADMISSION, ALLOW_FORCE_UPDATE, ALLOW_LENT_RESOURCE, CHILD_REQUEST, GUARANTEED, IS_PARENT, IS_ROOT, NAME,
        NAMESPACES, PARENT, ROOT_QUOTA, SHARED_WEIGHT, TREE_ID,
    },
};
use koord_resource::{Resource, ResourceList, admission::or_default, controller::ResourceKind};
use koord_runtime::{
    index::{By, Index, Term},
    intern::Interner,
    key::ObjectKey,
    projection::{DecodeError, Labels, Metadata, MetadataOnly, Projection, WireMetadata},
};
use serde::Deserialize;

use crate::decode;

/// A quota's place in the tree and its bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Quota {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The quota above; empty for the root.
    pub(crate) parent: String,
    /// The tree; empty outside of all.
    pub(crate) tree_id: String,
    /// Whether others may stand below it.
    pub(crate) is_parent: bool,
    /// Whether its tree begins with it.
    pub(crate) begins_tree: bool,
    /// Whether a change may break a promise.
    pub(crate) forced: bool,
    /// Whether others may use what it does not.
    pub(crate) lends: bool,
    pub(crate) min: ResourceList,
    pub(crate) max: ResourceList,
    /// What it is sure to get, as the scheduler has written it.
    pub(crate) guaranteed: ResourceList,
    /// Namespaces that are bound to it.
    pub(crate) namespaces: Vec<String>,
    /// What pods may request when they are created; none where that is `max`.
    pub(crate) admission: Option<ResourceList>,
    /// What its pods request together.
    pub(crate) requested: ResourceList,
    /// Why an annotation that quota admission reads cannot be decoded; pods are refused meanwhile.
    pub(crate) decode_error: Option<Box<str>>,
    /// Its share where quotas compete.
    pub(crate) shared_weight: ResourceList,
}

impl Quota {
    /// Reads labels and annotations. An annotation that cannot be decoded counts as absent, except for quota admission.
    pub(crate) fn placed<'t>(
        namespace: &str,
        name: &str,
        label: impl Fn(&str) -> Option<&'t str>,
        annotation: impl Fn(&str) -> Option<&'t str>,
    ) -> Self {
        let parent = label(PARENT).filter(|parent| !parent.is_empty());
        let root = if name == ROOT_QUOTA { "" } else { ROOT_QUOTA };
        let mut decode_error = None;
        let mut counted = |key: &str| {
            let text = annotation(key).filter(|text| !text.is_empty())?;
            let amounts = serde_json::from_str::<Option<ResourceList>>(text);
            amounts.map_err(|error| decode_error = Some(decode::json_reason(text, &error).into())).ok().flatten()
        };
        let requested = counted(CHILD_REQUEST.name()).unwrap_or_default();
        let admission = counted(ADMISSION.name()).filter(|limit| !limit.is_empty());
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            parent: parent.unwrap_or(root).to_owned(),
            tree_id: label(TREE_ID).unwrap_or_default().to_owned(),
            is_parent: label(IS_PARENT.name()) == Some("true"),
            begins_tree: label(IS_ROOT.name()) == Some("true"),
            forced: label(ALLOW_FORCE_UPDATE.name()) == Some("true"),
            lends: label(ALLOW_LENT_RESOURCE.name()) != Some("false"),
            guaranteed: annotation(GUARANTEED.name()).and_then(json).unwrap_or_default(),
            namespaces: annotation(NAMESPACES.name()).and_then(json).unwrap_or_default(),
            admission,
            requested,
            decode_error,
            shared_weight: annotation(SHARED_WEIGHT.name()).and_then(json).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Its key in a cache.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &self.name)
    }
}

/// Reads a quota's JSON text.
pub(crate) fn read(text: &str) -> Result<Quota, DecodeError> {
    let wire = serde_json::from_str(text).map_err(|error| DecodeError::new("the quota", error))?;
    Quota::project(wire, &mut Interner::default())
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str::<Option<T>>(text).ok().flatten()
}

/// What is read of an ElasticQuota.
#[derive(Deserialize)]
pub(crate) struct QuotaWire<'a> {
    #[serde(borrow, default)]
    metadata: WireMetadata<'a>,
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

impl<'a> Metadata<'a> for QuotaWire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for Quota {
    const KIND: ResourceKind = ResourceKind::of(&ElasticQuota::INFO);
    type Wire<'a> = QuotaWire<'a>;
    type Index = QuotaNames;

    fn project(wire: QuotaWire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let QuotaWire { metadata, spec } = wire;
        let labels = Labels::read("metadata.labels", metadata.labels, strings)?;
        let annotations = Labels::read("metadata.annotations", metadata.annotations, strings)?;
        let quota =
            Self::placed(&metadata.namespace, &metadata.name, |key| labels.get(key), |key| annotations.get(key));
        Ok(Self { min: spec.min, max: spec.max, ..quota })
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

impl Index<Quota> for QuotaNames {
    fn insert(&mut self, key: &ObjectKey, quota: &Quota) {
        for (keys, names) in self.places(quota) {
            for name in names {
                keys.entry(name.clone()).or_default().insert(key.clone());
            }
        }
    }

    fn remove(&mut self, key: &ObjectKey, quota: &Quota) {
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
pub(crate) struct QuotaProfileWire<'a> {
    #[serde(borrow, default)]
    metadata: WireMetadata<'a>,
    #[serde(default)]
    spec: Nodes,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Nodes {
    node_selector: Option<LabelSelector>,
}

impl<'a> Metadata<'a> for QuotaProfileWire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for QuotaProfile {
    const KIND: ResourceKind = ResourceKind::of(&ElasticQuotaProfile::INFO);
    type Wire<'a> = QuotaProfileWire<'a>;
    type Index = ();

    fn project(wire: QuotaProfileWire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let labels = Labels::read("metadata.labels", wire.metadata.labels, strings)?;
        Ok(Self {
            tree_id: labels.get(TREE_ID).unwrap_or_default().to_owned(),
            node_selector: wire.spec.node_selector.unwrap_or_default(),
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
    fn shared(self, strings: &mut Interner) -> Arc<Self> {
        strings.share(self)
    }
}

/// Finds pods by the quota that they name.
#[derive(Debug)]
pub(crate) struct ByQuota;

impl Term<PlacedPod> for ByQuota {
    type Value = Arc<str>;

    fn terms(pod: &PlacedPod, found_by: &mut dyn FnMut(Arc<str>)) {
        pod.quota.iter().cloned().for_each(found_by);
    }
}
