//! Stages of a container's life at which a container runtime calls hooks.

use std::fmt;

/// A stage at which hooks may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    PreRunPodSandbox,
    PreCreateContainer,
    PreStartContainer,
    PostStartContainer,
    PostStopContainer,
    PostStopPodSandbox,
    PreUpdateContainerResources,
    PreRemoveRunPodSandbox,
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

/// A name that is no stage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no stage of runtime hooks; stages are PreRunPodSandbox, PreCreateContainer, PreStartContainer, PostStartContainer, PostStopContainer, PostStopPodSandbox, PreUpdateContainerResources and PreRemoveRunPodSandbox"
)]
pub struct UnknownStage(String);

impl Stage {
    pub const ALL: [Self; 8] = [
        Self::PreRunPodSandbox,
        Self::PreCreateContainer,
        Self::PreStartContainer,
        Self::PostStartContainer,
        Self::PostStopContainer,
        Self::PostStopPodSandbox,
        Self::PreUpdateContainerResources,
        Self::PreRemoveRunPodSandbox,
    ];

    /// The name in flags, metrics and the configuration of the runtime proxy.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreRunPodSandbox => "PreRunPodSandbox",
            Self::PreCreateContainer => "PreCreateContainer",
            Self::PreStartContainer => "PreStartContainer",
            Self::PostStartContainer => "PostStartContainer",
            Self::PostStopContainer => "PostStopContainer",
            Self::PostStopPodSandbox => "PostStopPodSandbox",
            Self::PreUpdateContainerResources => "PreUpdateContainerResources",
            Self::PreRemoveRunPodSandbox => "PreRemoveRunPodSandbox",
        }
    }

    /// The stage of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Stages {
    /// Reads names separated by commas; empty ones are left out.
    ///
    /// # Errors
    ///
    /// A name is no stage.
    pub fn parse(text: &str) -> Result<Self, UnknownStage> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| Stage::named(name).ok_or_else(|| UnknownStage(name.to_owned()))).collect()
    }

    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Stage> {
        Stage::ALL.into_iter().filter(move |stage| self.contains(*stage))
    }
}

impl FromIterator<Stage> for Stages {
    fn from_iter<I: IntoIterator<Item = Stage>>(stages: I) -> Self {
        Self(stages.into_iter().fold(0, |set, stage| set | 1 << stage as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_by_their_names() {
        let stages = Stages::parse("PreRunPodSandbox, PreStartContainer,").unwrap();
        assert_eq!(stages.iter().collect::<Vec<_>>(), [Stage::PreRunPodSandbox, Stage::PreStartContainer]);
        assert!(!stages.contains(Stage::PreCreateContainer));
        assert_eq!(Stages::parse("").unwrap(), Stages::default());
        assert!(
            Stages::parse("prerunpodsandbox").unwrap_err().to_string().starts_with("\"prerunpodsandbox\" is no stage")
        );
        assert!(Stage::ALL.iter().all(|stage| Stage::named(stage.as_str()) == Some(*stage)));
    }
}
