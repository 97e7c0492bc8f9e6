//! Plugins that come from other crates.

use std::{fmt, sync::Arc};

use anyhow::{Context as _, Result};
use koord_engine::{cycle::Profile, plugin::Plugin};
use koord_resource::controller::ResourceKind;

/// Plugins of other crates, each with the weight of its scores.
#[derive(Clone, Default)]
pub(crate) struct Plugins(Vec<(Arc<dyn Plugin>, i64)>);

impl Plugins {
    pub(crate) fn add(&mut self, plugin: Arc<dyn Plugin>, weight: u16) {
        self.0.push((plugin, i64::from(weight)));
    }

    /// Adds them to a profile.
    pub(crate) fn add_to(&self, profile: &mut Profile) -> Result<()> {
        for (plugin, weight) in &self.0 {
            let add = profile.add(Arc::clone(plugin), *weight);
            add.with_context(|| format!("profile {}", profile.scheduler))?;
        }
        Ok(())
    }

    /// What they read.
    pub(crate) fn reads(&self) -> Vec<ResourceKind> {
        self.0.iter().flat_map(|(plugin, _)| plugin.reads()).copied().collect()
    }
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(plugin, _)| plugin.name())).finish()
    }
}
