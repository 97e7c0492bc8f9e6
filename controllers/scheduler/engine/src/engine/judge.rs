//! What the plugins of a pod's profile say to the queue.

use std::sync::Arc;

use koord_core::uid::Uid;

use crate::{
    cluster::Cluster,
    cycle::Profile,
    event::Event,
    framework::Plugin,
    pod::Pod,
    queue::{Judge, PluginSet},
};

/// The profiles, with the cluster that their plugins look at.
pub(super) struct Judged<'a> {
    pub(super) profiles: &'a [Arc<Profile>],
    pub(super) cluster: &'a Cluster,
}

impl Judged<'_> {
    fn plugins(&self, pod: &Pod) -> Option<&[Arc<dyn Plugin>]> {
        let profile = self.profiles.iter().find(|profile| profile.scheduler == pod.template.scheduler);
        profile.map(|profile| &*profile.plugins)
    }
}

impl Judge for Judged<'_> {
    fn gate(&self, pod: &Pod, first: Option<u8>) -> Result<(), u8> {
        let Some(plugins) = self.plugins(pod) else { return Ok(()) };
        let order = first.into_iter().chain((0..PluginSet::PLUGINS_MAX).filter(|index| Some(*index) != first));
        for index in order.take(plugins.len()) {
            let Some(plugin) = plugins.get(usize::from(index)) else { continue };
            plugin.pre_enqueue(pod, self.cluster).map_err(|_| index)?;
        }
        Ok(())
    }

    fn wakes(&self, pod: &Pod, plugin: u8) -> bool {
        self.plugins(pod).and_then(|plugins| plugins.get(usize::from(plugin))).is_some_and(|plugin| plugin.wakes())
    }

    fn instead(&self, pod: &Pod, plugin: u8) -> Option<Uid> {
        self.plugins(pod)?.get(usize::from(plugin))?.tried_instead(pod, self.cluster)
    }

    fn may_help(&self, pod: &Pod, refused_by: PluginSet, event: &Event) -> bool {
        let Some(plugins) = self.plugins(pod) else { return false };
        let kinds = event.kinds();
        refused_by.iter().filter_map(|index| plugins.get(usize::from(index))).any(|plugin| {
            matches!(event, Event::Timeout) || plugin.events().meets(kinds) && plugin.may_help(pod, event, self.cluster)
        })
    }
}
