//! What plugins write beside bindings: statuses, and reports of pods that no node takes.

use std::collections::BTreeMap;

use koord_core::write::Write;
use koord_scheduler_framework::{Explanation, StatusUpdates, pod::Pod};

use super::Engine;

impl Engine {
    /// What plugins want to be written. A plugin of several profiles is asked once.
    pub fn status_updates(&self) -> StatusUpdates {
        self.status_updates_of(|_| true)
    }

    /// What some plugins want to be written, by their names.
    pub fn status_updates_of(&self, is_included: impl Fn(&str) -> bool) -> StatusUpdates {
        let mut plugins = BTreeMap::new();
        let all = self.profiles.iter().flat_map(|profile| &profile.plugins);
        for plugin in all.filter(|plugin| is_included(plugin.name())) {
            plugins.entry(plugin.name()).or_insert(plugin);
        }
        plugins.values().fold(StatusUpdates::default(), |mut all, plugin| {
            let Some(point) = &plugin.status_writer else { return all };
            let status_updates = point.status_writes(&self.cluster);
            all.writes.extend(status_updates.writes);
            all.not_after(status_updates.again);
            all
        })
    }

    /// What of [`Engine::status_updates_of`] these plugins is not to wait until its next call.
    pub fn urgent_of(&mut self, is_included: impl Fn(&str) -> bool) -> Vec<Write> {
        let plugins = self.profiles.iter().flat_map(|profile| &profile.plugins);
        let plugins = plugins.filter(|plugin| is_included(plugin.name()));
        let points = plugins.filter_map(|plugin| plugin.status_writer.as_ref());
        points.flat_map(|point| point.urgent_writes(&mut self.cluster)).collect()
    }

    /// What plugins report of a pod that no node takes, beside the event and the condition of every pod.
    pub fn explanation(&self, pod: &Pod, message: &str) -> Explanation {
        let profile = self.profile_of(pod).and_then(|index| self.profiles.get(index));
        let points = profile.iter().flat_map(|profile| profile.each(|plugin| &plugin.status_writer));
        points.fold(Explanation::default(), |mut all, point| {
            let Explanation { write, events } = point.report_unschedulable(pod, message, &self.cluster);
            all.write = all.write.or(write);
            all.events.extend(events);
            all
        })
    }
}
