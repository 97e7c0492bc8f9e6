//! An ElasticQuota as both handlers read it: borrowed from the request's text.

use std::borrow::Cow;

use koord_profile::Texts;
use koord_resource::{
    ResourceList,
    admission::{Denial, or_default, text},
};
use koord_runtime::{cache::Revision, uid::Uid};
use koord_types::quota;
use serde::{Deserialize, Deserializer};

use super::Quota;
use crate::{decode, resources::Amounts};

/// The annotation with the weights by which what is lent is shared.
pub(crate) const SHARED_WEIGHT: &str = quota::SHARED_WEIGHT.name();

/// A quota as it is requested.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct QuotaManifest<'a> {
    #[serde(borrow, deserialize_with = "text")]
    api_version: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    kind: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "present")]
    pub(crate) metadata: QuotaMetadata<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) spec: QuotaSpec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    pub(crate) status: QuotaStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct QuotaMetadata<'a> {
    /// Whether the object has any.
    #[serde(skip)]
    pub(super) is_present: bool,
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    uid: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) labels: Texts<'a>,
    #[serde(borrow)]
    pub(crate) annotations: Texts<'a>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<QuotaMetadata<'de>, D::Error> {
    let metadata = Option::<QuotaMetadata<'de>>::deserialize(deserializer)?;
    Ok(metadata.map_or_else(QuotaMetadata::default, |metadata| QuotaMetadata { is_present: true, ..metadata }))
}

/// Of `spec`: the bounds, and their texts as they were written.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct QuotaSpec<'a> {
    #[serde(borrow)]
    pub(crate) min: Option<Amounts<'a>>,
    #[serde(borrow)]
    pub(crate) max: Option<Amounts<'a>>,
}

impl QuotaSpec<'_> {
    pub(crate) fn min(&self) -> ResourceList {
        self.min.as_ref().map(Amounts::to_list).unwrap_or_default()
    }

    pub(crate) fn max(&self) -> ResourceList {
        self.max.as_ref().map(Amounts::to_list).unwrap_or_default()
    }

    /// Whether both were written with the same bounds in the same form; absent bounds differ from empty ones.
    pub(crate) fn has_same_form(&self, other: &Self) -> bool {
        let same = |one: &Option<Amounts<'_>>, other: &Option<Amounts<'_>>| match (one, other) {
            (Some(one), Some(other)) => one.has_same_form(other),
            (one, other) => one.is_none() == other.is_none(),
        };
        same(&self.min, &other.min) && same(&self.max, &other.max)
    }
}

/// Of `status`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct QuotaStatus<'a> {
    #[serde(borrow)]
    pub(crate) used: Option<Amounts<'a>>,
}

impl QuotaStatus<'_> {
    pub(crate) fn used(&self) -> ResourceList {
        self.used.as_ref().map(Amounts::to_list).unwrap_or_default()
    }
}

impl QuotaManifest<'_> {
    /// The quota as the tree knows it.
    pub(crate) fn place(&self, namespace: &str) -> Quota {
        let QuotaMetadata { name, labels, annotations, .. } = &self.metadata;
        let quota = Quota::placed(namespace, name, |key| labels.get(key), |key| annotations.get(key));
        Quota { min: self.spec.min(), max: self.spec.max(), ..quota }
    }

    /// Which object it is, and in which state; none when it was never stored.
    pub(crate) fn identity(&self) -> Option<(Uid, Revision)> {
        let revision = Revision::parse(&self.metadata.resource_version).ok()?;
        Some((Uid::from(&*self.metadata.uid), revision))
    }

    /// Refuses an object of another kind.
    pub(crate) fn check_kind(&self) -> Result<(), Denial> {
        let wanted = ("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota");
        decode::kind(&self.api_version, &self.kind, wanted, "*v1alpha1.ElasticQuota")
    }
}
