//! Gangs that wait for members or declarations: their pods are not tried, so that no attempt says why they wait.

use std::time::Duration;

use koord_resource::controller::ResourceKind;
use koord_runtime::uid::Uid;
use koord_scheduler_framework::{Reason, ReasonCode, pod::Pod};
use koord_types::pod_group::PodGroup;

use super::reported::Part;
use crate::{report, scheduler::Scheduler};

/// How long a member waits before it is reported. Members are created one after the other.
const GRACE: Duration = Duration::from_secs(30);

impl Scheduler {
    /// Reports once what a gang lacks: of its PodGroup, or else of the member that waits.
    pub(super) fn report_on_gang(&mut self, pod: &Pod, reason: &Reason) {
        let is_of_gang = matches!(reason.code, ReasonCode::GangWaitingMembers | ReasonCode::GangUndeclared);
        let Some(gang) = reason.operand("gang").filter(|_| is_of_gang) else { return };
        let waits = self.clock.now().as_second().saturating_sub(pod.created);
        if Duration::from_secs(waits.try_into().unwrap_or(0)) < GRACE {
            return;
        }
        let message = format!("{}; its pods are not tried until then", reason.text);
        if !self.ignored.reported.is_new(Part::Gang, &Uid::from(gang), std::slice::from_ref(&message)) {
            return;
        }
        let about = if let Some(group) = self.engine.cluster().objects().entry::<PodGroup>(gang) {
            (ResourceKind::typed::<PodGroup>(), group.key.clone(), group.uid.clone())
        } else {
            let (kind, key) = report::subject(pod);
            (kind, key.clone(), pod.uid.clone())
        };
        self.warn(about, ("Scheduling", "GangIncomplete"), message);
    }
}
