//! Sums of quotas, compared with those of another count.

use std::{collections::BTreeMap, sync::Arc};

use koord_quota::Quota;
use koord_resource::ResourceList;
use serde_json::json;

use super::{Counted, Forest, Group, Kind, Ledger};

/// How many pods of a template there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// That are known, placed or not.
    pub known: usize,
    /// That are placed.
    pub placed: usize,
}

impl Ledger {
    /// Counts so many pods that are alike.
    pub fn count_all(&mut self, pod: Counted<'_>, Times { known, placed }: Times) {
        let group = self.groups.entry(pod.claim.clone()).or_default();
        group.pods += known + placed;
        let [of_known, of_placed] = [known, placed].map(|times| times_over(pod.requests, times));
        Kind::of_known(pod.is_preemptible).for_each(|kind| group.sums.add(kind, &of_known));
        Kind::of_placed(pod.is_preemptible).for_each(|kind| group.sums.add(kind, &of_placed));
    }

    /// Compares what the pods of each claim amount to with another count, and takes that where it differs.
    pub fn audit_groups(&mut self, actual: &Self) -> Vec<String> {
        let nothing = Group::default();
        let added = actual.groups.keys().filter(|claim| !self.groups.contains_key(*claim));
        let wrong = self.groups.keys().chain(added).filter_map(|claim| {
            let [cached, actual] = [self, actual].map(|ledger| ledger.groups.get(claim).unwrap_or(&nothing));
            let differs = cached.pods != actual.pods || !cached.sums.means(&actual.sums);
            let name = format!("{}/{}", claim.namespace, claim.label);
            differs.then(|| format!("{name}: {} instead of {}", cached.words(), actual.words()))
        });
        let wrong: Vec<String> = wrong.collect();
        if !wrong.is_empty() {
            self.groups = actual.groups.clone();
            self.quotas_changed();
        }
        wrong
    }

    /// The same of what all nodes offer.
    pub fn audit_offered(&mut self, actual: &Self) -> Option<String> {
        (!self.offered.minus(&actual.offered).is_zero()).then(|| {
            let details = format!("{} instead of {}", json!(self.offered), json!(actual.offered));
            self.offered = actual.offered.clone();
            self.quotas_changed();
            details
        })
    }

    /// Compares the trees of these quotas, as far as they are built, with those that are built anew, and takes these where they differ:
    /// the names of quotas, and how they differed.
    pub fn audit_forest<'a>(&mut self, quotas: impl IntoIterator<Item = &'a Quota>) -> BTreeMap<Arc<str>, String> {
        let Some(cached) = self.forest.get() else { return BTreeMap::new() };
        let pods = self.groups.iter().map(|(claim, group)| (claim, &group.sums));
        let actual = Forest::new(&self.settings, quotas, pods, &self.offered);
        let wrong = cached.differences(&actual);
        if !wrong.is_empty() {
            self.forest = actual.into();
        }
        wrong
    }

    /// As if pods were counted that are not there.
    #[cfg(test)]
    pub(in crate::elastic_quota) fn spoil_groups(&mut self) {
        for group in self.groups.values_mut() {
            *group = Group { pods: 2, ..Group::default() };
        }
    }

    /// As if a quota used what it does not.
    #[cfg(test)]
    pub(in crate::elastic_quota) fn spoil_forest(&mut self, name: &str) {
        let one: ResourceList = [("cpu", "1".parse().unwrap())].into_iter().collect();
        self.forest.get_mut().unwrap().spoil(name, &one);
    }
}

impl Group {
    fn words(&self) -> String {
        format!("{} pods, {}", self.pods, self.sums)
    }
}

/// So many times the amounts.
fn times_over(amounts: &ResourceList, times: usize) -> ResourceList {
    let (mut sum, mut power, mut left) = (ResourceList::new(), amounts.clone(), times);
    while left > 0 {
        if left % 2 == 1 {
            sum.add(&power);
        }
        power = power.plus(&power);
        left /= 2;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_multiplied_exactly() {
        let amounts: ResourceList =
            [("cpu", "1500u".parse().unwrap()), ("x/y", "3".parse().unwrap())].into_iter().collect();
        for times in 0..20_usize {
            let sum = (0..times).fold(ResourceList::new(), |sum, _| sum.plus(&amounts));
            assert!(times_over(&amounts, times).minus(&sum).is_zero());
        }
    }
}
