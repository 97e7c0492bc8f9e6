//! Pods that no scheduler reports anything about because their gang is incomplete: a scheduler does not try its members.

use std::collections::BTreeMap;

use crate::{membership::Demand, world::World};

/// The gangs of a cluster.
pub(crate) struct Gangs<'w>(BTreeMap<&'w str, (usize, Demand)>);

// === impl Gangs ===

impl<'w> Gangs<'w> {
    pub(crate) fn of(world: &'w World) -> Self {
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
    pub(crate) fn held_by(&self, gang: &str) -> Option<String> {
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
