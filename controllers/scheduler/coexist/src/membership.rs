//! What pods and PodGroups say of gangs.

use koord_types::{gang, protocol::Labels};
use serde_json::Value;

/// What a pod says of its gang.
pub(crate) struct Membership {
    /// Namespace and name of the gang.
    pub(crate) gang: String,
    pub(crate) demand: Demand,
}

/// What is needed before members of a gang are tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// How many members; none where nothing that can be read declares it.
    pub(crate) members_min: Option<i32>,
    /// Gangs that have to be complete too, with their namespaces.
    pub(crate) groups: Vec<String>,
}

// === impl Membership ===

impl Membership {
    /// None of a pod on its own.
    pub(crate) fn of_pod(metadata: &Value, namespace: &str) -> Option<Self> {
        let (labels, annotations) = (texts(&metadata["labels"]), texts(&metadata["annotations"]));
        let name = gang::name_of_pod(&labels, &annotations)?;
        let min_available = gang::MIN_AVAILABLE.get(&annotations).ok().flatten();
        let members_min = min_available.or_else(|| gang::DEPRECATED_MIN_AVAILABLE.get(&labels).ok().flatten());
        let groups = gang::GROUPS.get(&annotations).ok().flatten().unwrap_or_default();
        Some(Self { gang: format!("{namespace}/{name}"), demand: Demand { members_min, groups } })
    }
}

// === impl Demand ===

impl Demand {
    /// That of a PodGroup, which goes before what pods say.
    pub(crate) fn of_pod_group(object: &Value) -> Self {
        let groups = gang::GROUPS.get(&texts(&object["metadata"]["annotations"])).ok().flatten().unwrap_or_default();
        let members_min = object["spec"]["minMember"].as_i64().and_then(|min| i32::try_from(min).ok());
        Self { members_min: Some(members_min.unwrap_or_default()), groups }
    }
}

fn texts(value: &Value) -> Labels {
    let texts = value.as_object().into_iter().flatten();
    texts.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}
