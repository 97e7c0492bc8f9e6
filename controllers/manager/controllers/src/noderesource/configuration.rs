//! The three keys of the configuration that the amounts of nodes depend on, and what is in force of them.

use std::sync::Arc;

use koord_types::slo_config::{
    COLOCATION_CONFIG, CPU_NORMALIZATION_CONFIG, ColocationConfig, CpuNormalizationConfig,
    RESOURCE_AMPLIFICATION_CONFIG, ResourceAmplificationConfig,
};

use crate::{
    colocation::{Colocation, OUT_OF_RANGE as COLOCATION_OUT_OF_RANGE, reason as colocation_reason},
    config::ConfigError,
    view::ConfigMapView,
};

/// What the configuration says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// `colocation-config`.
    pub colocation: ColocationConfig,
    /// `cpu-normalization-config`; none while it could never be taken.
    pub normalization: Option<CpuNormalizationConfig>,
    /// `resource-amplification-config`; none while it could never be taken.
    pub amplification: Option<ResourceAmplificationConfig>,
}

/// What is in force: of each key the last value that could be taken.
#[derive(Debug, Default)]
pub(super) struct InForce {
    colocation: Colocation,
    normalization: LastGood<CpuNormalizationConfig>,
    amplification: LastGood<ResourceAmplificationConfig>,
    shared: Option<Arc<Configuration>>,
}

/// The last value of a key that could be taken.
#[derive(Clone, Debug, Default, PartialEq)]
enum LastGood<T> {
    /// No ConfigMap was seen yet: the default is in force.
    #[default]
    Unseen,
    /// This one; none where there was never one.
    Seen(Option<T>),
}

impl<T: Clone + Default + PartialEq> LastGood<T> {
    /// The key was read. Gives whether anything is different now; what could not be taken changes nothing.
    fn read<E>(&mut self, read: Result<T, E>) -> Result<bool, E> {
        match read {
            Ok(value) => {
                let differs = self.current().as_ref() != Some(&value);
                *self = Self::Seen(Some(value));
                Ok(differs)
            }
            Err(error) => {
                if *self == Self::Unseen {
                    *self = Self::Seen(None);
                }
                Err(error)
            }
        }
    }

    /// The ConfigMap is gone: where the key could never be taken, the default is in force as if there had been none.
    fn deleted(&mut self) {
        if *self == Self::Seen(None) {
            *self = Self::Unseen;
        }
    }

    fn current(&self) -> Option<T> {
        match self {
            Self::Unseen => Some(T::default()),
            Self::Seen(value) => value.clone(),
        }
    }
}

impl InForce {
    /// The ConfigMap was read. Gives what could not be taken, and whether anything is different now.
    pub(super) fn read(&mut self, config_map: &ConfigMapView) -> (Vec<ConfigError>, bool) {
        let mut errors = Vec::new();
        let colocation = match ColocationConfig::parse(config_map.get(COLOCATION_CONFIG)) {
            Ok(config) => {
                let key = COLOCATION_CONFIG;
                errors.extend(config.refusals().into_iter().map(|message| ConfigError {
                    key,
                    reason: COLOCATION_OUT_OF_RANGE,
                    message,
                }));
                Some(config)
            }
            Err(error) => {
                let reason = colocation_reason(&error);
                errors.push(ConfigError { key: COLOCATION_CONFIG, reason, message: error.to_string() });
                None
            }
        };
        let mut differs = self.colocation.read(colocation);
        match self.normalization.read(CpuNormalizationConfig::parse(config_map.get(CPU_NORMALIZATION_CONFIG))) {
            Ok(is_other) => differs |= is_other,
            Err(error) => errors.push(ConfigError {
                key: CPU_NORMALIZATION_CONFIG,
                reason: "CPUNormalizationCfgUnmarshalFailed",
                message: format!("failed to unmarshal CPUNormalizationCfg, err: {error}"),
            }),
        }
        match self.amplification.read(ResourceAmplificationConfig::parse(config_map.get(RESOURCE_AMPLIFICATION_CONFIG)))
        {
            Ok(is_other) => differs |= is_other,
            Err(error) => errors.push(ConfigError {
                key: RESOURCE_AMPLIFICATION_CONFIG,
                reason: "ResourceAmplificationCfgUnmarshalFailed",
                message: format!("failed to unmarshal amplificationCfg, err: {error}"),
            }),
        }
        self.shared = None;
        (errors, differs)
    }

    /// What is in force; none while no `colocation-config` could ever be taken.
    pub(super) fn current(&mut self) -> Option<Arc<Configuration>> {
        if let Some(shared) = &self.shared {
            return Some(Arc::clone(shared));
        }
        let (colocation, _) = self.colocation.current()?;
        let (normalization, amplification) = (self.normalization.current(), self.amplification.current());
        let shared = Arc::new(Configuration { colocation: colocation.clone(), normalization, amplification });
        self.shared = Some(Arc::clone(&shared));
        Some(shared)
    }

    /// Whether a decision with this configuration has to be remembered.
    pub(super) fn is_unseen(&self) -> bool {
        self.colocation.is_unseen()
    }

    /// The ConfigMap is gone: what was in force stays so.
    pub(super) fn deleted(&mut self) {
        self.colocation.deleted();
        self.normalization.deleted();
        self.amplification.deleted();
        self.shared = None;
    }

    /// A decision was made. With the defaults colocation is off, and neither normalization nor amplification has a say in it: they are
    /// not seen by that.
    pub(super) fn decided(&mut self) {
        self.colocation.decided();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_never_taken_has_its_default_once_the_config_map_is_gone() {
        let (mut in_force, mut normalization) = (InForce::default(), LastGood::<CpuNormalizationConfig>::default());
        in_force.decided();
        assert_eq!(in_force.normalization, LastGood::Unseen, "colocation is off: it was not looked at");
        assert!(normalization.read(CpuNormalizationConfig::parse(Some("{bad"))).is_err());
        assert_eq!(normalization.current(), None);
        normalization.deleted();
        assert_eq!(normalization.current(), Some(CpuNormalizationConfig::default()));
        in_force.normalization = LastGood::Seen(None);
        in_force.deleted();
        assert_eq!(in_force.normalization, LastGood::Unseen);
    }
}
