//! Coscheduling as a plugin.

use koord_api::{
    gang::{BIND_GANG_GROUP_ID, BIND_GANG_MEMBER_COUNT},
    pod_group::PodGroup,
};
use koord_config::scheduler::{CoschedulingArgs, MatchPolicy as ConfiguredPolicy};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_engine::{
    cluster::{Cluster, Placed},
    cycle::Found,
    event::{Event, Events},
    plugin::{Orders, Patch, Permit, Plugin, Rejection, Request},
    pod::Pod,
    state::State,
};
use koord_resource::controller::ResourceKind;
use serde_json::Value;

use super::{
    context::Context,
    declaration::{Defaults, MatchPolicy},
    round::bind_annotations,
};

/// Places the pods of a gang together or not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coscheduling {
    defaults: Defaults,
    /// Gangs are to be placed by the network topology, which this plugin cannot do: they are refused where they ask for it.
    is_aware: bool,
}

impl Coscheduling {
    /// The plugin with these arguments.
    pub fn new(args: &CoschedulingArgs) -> Self {
        let defaults = Defaults::default();
        let policy = match args.default_match_policy {
            Some(ConfiguredPolicy::OnlyWaiting) => MatchPolicy::OnlyWaiting,
            Some(ConfiguredPolicy::WaitingAndRunning) => MatchPolicy::WaitingAndRunning,
            Some(ConfiguredPolicy::OnceSatisfied) | None => MatchPolicy::OnceSatisfied,
        };
        let waiting_time = args.default_timeout.filter(|time| time.as_nanos() > 0).unwrap_or(defaults.waiting_time);
        let is_aware = args.aware_network_topology == Some(true);
        Self { defaults: Defaults { waiting_time, policy }, is_aware }
    }
}

impl Plugin for Coscheduling {
    fn name(&self) -> &'static str {
        "Coscheduling"
    }

    fn reads(&self) -> &'static [ResourceKind] {
        const { &[ResourceKind::typed::<PodGroup>()] }
    }

    fn state(&self) -> Option<Box<dyn State>> {
        Some(Box::new(Context::new(self.defaults)))
    }

    fn services(&self) -> &'static [&'static str] {
        &["gangs", "gang/:namespace/:name"]
    }

    fn service(&self, path: &[&str], cluster: &Cluster) -> Option<Value> {
        let gangs = &cluster.state::<Context>()?.gangs;
        match *path {
            ["gangs"] => Some(gangs.summaries()),
            ["gang", namespace, name] => gangs.summary(&ObjectKey::new(namespace, name)),
            _ => None,
        }
    }

    fn pre_enqueue(&self, pod: &Pod, cluster: &Cluster) -> Result<(), String> {
        cluster.state::<Context>().map_or(Ok(()), |context| context.may_queue(&pod.uid))
    }

    fn next_pod(&self, cluster: &Cluster) -> Option<Uid> {
        cluster.state::<Context>()?.next().cloned()
    }

    fn not_there(&self, uid: &Uid, cluster: &mut Cluster, orders: &mut Orders) {
        if let Some(context) = cluster.state_mut::<Context>() {
            context.lost(uid, orders);
        }
    }

    fn admit(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        let Some(context) = cluster.state::<Context>() else { return Ok(()) };
        let gang = context.gangs.gang_of(&request.pod.uid).and_then(|gang| context.gangs.declaration(gang));
        if self.is_aware && gang.is_some_and(|gang| gang.topology.is_some()) {
            return Err(Rejection::unresolvable("this scheduler does not place gangs by the network topology yet"));
        }
        context.admits(&request.pod.uid)
    }

    fn permit(&self, request: &Request<'_>, cluster: &mut Cluster, orders: &mut Orders) -> Permit {
        let context = cluster.state_mut::<Context>();
        context.map_or(Permit::Allow, |context| context.permit(&request.pod.uid, orders))
    }

    fn unreserved(&self, placed: &Placed, cluster: &mut Cluster, orders: &mut Orders) {
        if let Some(context) = cluster.state_mut::<Context>() {
            context.lost(&placed.pod.uid, orders);
        }
    }

    fn refused(&self, request: &Request<'_>, found: &Found, cluster: &mut Cluster, orders: &mut Orders) {
        let uid = &request.pod.uid;
        if cluster.state::<Context>().is_some_and(|context| context.gangs.gang_of(uid).is_some()) {
            let reason = found.words(request.plugins, cluster);
            if let Some(context) = cluster.state_mut::<Context>() {
                context.refuse(uid, &reason, orders);
            }
        }
    }

    fn settle(&self, cluster: &mut Cluster, orders: &mut Orders) {
        if let Some(context) = cluster.state_mut::<Context>() {
            context.settle(orders);
        }
    }

    fn pre_bind(&self, request: &Request<'_>, _: &Placed, cluster: &Cluster, patch: &mut Patch) {
        let context = cluster.state::<Context>();
        let released = context.and_then(|context| context.gangs.released_with(&request.pod.uid));
        let written = released.map(|(group, members)| bind_annotations(group, members)).unwrap_or_default();
        for key in [
            BIND_GANG_GROUP_ID.key.name(),
            BIND_GANG_GROUP_ID.deprecated,
            BIND_GANG_MEMBER_COUNT.key.name(),
            BIND_GANG_MEMBER_COUNT.deprecated,
        ] {
            match written.get(key) {
                Some(value) => patch.annotate(key, value),
                // A pod that was once bound with others says so no longer.
                None if request.template().annotations.get(key).is_some() => {
                    patch.annotations.insert(key.to_owned(), None);
                }
                None => {}
            }
        }
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED
            | Events::NODE_ALLOCATABLE
            | Events::NODE_LABELS
            | Events::NODE_TAINTS
            | Events::POD_REMOVED
            | Events::POD_CHANGED
            | Events::OBJECTS
    }

    /// What refused a member is not known here, so whatever may help anybody helps; but only those that may be tried.
    fn may_help(&self, pod: &Pod, _: &Event, cluster: &Cluster) -> bool {
        self.pre_enqueue(pod, cluster).is_ok()
    }
}

#[cfg(test)]
mod tests;
