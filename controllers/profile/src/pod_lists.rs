//! How lists of pods are merged by a strategic merge patch.

use koord_schema::typed::{ListKey, Shape, TypeNode};

/// A list that is merged, by the field that holds it.
#[derive(Debug, PartialEq)]
struct MergedList {
    field: &'static str,
    /// The key of its items; none for a list of scalars.
    key: Option<&'static str>,
    strategy: &'static str,
}

const fn keyed(field: &'static str, key: &'static str) -> MergedList {
    MergedList { field, key: Some(key), strategy: "merge" }
}

/// The merged lists of a pod. Fields of one name are merged alike wherever they stand.
const POD_LISTS: &[MergedList] = &[
    keyed("containers", "name"),
    keyed("initContainers", "name"),
    keyed("ephemeralContainers", "name"),
    MergedList { field: "volumes", key: Some("name"), strategy: "merge,retainKeys" },
    keyed("imagePullSecrets", "name"),
    keyed("hostAliases", "ip"),
    keyed("topologySpreadConstraints", "topologyKey"),
    keyed("schedulingGates", "name"),
    MergedList { field: "resourceClaims", key: Some("name"), strategy: "merge,retainKeys" },
    keyed("env", "name"),
    keyed("ports", "containerPort"),
    keyed("volumeMounts", "mountPath"),
    keyed("volumeDevices", "devicePath"),
    keyed("ownerReferences", "uid"),
    MergedList { field: "finalizers", key: None, strategy: "merge" },
    keyed("conditions", "type"),
    keyed("podIPs", "ip"),
    keyed("hostIPs", "ip"),
];

/// A place in a pod. Which list it is follows from the name of its field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodNode {
    list: Option<&'static MergedList>,
    /// Lists of container resources are replaced: `resources.claims` and the like have no key here.
    below_resources: bool,
}

impl PodNode {
    pub const ROOT: Self = Self { list: None, below_resources: false };

    /// The field by which the items of this list are distinguished.
    pub(crate) fn merge_key(&self) -> Option<&'static str> {
        self.list.and_then(|list| list.key)
    }
}

impl TypeNode for PodNode {
    fn shape(&self) -> Shape {
        match self.list {
            None => Shape::Untyped,
            Some(MergedList { key: Some(_), .. }) => Shape::KeyedList,
            Some(MergedList { key: None, .. }) => Shape::SetList,
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        let below_resources = self.below_resources || name == "resources";
        let list = POD_LISTS.iter().find(|list| list.field == name && !below_resources);
        Some(Self { list, below_resources })
    }

    fn declares(&self, _: &str) -> bool {
        false
    }

    fn item(&self) -> Option<Self> {
        Some(Self { list: None, ..*self })
    }

    fn list_keys(&self) -> Vec<ListKey<'_>> {
        let key = self.list.and_then(|list| list.key);
        key.into_iter().map(|name| ListKey { name, default: None }).collect()
    }

    fn patch_merge_key(&self) -> Option<&str> {
        self.merge_key()
    }

    fn patch_strategy(&self) -> Option<&str> {
        self.list.map(|list| list.strategy)
    }
}
