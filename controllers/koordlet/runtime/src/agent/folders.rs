//! Where the kubelet keeps the folders of pods: its configuration may name another cgroup than the one that was found at the start.

use koord_koordlet_resolver::Resolver;
use koord_koordlet_system::{KubeletRoot, Layout};

use super::{Agent, Now, enforcement::Enforcement};
use crate::host::{found, has_kubepods};

impl Agent {
    /// Looks for pods below the cgroup that the kubelet's configuration names. Where there are none, but some below the one that was found, the agent sees
    /// cgroups otherwise than the kubelet does, and what it sees counts.
    pub(super) fn follow_kubelet_root(&mut self, now: Now) {
        let Some(configuration) = &self.kubelet.configuration else { return };
        let root = KubeletRoot::new(&configuration.cgroup_root);
        let known = self.host.layout;
        if root == known.root {
            return;
        }
        let layout = match found(&self.settings.roots, known.version, root) {
            Some(layout) => layout,
            None if has_kubepods(&self.settings.roots, known) => return,
            None => Layout { root, ..known },
        };
        tracing::info!(kubepods = %layout.kubepods(), driver = ?layout.driver, "the kubelet keeps pods below cgroupRoot");
        self.set_layout(layout, now);
    }

    /// Begins anew with all that follows from the names of folders: pods, files that are open, rules, and what strategies want. Samples and objects are kept.
    fn set_layout(&mut self, layout: Layout, now: Now) {
        self.host.layout = layout;
        self.files.set_layout(layout);
        self.kubelet.read_anew(now.moment);
        self.resolver = Resolver::new(self.settings.intervals.verify);
        self.sampling.set_layout(&self.settings, &self.host);
        let applications = self.slo.merged.as_ref().map(|slo| slo.host_applications.as_slice());
        self.sampling.collectors.set_applications(applications);
        let seed = self.enforcement.seed;
        self.enforcement = Enforcement::new(&self.settings, &self.host.machine, seed, now.moment);
        self.hooks.forget();
    }
}
