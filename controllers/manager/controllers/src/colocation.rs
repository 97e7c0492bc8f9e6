//! The colocation configuration in force: a state machine over the edits of the ConfigMap.

use std::sync::LazyLock;

use koord_types::slo_config::{ColocationConfig, ColocationConfigError};

/// In force where there is no ConfigMap.
static DEFAULT: LazyLock<ColocationConfig> = LazyLock::new(ColocationConfig::default);

/// The reason of the event about a value that is not taken. The original records none.
pub(crate) const OUT_OF_RANGE: &str = "ColocationCfgOutOfRange";

/// The reason of the event about a configuration error.
pub(crate) fn reason(error: &ColocationConfigError) -> &'static str {
    match error {
        ColocationConfigError::Decode(_) => "ColocationCfgUnmarshalFailed",
        ColocationConfigError::OutOfRange(_) => OUT_OF_RANGE,
    }
}

/// The configuration in force, and whether it is what stands in the ConfigMap.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Colocation {
    /// No ConfigMap was seen yet.
    #[default]
    Unseen,
    /// What stands in the ConfigMap.
    Good(ColocationConfig),
    /// The last good one; what stands in the ConfigMap cannot be used, or there is none.
    Kept(ColocationConfig),
    /// There was never a good one.
    Unusable,
}

impl Colocation {
    /// The ConfigMap was read; none means that it cannot be used. Says whether there is anything to decide anew.
    pub(crate) fn read(&mut self, config: Option<ColocationConfig>) -> bool {
        let old = std::mem::take(self);
        let (next, differs) = match (config, old) {
            (Some(config), Self::Good(old)) => {
                let differs = config != old;
                (Self::Good(config), differs)
            }
            // Objects may have been left as they were meanwhile.
            (Some(config), _) => (Self::Good(config), true),
            (None, Self::Good(old) | Self::Kept(old)) => (Self::Kept(old), false),
            (None, Self::Unseen | Self::Unusable) => (Self::Unusable, false),
        };
        *self = next;
        differs
    }

    /// The ConfigMap is gone: where nothing of it could ever be used, the defaults are in force as if there had been none.
    pub(crate) fn deleted(&mut self) {
        if *self == Self::Unusable {
            *self = Self::Unseen;
        }
    }

    /// The configuration in force and whether it may change objects that already exist; none when there is none.
    /// Where no ConfigMap was seen yet, the defaults are in force.
    pub(crate) fn current(&self) -> Option<(&ColocationConfig, bool)> {
        match self {
            Self::Good(config) => Some((config, true)),
            Self::Kept(config) => Some((config, false)),
            Self::Unseen => Some((&DEFAULT, false)),
            Self::Unusable => None,
        }
    }

    /// Whether a decision with this configuration has to be remembered.
    pub(crate) fn is_unseen(&self) -> bool {
        *self == Self::Unseen
    }

    /// A decision was made although no ConfigMap was seen yet: the defaults stay in force from now on.
    pub(crate) fn decided(&mut self) {
        if self.is_unseen() {
            *self = Self::Kept(DEFAULT.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(seconds: u32) -> Option<ColocationConfig> {
        ColocationConfig::parse(Some(&format!(r#"{{"metricReportIntervalSeconds":{seconds}}}"#))).ok()
    }

    fn in_force(colocation: &mut Colocation) -> Option<(i64, bool)> {
        colocation.decided();
        let (config, trusted) = colocation.current()?;
        Some((config.cluster.metric_report_interval_seconds.unwrap(), trusted))
    }

    #[test]
    fn a_bad_edit_keeps_the_last_good_configuration_but_changes_no_existing_object() {
        let mut colocation = Colocation::default();
        assert!(colocation.read(good(20)));
        assert_eq!(in_force(&mut colocation), Some((20, true)));
        assert!(!colocation.read(good(20)), "the same again");
        assert!(!colocation.read(None));
        assert!(!colocation.read(None));
        assert_eq!(in_force(&mut colocation), Some((20, false)));
        assert!(colocation.read(good(20)), "it may change objects again");
        assert_eq!(in_force(&mut colocation), Some((20, true)));
    }

    #[test]
    fn without_a_config_map_the_defaults_create_objects_and_change_none() {
        let mut colocation = Colocation::default();
        let undecided = colocation.current().map(|(config, _)| config.clone());
        assert_eq!((undecided, colocation.is_unseen()), (Some(ColocationConfig::default()), true));
        assert_eq!(in_force(&mut colocation), Some((60, false)));
        colocation.read(None);
        assert_eq!(in_force(&mut colocation), Some((60, false)), "the defaults were in force");
    }

    #[test]
    fn a_configuration_that_was_never_good_touches_nothing() {
        let mut colocation = Colocation::default();
        colocation.read(None);
        assert_eq!(in_force(&mut colocation), None);
        assert!(colocation.read(good(60)), "the defaults too: nothing was decided yet");
        assert_eq!(in_force(&mut colocation), Some((60, true)));
        let mut colocation = Colocation::default();
        colocation.read(None);
        colocation.deleted();
        assert_eq!(in_force(&mut colocation), Some((60, false)), "once it is gone the defaults are in force");
        colocation.read(good(20));
        colocation.deleted();
        assert_eq!(in_force(&mut colocation), Some((20, true)), "one that was good stays");
    }
}
