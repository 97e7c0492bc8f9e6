//! CPU normalization: quotas of LS pods and of pods without a class, divided by how much faster the node's CPUs are than the reference.

use koord_koordlet_framework::{Container, Pod, Precedence};
use koord_koordlet_system::{Value, quota_of_milli_cpu};
use koord_types::{node_annotations::CPU_NORMALIZATION_RATIO, qos::QosClass};

use crate::{batch::scaled, pod_view::PodView, values::Wanted};

/// Whether quotas are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NormalizationRule {
    /// By this ratio; one up to 1 leaves them as they are.
    Ratio(f64),
    /// They are no more: they are set back to what the containers' limits say.
    Restored,
}

impl NormalizationRule {
    /// Whether it counts for a pod: one of class LS, or of no class and without CPUs of its own.
    pub(crate) fn is_for(pod: &PodView<'_>) -> bool {
        matches!(pod.cpuset_class(), Some(QosClass::Ls) | None)
    }

    /// The quota in place of another one; `None` where there is none.
    pub(crate) fn quota(self, quota_us: i64) -> Option<Wanted<Value>> {
        if quota_us <= 0 {
            return None;
        }
        let setting = CPU_NORMALIZATION_RATIO.name();
        Some(match self {
            Self::Ratio(ratio) => match scaled(quota_us, Some(ratio)) {
                Some((scaled, ratio)) => {
                    Wanted::new(Value::Amount(scaled), setting, format!("quota {quota_us} / {ratio} = {scaled}"))
                }
                None => {
                    Wanted::new(Value::Amount(quota_us), setting, format!("quota {quota_us}, the ratio is {ratio}"))
                }
            },
            Self::Restored => Wanted {
                precedence: Precedence::Default,
                ..Wanted::new(Value::Amount(quota_us), setting, format!("quota {quota_us}, there is no ratio any more"))
            },
        })
    }

    /// The quota of a pod: that of the sum of its limits, as the kubelet sets it where all containers have one.
    pub(crate) fn pod(self, pod: &Pod) -> Option<Wanted<Value>> {
        let has_limit = |container: &Container| container.limit("cpu").is_some_and(|milli| milli > 0);
        pod.containers.iter().all(has_limit).then(|| self.of_milli_cpu(pod.limit("cpu")))?
    }

    /// The quota of a container that the kubelet lists.
    pub(crate) fn container(self, container: &Container) -> Option<Wanted<Value>> {
        self.of_milli_cpu(container.limit("cpu")?)
    }

    fn of_milli_cpu(self, milli: i64) -> Option<Wanted<Value>> {
        match quota_of_milli_cpu(milli) {
            Value::Amount(quota_us) => self.quota(quota_us),
            _ => None,
        }
    }
}
