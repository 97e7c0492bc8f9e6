//! In which order members are tried.

use std::cmp::Reverse;

use koord_core::{key::ObjectKey, uid::Uid};

use super::{Gangs, Member};

/// The order of members in a round: the highest priority first, then that of the gangs, then by index and name.
pub(super) fn order(member: &Member) -> (Reverse<i32>, &ObjectKey, (bool, Option<u64>, &ObjectKey)) {
    (Reverse(member.priority), &member.gang, by_index(member))
}

/// The order within a gang: those with an index first, then by name.
fn by_index(member: &Member) -> (bool, Option<u64>, &ObjectKey) {
    (member.index.is_none(), member.index, &member.key)
}

impl Gangs {
    /// These members by their index.
    pub fn by_index<'a>(&self, uids: impl Iterator<Item = &'a Uid>) -> Vec<Uid> {
        let mut uids: Vec<&Uid> = uids.collect();
        uids.sort_by_key(|uid| self.entry(uid).map(|(member, _)| by_index(member)));
        uids.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn members_without_an_index_come_last_and_then_by_name() {
        let mut gangs = Gangs::default();
        let members = [("e", None), ("d", Some(10)), ("c", None), ("b", Some(9)), ("a", Some(10))];
        for (name, index) in members {
            let member = Member {
                key: ObjectKey::new("ns", name),
                gang: ObjectKey::cluster("ns/g"),
                scheduler: Arc::default(),
                is_ready: true,
                is_bound: false,
                priority: 0,
                created: 0,
                index,
            };
            gangs.set(&Uid::from(name), member, None, false);
        }
        let uids = members.map(|(name, _)| Uid::from(name));
        assert_eq!(gangs.by_index(uids.iter()), ["b", "a", "d", "c", "e"].map(Uid::from));
        let round = gangs.round(&Uid::from("e")).unwrap();
        assert_eq!(round.untried().cloned().collect::<Vec<_>>(), ["e", "b", "a", "d", "c"].map(Uid::from));
    }
}
