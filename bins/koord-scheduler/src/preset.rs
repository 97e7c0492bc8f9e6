//! Configurations for those who want one feature beside kube-scheduler.

use clap::ValueEnum;

/// A configuration with the plugins of Kubernetes and those of one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Reservations.
    ReservationOnly,
    /// Gangs.
    GangOnly,
    /// GPUs and their shares.
    Gpu,
}

impl Preset {
    /// Its name, as the flag has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReservationOnly => "reservation-only",
            Self::GangOnly => "gang-only",
            Self::Gpu => "gpu",
        }
    }

    /// The document.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::ReservationOnly => include_str!("../presets/reservation-only.yaml"),
            Self::GangOnly => include_str!("../presets/gang-only.yaml"),
            Self::Gpu => include_str!("../presets/gpu.yaml"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use koord_config::scheduler::{Point, Resolved, SchedulerConfiguration};
    use koord_program::gates::Gates;
    use koord_scheduler_assembly::{Configuration, GATES, profiles};
    use koord_scheduler_plugins_koordinator::elastic_quota::HookFactories;

    use super::*;
    use crate::{Options, configuration::configuration as of_flags};

    fn configuration(flags: &str) -> Configuration {
        let arguments = std::iter::once("koord-scheduler").chain(flags.split_whitespace()).map(str::to_owned);
        of_flags(&Options::from_arguments(arguments).unwrap()).unwrap()
    }

    #[test]
    fn a_preset_has_the_plugins_of_kubernetes_and_those_of_its_feature_alone() {
        let of_kubernetes = SchedulerConfiguration::without_document().profiles[0].resolved();
        let of_kubernetes: BTreeSet<&str> = of_kubernetes.plugins().into_iter().collect();
        let shipped = Configuration::shipped_for_all_pods().unwrap().profiles()[0].resolved();
        for (preset, feature) in
            [(Preset::ReservationOnly, "Reservation"), (Preset::GangOnly, "Coscheduling"), (Preset::Gpu, "DeviceShare")]
        {
            let configuration = configuration(&format!("--preset={}", preset.name()));
            let resolved = configuration.profiles()[0].resolved();
            let plugins: BTreeSet<&str> = resolved.plugins().into_iter().collect();
            let more: Vec<&str> = plugins.difference(&of_kubernetes).copied().collect();
            assert_eq!(
                more,
                if feature < "DefaultPreBind" { [feature, "DefaultPreBind"] } else { ["DefaultPreBind", feature] }
            );
            assert!(of_kubernetes.is_subset(&plugins), "{plugins:?}");
            // It runs where it runs in the configuration that Koordinator ships.
            for point in Point::ALL {
                let runs = |resolved: &Resolved| resolved.at(point).iter().any(|name| name == feature);
                assert_eq!(runs(&resolved), runs(&shipped), "{feature} at {}", point.name());
            }
            let built = profiles(&configuration, &Gates::new(GATES), &HookFactories::new()).unwrap();
            assert_eq!(&*built[0].profile.scheduler, "koord-scheduler");
        }
    }

    #[test]
    fn flags_count_beside_a_preset() {
        let configuration = configuration("--preset=gpu --kube-api-qps=7 --leader-elect=false").values;
        assert_eq!(configuration.client_connection.qps.to_string(), "7");
        assert!(!configuration.leader_election.leader_elect);
    }
}
