//! What controllers are added to.

use std::path::Path;

use koord_runtime::{Core, metrics::Metrics};

use crate::{ControllerSettings, gates::Gates};

/// What controllers are added to, those of a program that runs and those of one that is planned.
pub struct Setup {
    core: Core,
    settings: ControllerSettings,
}

impl Setup {
    /// Restricts the core to the namespace of the settings.
    pub(crate) fn new(mut core: Core, settings: ControllerSettings) -> Self {
        core.restrict_to(&settings.namespaces);
        Self { core, settings }
    }

    /// What watches, caches and controllers are added to.
    pub fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    /// Which features are on.
    pub fn gates(&self) -> &Gates {
        &self.settings.gates
    }

    /// Its metrics.
    pub fn metrics(&self) -> &Metrics {
        self.core.metrics()
    }

    /// The kubeconfig that a flag names.
    pub(crate) fn kubeconfig(&self) -> Option<&Path> {
        self.settings.kubeconfig.as_deref()
    }

    /// The namespace of the Lease; none without leader election.
    pub(crate) fn lease_namespace(&self) -> Option<String> {
        self.settings.lease_namespace.clone()
    }

    /// The core with all that was added to it, and the settings of the program.
    pub(crate) fn into_parts(self) -> (Core, ControllerSettings) {
        (self.core, self.settings)
    }
}
