//! How many CPUs BE pods may use.

use std::{collections::HashMap, fmt, sync::Arc};

use koord_koordlet_framework::{Node, NodeSlo};
use koord_koordlet_metrics::{Measure, Subject};
use koord_types::{node_slo::CgroupBase, qos::QosClass};

use crate::input::Input;

/// The CPUs of BE pods, in thousandths, with the terms that they follow from:
/// capacity × threshold − pods that are not BE − host applications that are not BE − max(system, reserved), and at least capacity × minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    pub capacity_milli: i64,
    pub threshold_percent: i64,
    pub pods_milli: i64,
    pub host_applications_milli: i64,
    /// What neither pods nor host applications use, at least what is reserved.
    pub system_milli: i64,
    pub minimum_percent: Option<i64>,
    /// CPUs in use by BE pods.
    pub be_cores: f64,
    /// CPUs in use by all other pods.
    pub other_cores: f64,
}

impl Budget {
    /// Computes it from the youngest samples; `None` where the node has none.
    pub(super) fn of(input: &Input<'_>, node: &Node, slo: &NodeSlo, is_be: &HashMap<Arc<str>, bool>) -> Option<Self> {
        let node_cores = input.last(Subject::Node, Measure::Cpu)?;
        let (mut be_cores, mut other_cores) = (0.0, 0.0);
        for uid in input.store.pods() {
            let Some(cores) = input.last(Subject::Pod(uid), Measure::Cpu) else { continue };
            // A pod that is not known is taken for one that must not be harmed.
            if is_be.get(uid).copied().unwrap_or_default() { be_cores += cores } else { other_cores += cores }
        }
        let (mut host_cores, mut other_host_cores) = (0.0, 0.0);
        for application in &slo.host_applications {
            let Some(cores) = input.last(Subject::HostApplication(&application.name), Measure::Cpu) else { continue };
            host_cores += cores;
            let base = application.cgroup_path.as_ref().and_then(|path| path.base.as_ref());
            if application.qos != Some(QosClass::Be) || base != Some(&CgroupBase::KubepodsBesteffort) {
                other_host_cores += cores;
            }
        }
        let system = (node_cores - be_cores - other_cores - host_cores).max(0.0);
        Some(Self {
            capacity_milli: node.capacity_milli_cpu(),
            threshold_percent: slo.threshold.cpu_suppress_threshold_percent.unwrap_or_default(),
            pods_milli: milli(other_cores),
            host_applications_milli: milli(other_host_cores),
            system_milli: milli(system).max(node.reserved_milli_cpu()),
            minimum_percent: slo.threshold.cpu_suppress_min_percent,
            be_cores,
            other_cores,
        })
    }

    /// The CPUs of BE pods, in thousandths; negative where others use more than the threshold.
    pub fn milli(&self) -> i64 {
        let suppressed = percent_of(self.capacity_milli, self.threshold_percent)
            .saturating_sub(self.pods_milli)
            .saturating_sub(self.host_applications_milli)
            .saturating_sub(self.system_milli);
        match self.minimum_percent {
            Some(minimum) => suppressed.max(percent_of(self.capacity_milli, minimum)),
            None => suppressed,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { capacity_milli, threshold_percent, pods_milli, host_applications_milli, system_milli, .. } = self;
        write!(f, "{capacity_milli}m × {threshold_percent} % − {pods_milli}m (pods that are not BE)")?;
        if *host_applications_milli != 0 {
            write!(f, " − {host_applications_milli}m (host applications)")?;
        }
        write!(f, " − {system_milli}m (system)")?;
        if let Some(minimum) = self.minimum_percent {
            write!(f, ", at least {capacity_milli}m × {minimum} %")?;
        }
        write!(f, " = {}m", self.milli())
    }
}

fn milli(cores: f64) -> i64 {
    // Rounding errors of sums shall not cost a thousandth.
    (cores * 1000.0 + 1e-6).floor() as i64
}

fn percent_of(amount: i64, percent: i64) -> i64 {
    amount.saturating_mul(percent) / 100
}
