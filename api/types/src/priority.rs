//! Priority classes: the bands of `spec.priority` that Koordinator's colocation is built on.

use std::{fmt, ops::RangeInclusive};

use crate::{
    go_text,
    protocol::{Key, Labels, ProtocolError, Text},
    qos::QosClass,
};

/// The label that names a pod's priority class, whatever its priority is.
pub const PRIORITY_CLASS_LABEL: &str = "koordinator.sh/priority-class";
/// The label with the priority among pods of one class.
pub const SUB_PRIORITY_LABEL: &str = "koordinator.sh/priority";
/// The priority among pods of one class.
pub const SUB_PRIORITY: Key<SubPriority> =
    Key::new(SUB_PRIORITY_LABEL, "an integer of 32 bits such as 9999, 0x10 or 1_000");

/// The priority among pods of one class; an empty text is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubPriority(pub i32);

impl Text for SubPriority {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(0));
        }
        let invalid = || format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
        go_text::parse_int32(text).map(Self).ok_or_else(invalid)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// The priority of a pod among those of its class; 0 where it says none.
pub fn sub_priority(labels: &Labels) -> Result<i32, ProtocolError> {
    Ok(SUB_PRIORITY.get(labels)?.unwrap_or_default().0)
}

/// A band of priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriorityClass {
    /// Best effort that may be taken away at any time.
    Free,
    /// Uses what is requested by others and idle.
    Batch,
    /// Uses what is predicted to stay idle.
    Mid,
    /// Production: gets what it requests.
    Prod,
}

impl PriorityClass {
    /// All classes, lowest first.
    pub const ALL: [Self; 4] = [Self::Free, Self::Batch, Self::Mid, Self::Prod];

    /// The name, as it stands in labels and PriorityClass objects.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prod => "koord-prod",
            Self::Mid => "koord-mid",
            Self::Batch => "koord-batch",
            Self::Free => "koord-free",
        }
    }

    /// The class of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// The priorities of the class.
    pub const fn band(self) -> RangeInclusive<i32> {
        match self {
            Self::Prod => 9000..=9999,
            Self::Mid => 7000..=7999,
            Self::Batch => 5000..=5999,
            Self::Free => 3000..=3999,
        }
    }

    /// The priority of a pod of which only the class is known.
    pub const fn default_priority(self) -> i32 {
        match self {
            Self::Prod => 9500,
            Self::Mid => 7500,
            Self::Batch => 5500,
            Self::Free => 3500,
        }
    }

    /// The class whose band holds a priority.
    pub fn of_priority(priority: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.band().contains(&priority))
    }

    /// The class that a pod declares: by its label when it has one, even with an unknown name; else by its priority.
    pub fn declared(label: Option<&str>, priority: Option<i32>) -> Option<Self> {
        match label {
            Some(name) => Self::named(name),
            None => priority.and_then(Self::of_priority),
        }
    }

    /// The class of a pod: the declared one, else the one that goes with its QoS.
    pub fn of_pod(labels: &Labels, priority: Option<i32>, qos: Option<&QosClass>) -> Option<Self> {
        let label = labels.get(PRIORITY_CLASS_LABEL).map(String::as_str);
        Self::declared(label, priority).or_else(|| qos.and_then(Self::of_qos))
    }

    /// The priority of a pod: its own unless it is 0, else the default of its class; 0 without a class.
    pub fn priority_of_pod(labels: &Labels, priority: Option<i32>, qos: Option<&QosClass>) -> i32 {
        match priority {
            Some(priority) if priority != 0 => priority,
            _ => Self::of_pod(labels, priority, qos).map_or(0, Self::default_priority),
        }
    }

    /// The class of pods that declare none, by their QoS.
    pub fn of_qos(qos: &QosClass) -> Option<Self> {
        match qos {
            QosClass::System | QosClass::Lse | QosClass::Lsr | QosClass::Ls => Some(Self::Prod),
            QosClass::Be => Some(Self::Batch),
            QosClass::Other(_) => None,
        }
    }
}

impl fmt::Display for PriorityClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::Strategy as _;

    use super::*;

    #[test]
    fn bands_have_edges_and_gaps() {
        let class = PriorityClass::of_priority;
        assert_eq!(class(9999), Some(PriorityClass::Prod));
        assert_eq!(class(10_000), None);
        assert_eq!((class(7000), class(7999), class(8000)), (Some(PriorityClass::Mid), Some(PriorityClass::Mid), None));
        assert_eq!((class(5000), class(4999)), (Some(PriorityClass::Batch), None));
        assert_eq!((class(3999), class(0), class(i32::MIN)), (Some(PriorityClass::Free), None, None));
        for known in PriorityClass::ALL {
            assert_eq!(class(known.default_priority()), Some(known));
            assert_eq!(PriorityClass::named(known.as_str()), Some(known));
        }
    }

    #[test]
    fn a_label_decides_even_when_nobody_knows_it() {
        assert_eq!(PriorityClass::declared(Some("koord-prod"), Some(5499)), Some(PriorityClass::Prod));
        assert_eq!(PriorityClass::declared(Some("unknown"), Some(5499)), None);
        assert_eq!(PriorityClass::declared(None, Some(5499)), Some(PriorityClass::Batch));
    }

    #[test]
    fn sub_priorities_are_read_as_in_go() {
        for (text, priority) in [("0x10", 16), ("010", 8), ("1_000", 1000), ("", 0), ("-5", -5)] {
            let labels = Labels::from([(SUB_PRIORITY_LABEL.to_owned(), text.to_owned())]);
            assert_eq!(sub_priority(&labels), Ok(priority), "{text}");
        }
        assert_eq!(sub_priority(&Labels::new()), Ok(0));
        let labels = Labels::from([(SUB_PRIORITY_LABEL.to_owned(), "high".to_owned())]);
        assert!(sub_priority(&labels).unwrap_err().to_string().contains("koordinator.sh/priority"));
        crate::protocol::laws::reads_any_text(&SUB_PRIORITY);
        crate::protocol::laws::keeps_values(&SUB_PRIORITY, proptest::prelude::any::<i32>().prop_map(SubPriority));
    }

    #[test]
    fn the_class_of_a_pod_is_declared_or_goes_with_its_qos() {
        let none = Labels::new();
        let labelled = |name: &str| Labels::from([(PRIORITY_CLASS_LABEL.to_owned(), name.to_owned())]);
        let lsr = Some(&QosClass::Lsr);
        assert_eq!(PriorityClass::of_pod(&labelled("koord-prod"), Some(5499), None), Some(PriorityClass::Prod));
        assert_eq!(PriorityClass::of_pod(&labelled("unknown"), Some(5499), None), None);
        assert_eq!(PriorityClass::of_pod(&none, Some(5499), lsr), Some(PriorityClass::Batch));
        assert_eq!(PriorityClass::of_pod(&none, None, lsr), Some(PriorityClass::Prod));
        assert_eq!(PriorityClass::priority_of_pod(&none, None, lsr), 9500);
        assert_eq!(PriorityClass::priority_of_pod(&none, Some(5499), lsr), 5499);
        assert_eq!(PriorityClass::priority_of_pod(&none, None, None), 0);
    }

    #[test]
    fn without_a_class_the_qos_decides() {
        assert_eq!(PriorityClass::of_qos(&QosClass::Lsr), Some(PriorityClass::Prod));
        assert_eq!(PriorityClass::of_qos(&QosClass::Be), Some(PriorityClass::Batch));
    }
}
