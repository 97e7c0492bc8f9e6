//! Pods that no scheduler reports anything about because their gang is incomplete: a scheduler does not try its members.

use std::collections::BTreeMap;

use koord_api::{gang, protocol::Labels};
use serde_json::Value;

use super::world::World;

/// What a pod says of its gang.
pub(super) struct Membership {
    /// Namespace and name of the gang.
    pub(super) gang: String,
    demand: Demand,
}

/// What is needed before members of a gang are tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// How many members; none where nothing that can be read declares it.
    members_min: Option<i32>,
    /// Gangs that have to be complete too, with their namespaces.
    groups: Vec<String>,
}

/// The gangs of a cluster.
pub(super) struct Gangs<'w>(BTreeMap<&'w str, (usize, Demand)>);

// === impl Membership ===

impl Membership {
    /// None of a pod on its own.
    pub(super) fn of_pod(metadata: &Value, namespace: &str) -> Option<Self> {
        let (labels, annotations) = (texts(&metadata["labels"]), texts(&metadata["annotations"]));
        let name = gang::name_of_pod(&labels, &annotations)?;
        let own = gang::MIN_AVAILABLE.get(&annotations).ok().flatten();
        let members_min = own.or_else(|| gang::DEPRECATED_MIN_AVAILABLE.get(&labels).ok().flatten());
        let groups = gang::GROUPS.get(&annotations).ok().flatten().unwrap_or_default();
        Some(Self { gang: format!("{namespace}/{name}"), demand: Demand { members_min, groups } })
    }
}

// === impl Demand ===

impl Demand {
    /// That of a PodGroup, which goes before what pods say.
    pub(super) fn of_pod_group(object: &Value) -> Self {
        let groups = gang::GROUPS.get(&texts(&object["metadata"]["annotations"])).ok().flatten().unwrap_or_default();
        let members_min = object["spec"]["minMember"].as_i64().and_then(|min| i32::try_from(min).ok());
        Self { members_min: Some(members_min.unwrap_or_default()), groups }
    }
}

// === impl Gangs ===

impl<'w> Gangs<'w> {
    pub(super) fn of(world: &'w World) -> Self {
        let declared = world.pod_groups.iter().map(|(name, demand)| (name.as_str(), (0, demand.clone())));
        let mut gangs: BTreeMap<&str, (usize, Demand)> = declared.collect();
        for member in world.pods.iter().filter_map(|pod| pod.gang.as_ref()) {
            let (members, demand) = gangs.entry(member.gang.as_str()).or_default();
            *members += 1;
            if !world.pod_groups.contains_key(&member.gang) && demand.members_min.is_none() {
                *demand = member.demand.clone();
            }
        }
        Self(gangs)
    }

    /// What keeps the members of a gang from being tried, in words; none where nothing does.
    pub(super) fn held_by(&self, gang: &str) -> Option<String> {
        let (_, demand) = self.0.get(gang)?;
        self.lacks(gang).or_else(|| demand.groups.iter().find_map(|other| self.lacks(other)))
    }

    fn lacks(&self, gang: &str) -> Option<String> {
        match self.0.get(gang) {
            None => Some(format!("gang {gang} has no pods")),
            Some((_, Demand { members_min: None, .. })) => {
                Some(format!("nothing declares how many pods gang {gang} needs"))
            }
            Some((members, Demand { members_min: Some(min), .. })) => {
                let is_complete = i32::try_from(*members).is_ok_and(|members| members >= *min);
                (!is_complete).then(|| format!("gang {gang} has {members} of the {min} pods that it needs"))
            }
        }
    }
}

fn texts(value: &Value) -> Labels {
    let texts = value.as_object().into_iter().flatten();
    texts.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}
