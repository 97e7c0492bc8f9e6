//! Priority classes: the bands of `spec.priority` that Koordinator's colocation is built on.

use std::{fmt, ops::RangeInclusive};

use crate::qos::QosClass;

/// The label that names a pod's priority class, whatever its priority is.
pub const PRIORITY_CLASS_LABEL: &str = "koordinator.sh/priority-class";
/// The label with the priority among pods of one class.
pub const SUB_PRIORITY_LABEL: &str = "koordinator.sh/priority";

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
    fn without_a_class_the_qos_decides() {
        assert_eq!(PriorityClass::of_qos(&QosClass::Lsr), Some(PriorityClass::Prod));
        assert_eq!(PriorityClass::of_qos(&QosClass::Be), Some(PriorityClass::Batch));
    }
}
