//! What plugins say of a pod before nodes are asked.

use super::{Profile, Verdict};
use crate::{
    cluster::Cluster,
    plugin::{Among, Code, PreFilter, Rejection, Request},
};

impl Profile {
    /// The first plugin that rejects the pod beforehand or for good, or else the last that rejects it.
    pub fn admit(&self, request: &Request<'_>, cluster: &Cluster) -> Option<(u8, Rejection)> {
        self.screen(request, cluster).or_else(|| self.pre_filter(request, cluster))
    }

    /// The first plugin that rejects the pod beforehand.
    pub(super) fn screen(&self, request: &Request<'_>, cluster: &Cluster) -> Option<(u8, Rejection)> {
        let mut plugins = self.among(&self.admits);
        plugins.find_map(|(index, plugin)| Some((index, plugin.screen(request, cluster).err()?)))
    }

    /// The first plugin that rejects the pod in PreFilter for good, or else the last that rejects it there.
    pub(super) fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Option<(u8, Rejection)> {
        let mut last = None;
        for (index, plugin) in self.among(&self.admits) {
            match plugin.admit(request, cluster) {
                Ok(()) => {}
                Err(rejection) if rejection.code == Code::Unschedulable => last = Some((index, rejection)),
                Err(rejection) => return Some((index, rejection)),
            }
        }
        last
    }

    /// Why no node is left over of those that plugins name, where that comes before this rejection in PreFilter: plugins after one that
    /// rejects the pod for good are not asked, plugins after one that evictions may help are.
    pub(super) fn none_named(&self, request: &Request<'_>, rejected: (u8, Code), cluster: &Cluster) -> Option<Verdict> {
        let (rejecting, code) = rejected;
        let asked =
            self.among(&self.admits).take_while(|(index, _)| code == Code::Unschedulable || *index != rejecting);
        let mut among = Among::default();
        for (index, plugin) in asked.filter(|(index, plugin)| plugin.names_nodes() && self.filters.contains(index)) {
            if let PreFilter::Among(names, _) = plugin.filter(request, cluster) {
                among.limit(index, names);
            }
        }
        among.none_left()
    }
}
