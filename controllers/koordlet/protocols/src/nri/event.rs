//! Events of the life of pods and containers, and which of them a plugin wants.

use std::fmt;

use serde::Deserialize;

/// An event; the number is that of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of the protocol")]
pub enum Event {
    RunPodSandbox = 1,
    StopPodSandbox = 2,
    RemovePodSandbox = 3,
    CreateContainer = 4,
    PostCreateContainer = 5,
    StartContainer = 6,
    PostStartContainer = 7,
    UpdateContainer = 8,
    PostUpdateContainer = 9,
    StopContainer = 10,
    RemoveContainer = 11,
    UpdatePodSandbox = 12,
    PostUpdatePodSandbox = 13,
    ValidateContainerAdjustment = 14,
}

impl Event {
    /// Every event, by number.
    pub const ALL: [Self; 14] = [
        Self::RunPodSandbox,
        Self::StopPodSandbox,
        Self::RemovePodSandbox,
        Self::CreateContainer,
        Self::PostCreateContainer,
        Self::StartContainer,
        Self::PostStartContainer,
        Self::UpdateContainer,
        Self::PostUpdateContainer,
        Self::StopContainer,
        Self::RemoveContainer,
        Self::UpdatePodSandbox,
        Self::PostUpdatePodSandbox,
        Self::ValidateContainerAdjustment,
    ];

    /// The name of its method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunPodSandbox => "RunPodSandbox",
            Self::StopPodSandbox => "StopPodSandbox",
            Self::RemovePodSandbox => "RemovePodSandbox",
            Self::CreateContainer => "CreateContainer",
            Self::PostCreateContainer => "PostCreateContainer",
            Self::StartContainer => "StartContainer",
            Self::PostStartContainer => "PostStartContainer",
            Self::UpdateContainer => "UpdateContainer",
            Self::PostUpdateContainer => "PostUpdateContainer",
            Self::StopContainer => "StopContainer",
            Self::RemoveContainer => "RemoveContainer",
            Self::UpdatePodSandbox => "UpdatePodSandbox",
            Self::PostUpdatePodSandbox => "PostUpdatePodSandbox",
            Self::ValidateContainerAdjustment => "ValidateContainerAdjustment",
        }
    }

    /// The event with this number in a `StateChange`.
    pub fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|event| *event as i32 == number)
    }

    /// The event with this method.
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == method)
    }
}

/// A set of events: bit `number − 1` of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventMask(i32);

impl EventMask {
    /// What koordlet needs: `RunPodSandbox`, `RemovePodSandbox`, `CreateContainer`, `UpdateContainer`.
    pub const KOORDLET: Self =
        Self::of(&[Event::RunPodSandbox, Event::RemovePodSandbox, Event::CreateContainer, Event::UpdateContainer]);

    /// The set of these events.
    pub const fn of(events: &[Event]) -> Self {
        let mut bits = 0;
        let mut rest = events;
        while let [event, others @ ..] = rest {
            bits |= 1 << (*event as i32 - 1);
            rest = others;
        }
        Self(bits)
    }

    /// The number in the protocol.
    pub fn bits(self) -> i32 {
        self.0
    }

    /// Whether it holds the event.
    pub fn has(self, event: Event) -> bool {
        self.0 & Self::of(&[event]).0 != 0
    }

    /// Reads names of events: methods in any case, `all`, `pod` or `podsandbox`, `container`; each item may hold several with commas.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, ConfigurationError> {
        let mut mask = Self(0);
        for name in names.into_iter().flat_map(|names| names.split(',')).map(str::trim) {
            let lower = name.to_lowercase();
            let matches = |event: &Event| {
                let method = event.as_str().to_lowercase();
                match lower.as_str() {
                    "all" => true,
                    "pod" | "podsandbox" => method.contains("pod"),
                    "container" => method.contains("container"),
                    one => method == one,
                }
            };
            let named: Vec<_> = Event::ALL.into_iter().filter(matches).collect();
            if named.is_empty() {
                return Err(ConfigurationError::UnknownEvent(name.to_owned()));
            }
            mask.0 |= Self::of(&named).0;
        }
        Ok(mask)
    }

    /// The events that the runtime's configuration of this plugin asks for, a YAML mapping with a list `events`; `default` where it
    /// has none.
    pub fn configured(yaml: &str, default: Self) -> Result<Self, ConfigurationError> {
        if yaml.trim().is_empty() {
            return Ok(default);
        }
        let file: Option<File> =
            serde_saphyr::from_str(yaml).map_err(|error| ConfigurationError::Yaml(error.to_string()))?;
        match file.and_then(|file| file.events) {
            Some(events) if !events.is_empty() => Self::parse(events.iter().map(String::as_str)),
            _ => Ok(default),
        }
    }
}

impl fmt::Display for EventMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Event::ALL.into_iter().filter(|event| self.has(*event)).map(Event::as_str);
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

#[derive(Deserialize)]
struct File {
    events: Option<Vec<String>>,
}

/// What is wrong with the runtime's configuration of this plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no mapping of YAML.
    #[error("the plugin's configuration in the runtime is not a YAML mapping with a list `events`: {0}")]
    Yaml(String),
    /// It names an event that does not exist.
    #[error("events: {0:?} is no event; events are all, pod, container and names such as CreateContainer")]
    UnknownEvent(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn koordlet_wants_four_events() {
        assert_eq!(EventMask::KOORDLET.bits(), 0x8d);
        assert_eq!(EventMask::KOORDLET.to_string(), "RunPodSandbox,RemovePodSandbox,CreateContainer,UpdateContainer");
    }

    #[test]
    fn names_are_read_in_any_case_and_in_groups() {
        let bits = |names: &[&str]| EventMask::parse(names.iter().copied()).map(EventMask::bits);
        assert_eq!(bits(&["createContainer", "RUNPODSANDBOX"]), Ok(0b1001));
        assert_eq!(bits(&["StopPodSandbox, updatecontainer"]), Ok(0b1000_0010));
        assert_eq!(bits(&["all"]), Ok(0x3fff));
        assert_eq!(bits(&["pod"]), Ok(0x1807));
        assert_eq!(bits(&["podsandbox"]), Ok(0x1807));
        assert_eq!(bits(&["container"]), Ok(0x27f8));
        assert_eq!(bits(&["pod", "nothing"]), Err(ConfigurationError::UnknownEvent("nothing".into())));
    }

    #[test]
    fn the_configuration_of_the_runtime_replaces_the_events() {
        let configured = |yaml| EventMask::configured(yaml, EventMask::KOORDLET).map(EventMask::bits);
        assert_eq!(configured("events: [CreateContainer]"), Ok(0b1000));
        assert_eq!(configured("events:\n- CreateContainer\n- RunPodSandbox\nother: 1\n"), Ok(0b1001));
        for default in ["", " \n", "{error: error}", "events: []", "events:", "~"] {
            assert_eq!(configured(default), Ok(0x8d), "{default:?}");
        }
        assert!(matches!(configured("error"), Err(ConfigurationError::Yaml(_))));
        assert!(matches!(configured("events: [Nothing]"), Err(ConfigurationError::UnknownEvent(_))));
    }

    #[test]
    fn numbers_and_methods_name_the_same_events() {
        for event in Event::ALL {
            assert_eq!(Event::of_number(event as i32), Some(event));
            assert_eq!(Event::of_method(event.as_str()), Some(event));
        }
        assert_eq!(Event::of_number(0), None);
        assert_eq!(Event::of_number(15), None);
    }

    proptest! {
        #[test]
        fn no_configuration_makes_it_panic(yaml in ".{0,200}") {
            let _ = EventMask::configured(&yaml, EventMask::KOORDLET);
        }
    }
}
