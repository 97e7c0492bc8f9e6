//! PreEnqueue and queueing hints of the plugins of a pod's profile.

use std::sync::Arc;

use koord_core::uid::Uid;
use koord_scheduler_framework::{PluginSet, Profile, Registration, cluster::Cluster, event::Event, pod::Pod};

use crate::queue::QueueingHints;

/// The profiles, with the cluster that their plugins look at.
pub(super) struct PluginHints<'a> {
    pub(super) profiles: &'a [Arc<Profile>],
    pub(super) cluster: &'a Cluster,
}

impl PluginHints<'_> {
    fn plugins(&self, pod: &Pod) -> Option<&[Registration]> {
        let profile = self.profiles.iter().find(|profile| profile.scheduler == pod.template.scheduler);
        profile.map(|profile| &*profile.plugins)
    }
}

impl QueueingHints for PluginHints<'_> {
    fn pre_enqueue(&self, pod: &Pod, first: Option<u8>) -> Result<(), u8> {
        let Some(plugins) = self.plugins(pod) else { return Ok(()) };
        let order = first.into_iter().chain((0..PluginSet::PLUGINS_MAX).filter(|index| Some(*index) != first));
        for index in order.take(plugins.len()) {
            let Some(plugin) = plugins.get(usize::from(index)) else { continue };
            let Some(point) = &plugin.pre_enqueue else { continue };
            point.pre_enqueue(pod, self.cluster).map_err(|_| index)?;
        }
        Ok(())
    }

    fn activates(&self, pod: &Pod, plugin: u8) -> bool {
        let plugin = self.plugins(pod).and_then(|plugins| plugins.get(usize::from(plugin)));
        plugin.and_then(|plugin| plugin.pre_enqueue.as_ref()).is_some_and(|point| point.activates())
    }

    fn representative(&self, pod: &Pod, plugin: u8) -> Option<Uid> {
        self.plugins(pod)?.get(usize::from(plugin))?.pre_enqueue.as_ref()?.representative(pod, self.cluster)
    }

    fn is_helped_by(&self, pod: &Pod, refused_by: PluginSet, event: &Event) -> bool {
        let Some(plugins) = self.plugins(pod) else { return false };
        let kinds = event.kinds();
        refused_by.iter().filter_map(|index| plugins.get(usize::from(index))).any(|plugin| {
            let helps =
                || plugin.enqueue_extensions.as_ref().is_none_or(|point| point.is_helped_by(pod, event, self.cluster));
            matches!(event, Event::Timeout) || plugin.events().meets(kinds) && helps()
        })
    }
}
