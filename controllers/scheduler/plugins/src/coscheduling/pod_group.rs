//! The status of a PodGroup (3E.9).

use std::time::Duration;

use jiff::Timestamp;
use koord_api::pod_group::{PodGroupPhase, PodGroupStatus};

/// After this time a PodGroup of which nothing was scheduled is left alone.
const ABANDONED_AFTER: Duration = Duration::from_hours(48);

/// How many pods of a group are how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub members: i32,
    /// Those with a node, whether they run or have ended.
    pub scheduled: i32,
    /// Those that run.
    pub running: i32,
    /// Those that ended well.
    pub succeeded: i32,
    /// Those that failed.
    pub failed: i32,
}

/// The status of a PodGroup that needs `min` pods. `owners` are the workloads of its first pod; they count once there are enough
/// pods.
///
/// A group that was scheduled once does not go back: pods that end are forgotten, and their group stays what it was.
pub fn status(old: &PodGroupStatus, min: i32, counts: Counts, owners: Option<&str>) -> PodGroupStatus {
    let Counts { members, scheduled, running, succeeded, failed } = counts;
    let is_complete = members >= min && members > 0;
    let phase = if failed > 0 && failed + running + succeeded >= min {
        PodGroupPhase::Failed
    } else if succeeded >= min && succeeded > 0 {
        PodGroupPhase::Finished
    } else if running + succeeded >= min && running > 0 {
        PodGroupPhase::Running
    } else if scheduled >= min && scheduled > 0 {
        PodGroupPhase::Scheduled
    } else if scheduled > 0 {
        PodGroupPhase::Scheduling
    } else if is_complete {
        PodGroupPhase::PreScheduling
    } else {
        PodGroupPhase::Pending
    };
    if members == 0 && old.scheduled > 0 {
        return old.clone();
    }
    let known = old.phase.clone().filter(|known| old.scheduled > 0 && progress(known) > progress(&phase));
    let occupied_by = match owners {
        Some(owners) if old.occupied_by.is_empty() && is_complete => owners.to_owned(),
        _ => old.occupied_by.clone(),
    };
    PodGroupStatus {
        phase: known.or(Some(phase)),
        occupied_by,
        scheduled: scheduled.max(old.scheduled),
        running,
        succeeded,
        failed,
        schedule_start_time: old.schedule_start_time.clone(),
    }
}

/// How far a group has come in a phase.
fn progress(phase: &PodGroupPhase) -> usize {
    let order = [
        PodGroupPhase::Pending,
        PodGroupPhase::PreScheduling,
        PodGroupPhase::Scheduling,
        PodGroupPhase::Scheduled,
        PodGroupPhase::Running,
        PodGroupPhase::Finished,
        PodGroupPhase::Failed,
    ];
    order.iter().position(|known| known == phase).unwrap_or(0)
}

/// Whether a PodGroup is so old that nothing will become of it.
pub fn is_abandoned(status: &PodGroupStatus, created: Timestamp, now: Timestamp) -> bool {
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    status.scheduled == 0 && age > ABANDONED_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_is_how_far_the_minimum_has_come() {
        let phase = |members, scheduled, running, succeeded, failed| {
            let counts = Counts { members, scheduled, running, succeeded, failed };
            status(&PodGroupStatus::default(), 2, counts, None).phase.unwrap().as_str().to_owned()
        };
        assert_eq!([phase(0, 0, 0, 0, 0), phase(1, 0, 0, 0, 0)], ["Pending", "Pending"]);
        assert_eq!([phase(2, 0, 0, 0, 0), phase(2, 1, 0, 0, 0)], ["PreScheduling", "Scheduling"]);
        assert_eq!([phase(2, 2, 1, 0, 0), phase(3, 3, 2, 0, 0)], ["Scheduled", "Running"]);
        assert_eq!([phase(2, 2, 1, 1, 0), phase(2, 2, 0, 2, 0)], ["Running", "Finished"]);
        assert_eq!([phase(2, 2, 1, 0, 1), phase(3, 3, 0, 1, 0)], ["Failed", "Scheduled"]);
    }

    #[test]
    fn a_group_whose_pods_have_all_ended_keeps_its_status() {
        let counts = Counts { members: 2, scheduled: 2, ..Counts::default() };
        let scheduled = status(&PodGroupStatus::default(), 2, counts, Some("ns/j"));
        assert_eq!((scheduled.occupied_by.as_str(), scheduled.scheduled), ("ns/j", 2));
        assert_eq!(status(&scheduled, 2, Counts::default(), None), scheduled);
        let one_ended = status(&scheduled, 2, Counts { members: 1, scheduled: 1, ..Counts::default() }, None);
        assert_eq!(one_ended, scheduled);
        let other = status(&scheduled, 2, counts, Some("ns/k"));
        assert_eq!(other.occupied_by, "ns/j", "the first owner stays");
    }

    #[test]
    fn a_group_is_occupied_as_soon_as_it_has_enough_pods() {
        let occupied = |members, scheduled| {
            let counts = Counts { members, scheduled, ..Counts::default() };
            status(&PodGroupStatus::default(), 2, counts, Some("ns/j")).occupied_by
        };
        assert_eq!([occupied(1, 0), occupied(1, 1), occupied(2, 0), occupied(3, 2)], ["", "", "ns/j", "ns/j"]);
    }

    #[test]
    fn a_group_is_abandoned_after_two_days_without_a_scheduled_pod() {
        let after = |hours: i64, scheduled| {
            let now = Timestamp::from_second(hours * 3600 + 1).unwrap();
            is_abandoned(&PodGroupStatus { scheduled, ..PodGroupStatus::default() }, Timestamp::UNIX_EPOCH, now)
        };
        assert_eq!((after(47, 0), after(48, 0), after(48, 1)), (false, true, false));
    }
}
