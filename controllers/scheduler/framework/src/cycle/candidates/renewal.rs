//! Filters and scores that are prepared again: those that do not follow changed rows, and those of plugins that may say something
//! else by now.

use super::Candidates;
use crate::{
    PreparedFilter, Profile, Registration, Request,
    best::Best,
    cluster::Cluster,
    cycle::{Prepared, filtering::Filtering, scorer::Scorer},
    timing::{ExtensionPoint, Timing},
};

impl Candidates {
    /// Prepares again what inherits its answers.
    pub(super) fn renew_heirs(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let Self { prepared, best, .. } = self;
        let filters = prepared.filters.iter().filter(|known| known.filter.inherits());
        let filters: Vec<u8> = filters.map(|known| known.plugin).collect();
        let scores = prepared.scores.iter().filter(|scorer| scorer.score.inherits()).map(|scorer| scorer.plugin);
        let scores: Vec<u8> = scores.collect();
        prepared.renew((&filters, &scores), profile, request, cluster, best, timing)
    }

    /// Prepares again what does not follow the rows, and what may say something else by now.
    pub(super) fn renew(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let epochs = profile.epochs(cluster);
        let known = std::mem::replace(&mut self.epochs, epochs);
        self.renewals += u64::from(known != self.epochs);
        let changed = |is_changed: fn((u64, u64), (u64, u64)) -> bool| {
            let epochs = known.iter().zip(&self.epochs);
            let changed = (0_u8..).zip(epochs).filter(move |(_, (old, new))| is_changed(**old, **new));
            changed.map(|(plugin, _)| plugin)
        };
        let Self { prepared, best, .. } = self;
        let filters =
            prepared.filters.iter().filter(|Filtering { filter, .. }| !filter.follows_rows() && !filter.inherits());
        let filters = filters.map(|known| known.plugin);
        let scores = prepared.scores.iter().filter(|scorer| !scorer.score.follows_rows() && !scorer.score.inherits());
        let scores = scores.map(|scorer| scorer.plugin);
        let filters: Vec<u8> = filters.chain(changed(|old, new| old.0 != new.0)).collect();
        let scores: Vec<u8> = scores.chain(changed(|old, new| old != new)).collect();
        if !(filters.is_empty() && scores.is_empty()) {
            cluster.exclude_all();
        }
        prepared.renew((&filters, &scores), profile, request, cluster, best, timing)
    }
}

impl Profile {
    /// The place of a plugin among those that filter.
    fn place_of_filter(&self, plugin: u8) -> Option<usize> {
        self.filters.iter().position(|known| *known == plugin)
    }

    /// The place of a plugin among those that score.
    fn place_of_score(&self, plugin: u8) -> Option<usize> {
        self.scores.iter().position(|(known, _)| *known == plugin)
    }

    /// By plugin: the epochs of what it says at all, and of its scores alone.
    pub(super) fn epochs(&self, cluster: &Cluster) -> Vec<(u64, u64)> {
        let epochs = |plugin: &Registration| {
            let signature = plugin.scheduling_signature.as_ref();
            signature.map_or((0, 0), |signature| (signature.epoch(cluster), signature.score_epoch(cluster)))
        };
        self.plugins.iter().map(epochs).collect()
    }
}

impl Prepared {
    /// Prepares filters and scores again, by their plugins. Says no where what was kept of the rows does not hold any more.
    fn renew(
        &mut self,
        (filters, scores): (&[u8], &[u8]),
        profile: &Profile,
        request: &Request<'_>,
        cluster: &Cluster,
        best: &mut Best,
        timing: &mut impl Timing,
    ) -> bool {
        filters.iter().all(|plugin| self.renew_filter(profile, *plugin, request, cluster, timing))
            && scores.iter().all(|plugin| self.renew_score(profile, *plugin, request, cluster, best, timing))
    }

    /// Prepares a filter again. Says no where what was kept of the rows does not hold any more.
    fn renew_filter(
        &mut self,
        profile: &Profile,
        plugin: u8,
        request: &Request<'_>,
        cluster: &Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let (Some(registration), Some(place)) =
            (profile.plugins.get(usize::from(plugin)), profile.place_of_filter(plugin))
        else {
            return true;
        };
        let Some(point) = &registration.filter else { return true };
        let answer = timing.call(registration, ExtensionPoint::PreFilter, || point.prepare_filter(request, cluster));
        let (names, new) = match answer {
            PreparedFilter::Skip => (None, None),
            PreparedFilter::Nodes(filter) => (None, Some(filter)),
            PreparedFilter::NodeNames(names, filter) => (Some(names), filter),
            PreparedFilter::None(_) => return false,
        };
        if !self.subset.is_limited(plugin, names.as_ref()) {
            return false;
        }
        let at = self.filters.partition_point(|known| profile.place_of_filter(known.plugin) < Some(place));
        let old = self.filters.get(at).filter(|known| known.plugin == plugin);
        let new = new.map(|filter| Filtering::new(plugin, filter));
        let inherits = old.zip(new.as_ref()).is_some_and(|(old, new)| old.filter.inherits() && new.filter.inherits());
        let is_local = !inherits && old.into_iter().chain(&new).any(|filter| filter.is_local);
        let replaced = at..at + usize::from(old.is_some());
        self.filters.splice(replaced, new);
        !is_local
    }

    /// Prepares a score again; what the scores of all rows have of it is gone from them. Says no where it is part of them otherwise.
    fn renew_score(
        &mut self,
        profile: &Profile,
        plugin: u8,
        request: &Request<'_>,
        cluster: &Cluster,
        best: &mut Best,
        timing: &mut impl Timing,
    ) -> bool {
        let Some(place) = profile.place_of_score(plugin) else { return true };
        let (_, weight) = profile.scores[place];
        let registration = profile.plugins.get(usize::from(plugin));
        let new = registration.and_then(|registration| {
            let point = registration.score.as_ref()?;
            timing.call(registration, ExtensionPoint::PreScore, || point.prepare_score(request, cluster))
        });
        let new = new.map(|score| Scorer::new(plugin, weight, score));
        let known = self.scores.iter().position(|scorer| scorer.plugin == plugin);
        let mut old = known.map(|at| self.scores.remove(at));
        if let Some(old) = &mut old {
            old.withdraw(best);
        }
        let is_local = old.iter().chain(&new).any(|scorer| scorer.is_local);
        if let Some(new) = new {
            // In the order of the profile, by which it is seen that other classes are evaluated alike.
            let is_before = |scorer: &Scorer| profile.place_of_score(scorer.plugin) < Some(place);
            let at = known.unwrap_or_else(|| self.scores.partition_point(is_before));
            self.scores.insert(at, new.after(old));
        }
        !is_local
    }
}
