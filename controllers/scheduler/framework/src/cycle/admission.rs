//! PreFilter of plugins, before nodes are filtered.

use super::{Profile, Verdict};
use crate::{
    Code, NodeSubset, PluginSet, PreparedFilter, Rejection, Request,
    cluster::Cluster,
    timing::{ExtensionPoint, Timing, Untimed},
};

impl Profile {
    /// The first plugin that rejects the pod beforehand or for good, or else the last that rejects it in PreFilter. That no node is left
    /// over of those that plugins name comes before such a rejection, where these come before it.
    pub fn admit(&self, request: &Request<'_>, cluster: &Cluster) -> Option<(u8, Rejection)> {
        self.admit_timed(request, cluster, &mut Untimed)
    }

    /// The same, with the time that single plugins take.
    pub(super) fn admit_timed(
        &self,
        request: &Request<'_>,
        cluster: &Cluster,
        timing: &mut impl Timing,
    ) -> Option<(u8, Rejection)> {
        if let Some(rejected) = self.screen(request, cluster, timing) {
            return Some(rejected);
        }
        let (plugin, rejection) = self.pre_filter(request, cluster, timing)?;
        // Plugins after one that rejects the pod for good are not called, plugins after one that evictions may help are.
        let until = (rejection.code != Code::Unschedulable).then_some(plugin);
        let none_named = self.none_named(request, until, cluster);
        Some(none_named.map_or((plugin, rejection), |verdict| self.rejected_by(&verdict, cluster)))
    }

    /// Why the pod is rejected as a whole although [`Profile::admit`] lets it in: no node is left over of those that plugins name.
    pub fn unnamed(&self, request: &Request<'_>, cluster: &Cluster) -> Option<(u8, Rejection)> {
        self.none_named(request, None, cluster).map(|verdict| self.rejected_by(&verdict, cluster))
    }

    /// The plugins that may let in a pod which this one has rejected: itself, and where it has named nodes and left none, those that
    /// have named nodes before it.
    pub fn rejecting(&self, plugin: u8, request: &Request<'_>, cluster: &Cluster) -> PluginSet {
        let filter = self.plugins.get(usize::from(plugin)).and_then(|plugin| plugin.filter.as_ref());
        let names = filter.is_some_and(|filter| filter.names_nodes());
        let verdict = if names { self.none_named(request, None, cluster) } else { None };
        let verdict = verdict.filter(|verdict| verdict.plugin == plugin);
        verdict.map_or(PluginSet::of(plugin), |verdict| verdict.plugins())
    }

    /// The first plugin that rejects the pod beforehand.
    fn screen(&self, request: &Request<'_>, cluster: &Cluster, timing: &mut impl Timing) -> Option<(u8, Rejection)> {
        self.at(&self.admits, |plugin| &plugin.before_pre_filter).find_map(|(index, plugin, point)| {
            let answer =
                timing.call(plugin, ExtensionPoint::BeforePreFilter, || point.before_pre_filter(request, cluster));
            Some((index, answer.err()?))
        })
    }

    /// The first plugin that rejects the pod in PreFilter for good, or else the last that rejects it there.
    fn pre_filter(
        &self,
        request: &Request<'_>,
        cluster: &Cluster,
        timing: &mut impl Timing,
    ) -> Option<(u8, Rejection)> {
        let mut last = None;
        for (index, plugin, point) in self.at(&self.admits, |plugin| &plugin.pre_filter) {
            match timing.call(plugin, ExtensionPoint::PreFilter, || point.pre_filter(request, cluster)) {
                Ok(()) => {}
                Err(rejection) if rejection.code == Code::Unschedulable => last = Some((index, rejection)),
                Err(rejection) => return Some((index, rejection)),
            }
        }
        last
    }

    /// Why no node is left over of those that plugins name, as far as these come before this one.
    fn none_named(&self, request: &Request<'_>, until: Option<u8>, cluster: &Cluster) -> Option<Verdict> {
        let end = self.admits.iter().position(|index| Some(*index) == until).unwrap_or(self.admits.len());
        let filters = self.at(&self.admits[..end], |plugin| &plugin.filter);
        let mut subset = NodeSubset::default();
        for (index, _, filter) in
            filters.filter(|(index, _, filter)| filter.names_nodes() && self.filters.contains(index))
        {
            if let PreparedFilter::NodeNames(names, _) = filter.prepare_filter(request, cluster) {
                subset.limit(index, names);
            }
        }
        subset.none_left(&self.admits)
    }
}
