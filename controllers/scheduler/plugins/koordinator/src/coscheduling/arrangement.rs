//! Where the members of a gang go that requires a network topology (3E.6).

use std::{collections::BTreeMap, iter::repeat_n, sync::Arc};

use koord_core::uid::Uid;
use koord_scheduler_framework::{
    Profile, ReasonCode, Refusals, Rejection,
    cluster::Cluster,
    columns::Row,
    cycle::{Filled, NotNext, Rehearsal},
    pod::Pod,
    unavailable,
};
use koord_types::gang::NetworkTopologySpec;

use super::{
    context::Context,
    network::selector,
    topology::{Offer, Requirements, Tree, Unplaceable},
};

/// The node of each member.
pub(super) type Arrangement = BTreeMap<Uid, Arc<str>>;

/// Arranges pods that need a place together. All of it is tried, and undone.
pub(super) fn arrange(
    profile: &Profile,
    cluster: &mut Cluster,
    spec: &NetworkTopologySpec,
    pods: &[Arc<Pod>],
) -> Result<Arrangement, Rejection> {
    let tree = tree(cluster)?;
    let mut rehearsal = Rehearsal::new(profile, cluster, pods);
    arrange_in(&mut rehearsal, profile, &tree, spec, |_| 0)
        .map_err(|error| Rejection::unschedulable(ReasonCode::NetworkTopologyFull.reason(error.to_string())))
}

/// The tree of the cluster's network.
pub(super) fn tree(cluster: &Cluster) -> Result<Arc<Tree>, Rejection> {
    let tree = cluster.state::<Context>().and_then(|context| context.network.tree(cluster));
    tree.cloned().ok_or_else(without_tree)
}

/// What is said of a pod that asks for a place in a network of which nothing is known.
pub(super) fn without_tree() -> Rejection {
    Rejection::unresolvable(ReasonCode::NetworkTopologyMissing.reason("no cluster network topology"))
}

/// Arranges the pods of a rehearsal in the cluster as it would be. Of places that are alike otherwise, the one with the
/// highest score is taken.
pub(super) fn arrange_in(
    rehearsal: &mut Rehearsal<'_>,
    profile: &Profile,
    tree: &Tree,
    spec: &NetworkTopologySpec,
    score: impl Fn(Row) -> i64,
) -> Result<Arrangement, Unplaceable> {
    let (offers, full) = survey(rehearsal, score);
    let mut pods: Vec<&Arc<Pod>> = rehearsal.pods().collect();
    let offers = offers.iter().map(|(node, offer)| (&**node, *offer));
    let shares = tree.place(&Requirements::new(spec, pods.len()), offers).map_err(|mut unplaceable| {
        unplaceable.why = full.words(profile, rehearsal.cluster());
        unplaceable
    })?;
    // QUIRK: the members sit down in the order of their names, whatever their index says
    // (`members_sit_down_by_name_whatever_their_index`).
    pods.sort_by_key(|pod| (pod.key.name(), pod.key.namespace()));
    let seats = shares.into_iter().flat_map(|(node, pods)| repeat_n(Arc::from(node), pods));
    Ok(pods.into_iter().map(|pod| pod.uid.clone()).zip(seats).collect())
}

/// Tries every pod on the node that it is to go to, the pods of a node one after the other, with what plugins other than this one
/// demand and reserve.
pub(super) fn seat_all(
    mut rehearsal: Rehearsal<'_>,
    arrangement: &Arrangement,
    planner: &str,
) -> Result<(), Rejection> {
    let cluster = rehearsal.cluster();
    let seat = |(index, pod): (usize, &Arc<Pod>)| {
        let node = arrangement.get(&pod.uid)?;
        Some((Arc::clone(node), index, cluster.row(node)?))
    };
    let mut seats: Vec<_> = rehearsal.pods().enumerate().filter_map(seat).collect();
    seats.sort();
    let is_seated = seats.len() == rehearsal.pods().len()
        && seats.into_iter().all(|(_, pod, row)| {
            rehearsal.admit(pod, planner).is_ok()
                && rehearsal.takes(pod, row).is_ok()
                && rehearsal.place(pod, row).is_ok()
        });
    let failed = || Rejection::unresolvable(ReasonCode::GangUnplanned.reason("job batch schedule failed"));
    is_seated.then_some(()).ok_or_else(failed)
}

/// Why nodes take no more pods.
#[derive(Debug, Default)]
struct Full {
    by_filters: Refusals,
    /// How many nodes each reason of Reserve holds for, in words.
    by_reserve: BTreeMap<String, usize>,
}

impl Full {
    fn add(&mut self, refused: NotNext, row: Row) {
        match refused {
            NotNext::Filter(verdict) => self.by_filters.add(verdict, row),
            NotNext::Reserve(rejection) => {
                rejection.reasons.into_iter().for_each(|reason| *self.by_reserve.entry(reason.text).or_default() += 1);
            }
        }
    }

    fn words(self, profile: &Profile, cluster: &Cluster) -> String {
        let mut reasons = self.by_filters.by_reason(&profile.plugins, cluster);
        self.by_reserve.into_iter().for_each(|(reason, nodes)| *reasons.entry(reason).or_default() += nodes);
        unavailable(&reasons, cluster.len())
    }
}

/// What each node offers to the pods, and why it takes no more.
fn survey(rehearsal: &mut Rehearsal<'_>, score: impl Fn(Row) -> i64) -> (Vec<(Arc<str>, Offer)>, Full) {
    let near = rehearsal.pods().next().map(|pod| Arc::clone(&pod.template));
    let nodes: Vec<(Row, Arc<str>)> =
        rehearsal.cluster().rows().map(|(row, node)| (row, Arc::clone(&node.name))).collect();
    let mut full = Full::default();
    let offers = nodes.into_iter().map(|(row, node)| {
        let Filled { pods: slots, refused } = rehearsal.fill(row);
        if let Some(refused) = refused {
            full.add(refused, row);
        }
        let context = rehearsal.cluster().state::<Context>();
        let existing = context.map_or(0, |context| context.network.near(near.as_deref().and_then(selector), row));
        (node, Offer { slots, existing, score: score(row) })
    });
    (offers.collect(), full)
}
