//! A round: the members of a gang group are tried one after the other, and placed as a whole or not at all (3E.2).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{Reason, ReasonCode};
use koord_types::gang::{BIND_GANG_GROUP_ID, BIND_GANG_MEMBER_COUNT};

use super::group::GangGroup;

/// Said of a round in which all members were tried.
const ATTEMPTED: &str = "all pending pods is already been attempted";

/// A member that may be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) uid: Uid,
    pub(super) key: ObjectKey,
    pub(super) gang: ObjectKey,
}

/// The trial of a gang group. Ask for the [`Round::next`] member, say whether it was placed, and look at the outcome when
/// there is none.
#[derive(Clone, Debug)]
pub struct Round {
    group: GangGroup,
    /// How many more pods each gang needs.
    missing: BTreeMap<ObjectKey, usize>,
    rest: VecDeque<Candidate>,
    /// Those of the rest, to be found by uid.
    awaited: BTreeSet<Uid>,
    placed: Vec<Uid>,
    refused: Vec<Uid>,
    /// Of the first member that was refused.
    reason: Option<String>,
    obstacle: Option<Obstacle>,
    is_hopeless: bool,
}

/// What came of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub group: GangGroup,
    /// Whether those that were placed stay placed. Otherwise none does.
    pub is_complete: bool,
    /// Members for which there was a place.
    pub placed: Vec<Uid>,
    /// Members for which there was none; each has its own reasons.
    pub refused: Vec<Uid>,
    /// Members that were not tried.
    pub untried: Vec<Uid>,
    /// Why none of them may be placed, where the round is not complete.
    pub reason: String,
    /// The first member that was refused.
    pub obstacle: Option<Obstacle>,
}

/// Why a round has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Every gang has enough.
    Placed,
    /// Nobody is left to be tried.
    Attempted,
    /// The gangs of the group are gone.
    Gone,
    /// A member of another group was tried in between.
    Interrupted,
}

/// A member for which there was no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub member: ObjectKey,
    /// What is said about it.
    pub missing: String,
    /// The node that came nearest to taking it.
    pub best_node: Option<Arc<str>>,
}

impl Ending {
    /// Its words, those of the original where it has them.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Placed => "gang is already succeed",
            Self::Attempted => ATTEMPTED,
            Self::Gone => "gang is nil, may be already deleted",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Round {
    /// A round over these candidates, where gangs need so many.
    pub(super) fn new(group: GangGroup, missing: BTreeMap<ObjectKey, usize>, rest: VecDeque<Candidate>) -> Self {
        let (placed, refused) = (Vec::new(), Vec::new());
        let awaited = rest.iter().map(|candidate| candidate.uid.clone()).collect();
        Self { group, missing, rest, awaited, placed, refused, reason: None, obstacle: None, is_hopeless: false }
    }

    /// The member to try now, beside all that were placed before; none when the round is over.
    pub fn next(&self) -> Option<&Uid> {
        let is_over = self.is_complete() || self.is_hopeless;
        self.rest.front().filter(|_| !is_over).map(|candidate| &candidate.uid)
    }

    /// The group that is tried.
    pub fn group(&self) -> &GangGroup {
        &self.group
    }

    /// Whether a member has not been tried.
    pub fn awaits(&self, uid: &Uid) -> bool {
        self.awaited.contains(uid)
    }

    /// The members that have not been tried.
    pub fn untried(&self) -> impl Iterator<Item = &Uid> {
        self.rest.iter().map(|candidate| &candidate.uid)
    }

    /// The members for which there is a place.
    pub fn in_place(&self) -> &[Uid] {
        &self.placed
    }

    /// There is a place for a member.
    pub fn placed(&mut self, uid: &Uid) {
        if let Some(candidate) = self.take(uid) {
            if let Some(missing) = self.missing.get_mut(&candidate.gang) {
                *missing = missing.saturating_sub(1);
            }
            self.placed.push(candidate.uid);
        }
    }

    /// There is no place for a member. `reason` is what is said about it, and `best_node` came nearest to taking it.
    pub fn refused(&mut self, uid: &Uid, reason: &str, best_node: Option<Arc<str>>) {
        let Some(candidate) = self.take(uid) else { return };
        let (group, placed) = (&self.group, self.placed.len());
        self.reason.get_or_insert_with(|| {
            format!(
                "GangGroup {group:?} gets rejected due to member Pod \"{}\" is unschedulable with reason {reason:?}, \
                 alreadyWaitForBound: {placed}",
                candidate.key
            )
        });
        self.lack(&candidate.gang);
        self.obstacle.get_or_insert_with(|| Obstacle { member: candidate.key, missing: reason.to_owned(), best_node });
        self.refused.push(candidate.uid);
    }

    /// A member is gone, or may not be placed any more. Where it had a place, nothing can come of the round.
    pub fn forget(&mut self, uid: &Uid) {
        if let Some(candidate) = self.take(uid) {
            self.lack(&candidate.gang);
        }
        let placed = self.placed.len();
        self.placed.retain(|placed| placed != uid);
        self.is_hopeless |= self.placed.len() < placed;
    }

    /// It fails, whichever members are left.
    pub fn give_up(&mut self) {
        self.is_hopeless = true;
    }

    /// What came of it.
    pub fn outcome(self) -> Outcome {
        Outcome {
            is_complete: self.is_complete(),
            untried: self.rest.into_iter().map(|candidate| candidate.uid).collect(),
            reason: self.reason.unwrap_or_else(|| ATTEMPTED.to_owned()),
            obstacle: self.obstacle,
            group: self.group,
            placed: self.placed,
            refused: self.refused,
        }
    }

    /// Whether every gang has enough.
    pub fn is_complete(&self) -> bool {
        !self.is_hopeless && !self.placed.is_empty() && self.missing.values().all(|missing| *missing == 0)
    }

    fn take(&mut self, uid: &Uid) -> Option<Candidate> {
        if !self.awaited.remove(uid) {
            return None;
        }
        // The next one, mostly.
        let at = self.rest.iter().position(|candidate| candidate.uid == *uid)?;
        self.rest.remove(at)
    }

    /// A gang has a candidate less.
    fn lack(&mut self, gang: &ObjectKey) {
        let left = self.rest.iter().filter(|other| other.gang == *gang).count();
        self.is_hopeless |= self.missing.get(gang).is_some_and(|missing| left < *missing);
    }
}

/// A round came to nothing, and which member was in the way.
pub(super) fn infeasible(text: &str, obstacle: Option<&Obstacle>) -> Reason {
    let reason = ReasonCode::GangInfeasible.reason(text);
    let Some(Obstacle { member, missing, best_node }) = obstacle else { return reason };
    let reason = reason.with("member", member).with("missing", missing);
    match best_node {
        Some(node) => reason.with("best_node", node),
        None => reason,
    }
}

/// The annotations of a pod that is bound together with others: under the names of today and under the old ones.
pub fn bind_annotations(group: &str, members: usize) -> BTreeMap<&'static str, String> {
    if members < 2 {
        return BTreeMap::new();
    }
    let group = [BIND_GANG_GROUP_ID.key.name(), BIND_GANG_GROUP_ID.deprecated].map(|key| (key, group.to_owned()));
    let count = [BIND_GANG_MEMBER_COUNT.key.name(), BIND_GANG_MEMBER_COUNT.deprecated];
    group.into_iter().chain(count.map(|key| (key, members.to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a round of members `gang/name`, of which those in `fitting` fit.
    fn play(needs: &[(&str, usize)], members: &[&str], fitting: &[&str]) -> (Outcome, Vec<String>) {
        let candidate = |key: &&str| Candidate {
            uid: Uid::from(*key),
            key: ObjectKey::cluster(key),
            gang: ObjectKey::cluster(key.split('/').next().unwrap()),
        };
        let missing = needs.iter().map(|(gang, missing)| (ObjectKey::cluster(gang), *missing)).collect();
        let group = GangGroup::new(vec![ObjectKey::cluster("g")]);
        let mut round = Round::new(group, missing, members.iter().map(candidate).collect());
        let mut tried = Vec::new();
        while let Some(uid) = round.next().cloned() {
            if fitting.contains(&&*uid.to_string()) {
                round.placed(&uid);
            } else {
                round.refused(&uid, "0/1 nodes are available: 1 Insufficient cpu.", None);
            }
            tried.push(uid.to_string());
        }
        (round.outcome(), tried)
    }

    #[test]
    fn a_round_ends_when_every_gang_has_enough() {
        let (outcome, tried) =
            play(&[("a", 1), ("b", 1)], &["a/1", "a/2", "b/1", "b/2"], &["a/1", "a/2", "b/1", "b/2"]);
        assert_eq!(tried, ["a/1", "a/2", "b/1"]);
        assert!(outcome.is_complete && outcome.placed.len() == 3 && outcome.untried == [Uid::from("b/2")]);
    }

    #[test]
    fn a_round_ends_when_a_gang_cannot_have_enough_any_more() {
        let (outcome, tried) = play(&[("a", 2)], &["a/1", "a/2", "a/3", "a/4"], &["a/1"]);
        assert_eq!(tried, ["a/1", "a/2", "a/3", "a/4"], "one of the last two might have been enough");
        assert!(!outcome.is_complete);
        let (outcome, tried) = play(&[("a", 3)], &["a/1", "a/2", "a/3"], &["a/1", "a/3"]);
        assert_eq!(
            (tried.len(), outcome.untried, outcome.refused),
            (2, vec![Uid::from("a/3")], vec![Uid::from("a/2")])
        );
        let reason = "GangGroup \"g\" gets rejected due to member Pod \"a/2\" is unschedulable with reason \
                      \"0/1 nodes are available: 1 Insufficient cpu.\", alreadyWaitForBound: 1";
        assert_eq!(outcome.reason, reason);
    }

    #[test]
    fn a_member_that_does_not_fit_is_left_out_where_others_are_enough() {
        let (outcome, _) = play(&[("a", 2)], &["a/1", "a/2", "a/3"], &["a/2", "a/3"]);
        assert!(outcome.is_complete);
        assert_eq!((outcome.placed.len(), outcome.refused), (2, vec![Uid::from("a/1")]));
    }

    #[test]
    fn a_satisfied_gang_places_one_pod() {
        let (outcome, tried) = play(&[("a", 0)], &["a/1", "a/2"], &["a/1", "a/2"]);
        assert_eq!((outcome.is_complete, tried.len()), (true, 1));
    }

    #[test]
    fn too_few_candidates_are_tried_and_reported() {
        let (outcome, tried) = play(&[("a", 2)], &["a/1"], &["a/1"]);
        assert_eq!((outcome.is_complete, tried.len()), (false, 1));
        assert_eq!(outcome.reason, "all pending pods is already been attempted");
    }

    #[test]
    fn pods_that_are_bound_alone_carry_no_bind_group() {
        assert!(bind_annotations("ns/g", 1).is_empty());
        let annotations = bind_annotations("ns/a,ns/b", 4);
        assert_eq!(annotations["internal.scheduling.koordinator.sh/bind-gang-group-id"], "ns/a,ns/b");
        assert_eq!(annotations["scheduling.koordinator.sh/bind-gang-member-count"], "4");
        assert_eq!(annotations.len(), 4);
    }
}
