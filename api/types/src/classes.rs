//! The classes of a pod: one derivation for webhooks, controllers and the scheduler.

use crate::{
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    qos::{QOS_LABEL, QosClass},
};

/// Koordinator's classes of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// The QoS class: declared, or by Kubernetes' own.
    pub qos: Option<QosClass>,
    /// The priority class: declared, or by the QoS class.
    pub priority: Option<PriorityClass>,
}

impl Classes {
    /// The classes of a pod with these labels and this priority. `kubernetes` gives Kubernetes' own QoS class, and is
    /// called only where no label names one.
    pub fn of<'l, K: AsRef<str>>(
        label: impl Fn(&str) -> Option<&'l str>,
        priority: Option<i32>,
        kubernetes: impl FnOnce() -> K,
    ) -> Self {
        let qos = QosClass::of_label(label(QOS_LABEL)).or_else(|| QosClass::of_kubernetes(kubernetes().as_ref()));
        let declared = PriorityClass::declared(label(PRIORITY_CLASS_LABEL), priority);
        let priority = declared.or_else(|| qos.as_ref().and_then(PriorityClass::of_qos));
        Self { qos, priority }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_declared_or_follow_from_kubernetes_class() {
        let classes = |labels: &[(&'static str, &'static str)], priority, kubernetes: &str| {
            let label = |key: &str| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
            let Classes { qos, priority } = Classes::of(label, priority, || kubernetes);
            (qos, priority)
        };
        let batch = (Some(QosClass::Be), Some(PriorityClass::Batch));
        assert_eq!(classes(&[(QOS_LABEL, "BE")], None, "Guaranteed"), batch);
        assert_eq!(classes(&[], None, "BestEffort"), batch);
        assert_eq!(classes(&[], Some(7500), "Burstable"), (Some(QosClass::Ls), Some(PriorityClass::Mid)));
        let labels = [(PRIORITY_CLASS_LABEL, "koord-free"), (QOS_LABEL, "LSR")];
        assert_eq!(classes(&labels, Some(9500), ""), (Some(QosClass::Lsr), Some(PriorityClass::Free)));
        assert_eq!(classes(&[], None, ""), (None, None));
    }
}
