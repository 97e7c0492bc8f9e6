//! Plugins that come from other crates.

use std::{fmt, sync::Arc};

use anyhow::{Context as _, Result};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{Plugin, Profile, Registration};

use crate::hooks::Hooks;

/// Plugins of other crates, each with the weight of its scores, and their hooks of quotas.
#[derive(Clone, Default)]
pub(crate) struct Plugins {
    plugins: Vec<(Registration, i64)>,
    pub(crate) hooks: Hooks,
}

impl Plugins {
    pub(crate) fn add(&mut self, plugin: Arc<dyn Plugin>, weight: u16) {
        self.plugins.push((plugin.register(), i64::from(weight)));
    }

    /// Adds them to a profile.
    pub(crate) fn add_to(&self, profile: &mut Profile) -> Result<()> {
        for (plugin, weight) in &self.plugins {
            let add = profile.add(plugin.clone(), *weight);
            add.with_context(|| format!("profile {}", profile.scheduler))?;
        }
        Ok(())
    }

    pub(crate) fn reads(&self) -> Vec<ResourceKind> {
        self.plugins.iter().flat_map(|(plugin, _)| plugin.reads).copied().collect()
    }
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.plugins.iter().map(|(plugin, _)| plugin.name())).finish()
    }
}
