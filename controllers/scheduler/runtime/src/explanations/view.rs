//! What is kept of ScheduleExplanations and PriorityClasses.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use koord_resource::{Projection, Time, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    outcome::WithStatus,
    projection::{DecodeError, WireObject},
};
use koord_types::schedule_explanation::{ScheduleExplanation, ScheduleExplanationSpec, ScheduleExplanationStatus};
use serde::Deserialize;

/// A ScheduleExplanation.
#[derive(Debug, PartialEq)]
pub(crate) struct ExplanationView {
    pub(super) spec: ScheduleExplanationSpec,
    pub(super) status: Option<ScheduleExplanationStatus>,
    /// When it was created.
    pub(super) created: Timestamp,
}

#[derive(Deserialize)]
pub(crate) struct Members {
    #[serde(default)]
    spec: ScheduleExplanationSpec,
    status: Option<ScheduleExplanationStatus>,
}

const PRIORITY_CLASS: ResourceKind = ResourceKind::typed::<PriorityClass>();

/// What a PriorityClass makes of a pod.
#[derive(Debug, Default, PartialEq, Projection)]
#[koord(kind = PRIORITY_CLASS)]
pub(crate) struct PriorityClassView {
    pub(super) value: Option<i32>,
    pub(super) preemption_policy: Option<String>,
}

impl koord_runtime::projection::Projection for ExplanationView {
    const KIND: ResourceKind = ResourceKind::typed::<ScheduleExplanation>();
    type Wire<'a> = WireObject<'a, Members>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        let created = wire.metadata.creation_timestamp.as_deref().and_then(|time| time.parse().ok()).map(Time::at);
        let Members { spec, status } = wire.members;
        Ok(Self { spec, status, created: created.unwrap_or_default() })
    }
}

impl WithStatus for ExplanationView {
    type Status = ScheduleExplanationStatus;

    fn status(&self) -> Option<&ScheduleExplanationStatus> {
        self.status.as_ref()
    }
}

/// When the time of an explanation is over. One that makes no sense counts as the default.
pub(super) fn over(spec: &ScheduleExplanationSpec, created: Timestamp) -> Timestamp {
    const DEFAULT: Duration = Duration::from_hours(24);
    let ttl = spec.ttl.as_deref().and_then(|text| text.parse::<koord_resource::Duration>().ok());
    let ttl = ttl.and_then(koord_resource::Duration::to_std).unwrap_or(DEFAULT);
    created.saturating_add(ttl).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use koord_runtime::projection::Projection as _;

    use super::*;

    #[test]
    fn a_priority_class_says_priority_and_whether_pods_preempt() {
        let text = r#"{"metadata":{"name":"low"},"value":-5,"preemptionPolicy":"Never"}"#;
        let class = PriorityClassView::project(serde_json::from_str(text).unwrap(), &mut Interner::default()).unwrap();
        assert_eq!((class.value, class.preemption_policy.as_deref()), (Some(-5), Some("Never")));
    }

    #[test]
    fn an_explanation_lives_as_long_as_it_says_or_a_day() {
        let over = |ttl: Option<&str>| {
            let spec = ScheduleExplanationSpec { ttl: ttl.map(str::to_owned), ..ScheduleExplanationSpec::default() };
            over(&spec, Timestamp::UNIX_EPOCH).as_second()
        };
        assert_eq!([Some("90s"), Some("2h"), Some("soon"), None].map(over), [90, 7200, 86_400, 86_400]);
    }
}
