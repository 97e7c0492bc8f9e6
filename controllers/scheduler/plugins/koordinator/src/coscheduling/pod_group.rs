//! The status of a PodGroup (3E.9).

use std::time::Duration;

use jiff::Timestamp;
use koord_resource::Time;
use koord_types::pod_group::{PodGroupPhase, PodGroupStatus};

/// A PodGroup whose scheduling began so long after its creation is left alone once its pods have their nodes and none runs.
const ABANDONED_AFTER: Duration = Duration::from_hours(48);

/// How many pods of a group are how far. Pods that have ended are none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub members: i32,
    /// Those with a node.
    pub scheduled: i32,
    pub running: i32,
}

/// The status that follows from an old one for a PodGroup that needs `min` pods. `owners` are the workloads of its first pod, which
/// occupy it once there are enough pods; empty where it has none. `now` is when scheduling starts, if it does.
///
/// Nothing is counted while the phase is `Pending`, and nothing follows from `Finished` and `Failed`.
///
/// QUIRK: a minimum that was lowered to 0 or less is reached by pods that have ended, of which there are none
/// (`a_minimum_of_nothing_is_never_reached_and_finished_when_it_comes_later`).
pub fn status(old: &PodGroupStatus, min: i32, counts: Counts, owners: &str, now: Time) -> PodGroupStatus {
    let Counts { members, scheduled, running } = counts;
    let is_complete = members >= min && min > 0;
    let mut new = old.clone();
    match &old.phase {
        Some(PodGroupPhase::Finished | PodGroupPhase::Failed) => return new,
        None | Some(PodGroupPhase::Pending) if is_complete => {
            if !owners.is_empty() {
                owners.clone_into(&mut new.occupied_by);
            }
        }
        None | Some(PodGroupPhase::Pending) => return PodGroupStatus { phase: Some(PodGroupPhase::Pending), ..new },
        Some(_) if members == 0 => return PodGroupStatus { phase: Some(PodGroupPhase::Pending), ..new },
        Some(_) => {}
    }
    (new.scheduled, new.running, new.succeeded, new.failed) = (scheduled, running, 0, 0);
    let phase = if min <= 0 {
        PodGroupPhase::Finished
    } else if scheduled < min {
        new.schedule_start_time.get_or_insert(now);
        PodGroupPhase::Scheduling
    } else if running < min {
        PodGroupPhase::Scheduled
    } else {
        PodGroupPhase::Running
    };
    PodGroupStatus { phase: Some(phase), ..new }
}

/// Whether a PodGroup is so old that its pods may be gone.
pub fn is_abandoned(status: &PodGroupStatus, min: i32, created: Timestamp) -> bool {
    let start = status.schedule_start_time.as_ref().map(|start| start.at().duration_since(created));
    let is_late = start.and_then(|after| Duration::try_from(after).ok()).is_some_and(|after| after > ABANDONED_AFTER);
    is_late && status.scheduled == min && status.running == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Timestamp::from_second(second).unwrap().into()
    }

    /// The status after each of these counts of members, scheduled and running pods, of a group that needs so many.
    fn after(min: i32, counts: &[(i32, i32, i32)]) -> PodGroupStatus {
        counts.iter().zip(1..).fold(PodGroupStatus::default(), |old, ((members, scheduled, running), second)| {
            let counts = Counts { members: *members, scheduled: *scheduled, running: *running };
            status(&old, min, counts, "ns/j", at(second))
        })
    }

    fn shown(status: &PodGroupStatus) -> (&str, i32, i32) {
        (status.phase.as_ref().map_or("", PodGroupPhase::as_str), status.scheduled, status.running)
    }

    #[test]
    fn the_phase_is_how_far_the_minimum_has_come() {
        for (counts, phase) in [
            (&[(0, 0, 0)][..], ("Pending", 0, 0)),
            (&[(1, 1, 1)], ("Pending", 0, 0)),
            (&[(2, 0, 0)], ("Scheduling", 0, 0)),
            (&[(2, 1, 0)], ("Scheduling", 1, 0)),
            (&[(3, 2, 1)], ("Scheduled", 2, 1)),
            (&[(3, 3, 2)], ("Running", 3, 2)),
            (&[(2, 2, 2), (2, 1, 1)], ("Scheduling", 1, 1)),
            (&[(2, 2, 2), (1, 1, 1)], ("Scheduling", 1, 1)),
            (&[(2, 2, 2), (0, 0, 0)], ("Pending", 2, 2)),
            (&[(2, 2, 2), (0, 0, 0), (1, 1, 0)], ("Pending", 2, 2)),
        ] {
            assert_eq!(shown(&after(2, counts)), phase, "{counts:?}");
        }
    }

    #[test]
    fn a_minimum_of_nothing_is_never_reached_and_finished_when_it_comes_later() {
        assert_eq!(shown(&after(0, &[(0, 0, 0), (1, 1, 1)])), ("Pending", 0, 0));
        let counts = Counts { members: 2, scheduled: 2, running: 1 };
        let lowered = status(&after(2, &[(2, 2, 2)]), 0, counts, "", at(9));
        assert_eq!(shown(&lowered), ("Finished", 2, 1));
        assert_eq!(status(&lowered, 2, Counts { members: 2, ..Counts::default() }, "ns/k", at(9)), lowered);
        let failed = PodGroupStatus { phase: Some(PodGroupPhase::Failed), ..PodGroupStatus::default() };
        assert_eq!(status(&failed, 2, counts, "ns/k", at(9)), failed);
    }

    #[test]
    fn a_group_is_occupied_and_its_scheduling_starts_as_soon_as_it_has_enough_pods() {
        let occupied = |counts: &[(i32, i32, i32)]| after(2, counts).occupied_by;
        assert_eq!([occupied(&[(1, 1, 0)]), occupied(&[(2, 0, 0)])], ["", "ns/j"]);
        let started = after(2, &[(1, 0, 0), (2, 0, 0), (2, 1, 0), (2, 2, 0)]);
        assert_eq!(started.schedule_start_time, Some(at(2)));
        assert_eq!(after(2, &[(2, 2, 0)]).schedule_start_time, None, "they had their nodes before");
        let counts = Counts { members: 2, scheduled: 2, running: 0 };
        assert_eq!(status(&started, 2, counts, "ns/k", at(9)), started, "the first owner stays");
        let without_owner =
            status(&PodGroupStatus { occupied_by: "ns/x".into(), ..Default::default() }, 2, counts, "", at(9));
        assert_eq!(without_owner.occupied_by, "ns/x");
    }

    #[test]
    fn a_group_that_began_two_days_after_its_creation_is_left_alone_unless_its_pods_run() {
        let is_old = |hours: i64, scheduled: i32, running: i32| {
            let schedule_start_time = Some(at(hours * 3600 + 1));
            let status = PodGroupStatus { scheduled, running, schedule_start_time, ..PodGroupStatus::default() };
            is_abandoned(&status, 2, Timestamp::UNIX_EPOCH)
        };
        assert_eq!(
            [is_old(47, 2, 0), is_old(48, 2, 0), is_old(48, 2, 1), is_old(48, 1, 0)],
            [false, true, false, false]
        );
        assert!(!is_abandoned(&PodGroupStatus::default(), 0, Timestamp::UNIX_EPOCH));
    }
}
