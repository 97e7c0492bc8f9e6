//! The identity of a kind, as constants.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Serialize, de::DeserializeOwned};

/// A Kubernetes object type that we declare or consume.
pub trait Resource: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// Everything about the kind that is not its fields.
    const INFO: ResourceInfo;

    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;
    /// The object's metadata, for change.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
}

/// Identity and presentation of one version of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    /// API group; empty for core.
    pub group: &'static str,
    /// API version, such as `v1alpha1`.
    pub version: &'static str,
    /// Kind, such as `ElasticQuota`.
    pub kind: &'static str,
    /// Kind of a list of these.
    pub list_kind: &'static str,
    /// Lower-case plural, as it stands in URLs.
    pub plural: &'static str,
    /// Lower-case singular.
    pub singular: &'static str,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Short names for kubectl.
    pub short_names: &'static [&'static str],
    /// Groups of kinds for kubectl, such as `all`.
    pub categories: &'static [&'static str],
    /// The versions in which `/status` is a subresource; none for a kind without.
    pub status: Option<Versions>,
    /// The `/scale` subresource, at most one for each version.
    pub scale: &'static [Scale],
    /// Additional printer columns, in order.
    pub columns: &'static [Column],
    /// Fields that field selectors may use.
    pub selectable_fields: &'static [Selectable],
    /// Annotations of the CRD object.
    pub annotations: &'static [(&'static str, &'static str)],
    /// Labels of the CRD object.
    pub labels: &'static [(&'static str, &'static str)],
    /// Whether and how this version is served.
    pub served: Served,
    /// Older versions that are served otherwise than [`Served::OLDER`] says.
    pub older: &'static [Older],
    /// What [`Profile::Hardened`](crate::declare::Profile::Hardened) adds for kubectl's users.
    pub extras: Extras,
}

/// Names, columns and selectable fields that only [`Profile::Hardened`](crate::declare::Profile::Hardened) has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Further short names.
    pub short_names: &'static [&'static str],
    /// Further categories.
    pub categories: &'static [&'static str],
    /// Columns after the others.
    pub columns: &'static [Column],
    /// Further fields that selectors may use.
    pub selectable_fields: &'static [Selectable],
}

impl ResourceInfo {
    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The collection's URL path, below one namespace when it is given.
    pub fn url_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        match namespace.filter(|_| self.scope == Scope::Namespaced) {
            Some(namespace) => format!("{root}/{}/namespaces/{namespace}/{}", self.api_version(), self.plural),
            None => format!("{root}/{}/{}", self.api_version(), self.plural),
        }
    }

    /// How an older version is served.
    pub(crate) const fn served_in(&self, version: &str) -> Served {
        let (mut index, count) = (0, self.older.len());
        while index < count {
            if is_same(self.older[index].version, version) {
                return self.older[index].served;
            }
            index += 1;
        }
        Served::OLDER
    }
}

/// Equality of texts, for constants.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One per cluster and name.
    Cluster,
    /// One per namespace and name.
    Namespaced,
}

/// The `/scale` subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// JSON path of the desired replicas, such as `.spec.replicas`.
    pub spec_replicas_path: &'static str,
    /// JSON path of the observed replicas.
    pub status_replicas_path: &'static str,
    /// JSON path of the label selector in text form.
    pub label_selector_path: Option<&'static str>,
    /// The versions that have it.
    pub versions: Versions,
}

/// One additional printer column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: &'static str,
    /// Simple JSON path, such as `.status.phase`.
    pub json_path: &'static str,
    /// Prose; empty for none.
    pub description: &'static str,
    /// OpenAPI format; empty for none.
    pub format: &'static str,
    /// 0 shows it always, more only with `-o wide`.
    pub priority: i32,
    /// The versions that have it.
    pub versions: Versions,
}

/// One field that field selectors may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selectable {
    /// Simple JSON path, such as `.spec.host`.
    pub json_path: &'static str,
    /// The versions that have it.
    pub versions: Versions,
}

/// Which versions of a kind have something, by the order of Kubernetes: all, those from one on, those before one, or
/// those between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// The first version that has it; all without it.
    pub since: Option<&'static str>,
    /// The first version that does not have it any more.
    pub until: Option<&'static str>,
}

impl Versions {
    /// Every version.
    pub const ALL: Self = Self { since: None, until: None };
}

/// Whether and how one version of a kind is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Whether the API server answers for this version.
    pub served: bool,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Deprecated, with the warning for users; an empty text leaves the wording to the API server.
    pub deprecated: Option<&'static str>,
    /// Whether the CustomResourceDefinition leaves the version out. Objects can still be converted to it and from it.
    pub skipped: bool,
}

impl Served {
    /// An older version of which nothing else is said: served, and not stored.
    pub const OLDER: Self = Self { served: true, storage: false, deprecated: None, skipped: false };
}

/// How an older version of a kind is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Older {
    /// API version, such as `v1alpha1`.
    pub version: &'static str,
    /// Whether and how it is served.
    pub served: Served,
}
