//! Whether a GPU is healthy, by the critical errors (XIDs) that the driver reports and by whether it answers.

use std::time::Duration;

use jiff::Timestamp;

use super::error::{NvmlError, ReturnCode};
use crate::found::Health;

/// XIDs that a program on the GPU causes by itself: a graphics exception, a page fault, preemptive cleanup, a fault of a memory access, a stop of its
/// channels, an unfinished video job, a switch of its context that failed.
const APPLICATION_FAULTS: [u64; 6] = [13, 31, 43, 45, 68, 109];

/// How long a GPU is without further critical errors before the driver's word that it needs no recovery counts.
pub const RECOVERY_QUIET: Duration = Duration::from_mins(1);

/// Whether an XID is a fault of the program that ran on the GPU, and none of the GPU: 13, 31, 43, 45, 68, 109.
pub fn is_application_fault(xid: u64) -> bool {
    APPLICATION_FAULTS.contains(&xid)
}

/// What is wrong with a GPU.
///
/// A critical XID makes it unhealthy. It is healthy again when the driver says that no recovery is needed (drivers from 565 on do) and no further critical XID
/// has come for [`RECOVERY_QUIET`]; or when it had been lost and answers again in a new session, for then it was reset. By an older driver nobody can know, and
/// the GPU stays unhealthy as long as the agent runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GpuHealth {
    critical: Option<Critical>,
    lost: Option<Lost>,
    /// Why XIDs of the GPU do not arrive.
    unwatched: Option<NvmlError>,
}

/// The first critical XID since the GPU was healthy, which is the cause of what follows; and the time of the last.
#[derive(Clone, Debug, PartialEq)]
struct Critical {
    xid: u64,
    first: Timestamp,
    last: Timestamp,
}

/// The GPU does not answer.
#[derive(Clone, Debug, PartialEq)]
struct Lost {
    error: NvmlError,
    session: u64,
}

impl GpuHealth {
    /// An XID has come. Returns whether the GPU was healthy before and is not now.
    pub(super) fn note_xid(&mut self, xid: u64, now: Timestamp) -> bool {
        if is_application_fault(xid) {
            return false;
        }
        match &mut self.critical {
            Some(critical) => critical.last = now,
            None => self.critical = Some(Critical { xid, first: now, last: now }),
        }
        true
    }

    /// It does not answer, in the session of this number.
    pub(super) fn note_lost(&mut self, error: &NvmlError, session: u64) {
        match &mut self.lost {
            Some(lost) => lost.session = session,
            None => self.lost = Some(Lost { error: error.clone(), session }),
        }
    }

    /// It answers, in the session of this number.
    pub(super) fn note_answer(&mut self, session: u64) {
        if self.lost.take().is_some_and(|lost| lost.session != session) {
            self.critical = None;
        }
    }

    /// Whether XIDs of the GPU arrive.
    pub(super) fn note_watched(&mut self, watched: Result<(), NvmlError>) {
        self.unwatched = watched.err();
    }

    /// Whether the driver is to be asked if recovery is needed.
    pub(super) fn may_have_recovered(&self, now: Timestamp) -> bool {
        let is_quiet = |last| Duration::try_from(now.duration_since(last)).is_ok_and(|quiet| quiet >= RECOVERY_QUIET);
        self.critical.as_ref().is_some_and(|critical| is_quiet(critical.last))
    }

    /// The driver says that no recovery is needed.
    pub(super) fn note_recovered(&mut self) {
        self.critical = None;
    }

    pub(super) fn health(&self) -> Health {
        match self {
            Self { lost: Some(Lost { error, .. }), .. } => {
                Health::unhealthy(error.reason(), format!("{error}; {}", error.remedy()))
            }
            Self { critical: Some(Critical { xid, first, .. }), .. } => Health::unhealthy(
                format!("Xid{xid}"),
                format!("critical error XID {xid} at {}", first.strftime("%Y-%m-%dT%H:%M:%SZ")),
            ),
            // QUIRK: a GPU whose faults nobody would notice counts as faulty, as in the original.
            Self { unwatched: Some(error), .. } if error.code() == Some(ReturnCode::NOT_SUPPORTED) => {
                Health::unhealthy("DeviceHealthCheckNotSupported", "the GPU does not report critical errors (XIDs)")
            }
            Self { unwatched: _, critical: None, lost: None } => Health::Healthy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn lost() -> NvmlError {
        NvmlError::Call { function: "nvmlDeviceGetMemoryInfo", code: ReturnCode::GPU_IS_LOST }
    }

    #[test]
    fn faults_of_programs_leave_a_gpu_healthy_and_others_do_not() {
        for (xid, reason) in [
            (13, None),
            (31, None),
            (43, None),
            (45, None),
            (68, None),
            (109, None),
            (0, Some("Xid0")),
            (48, Some("Xid48")),
            (63, Some("Xid63")),
            (79, Some("Xid79")),
            (119, Some("Xid119")),
        ] {
            let mut gpu = GpuHealth::default();
            gpu.note_xid(xid, at(0));
            let found = match gpu.health() {
                Health::Unhealthy { reason, .. } => Some(reason),
                Health::Healthy => None,
            };
            assert_eq!(found.as_deref(), reason, "{xid}");
        }
    }

    #[test]
    fn the_first_critical_error_is_the_reason_and_the_last_one_begins_the_quiet_time() {
        let mut gpu = GpuHealth::default();
        assert!(gpu.note_xid(48, at(0)));
        gpu.note_xid(63, at(50));
        assert_eq!(gpu.health(), Health::unhealthy("Xid48", "critical error XID 48 at 2026-01-01T00:00:00Z"));
        assert!(!gpu.may_have_recovered(at(109)));
        assert!(gpu.may_have_recovered(at(110)));
        assert!(!gpu.may_have_recovered(at(-10)), "the clock was set back");
        gpu.note_recovered();
        assert!(gpu.health().is_healthy() && !gpu.may_have_recovered(at(500)));
    }

    #[test]
    fn a_gpu_that_was_lost_and_answers_in_a_new_session_was_reset() {
        let mut gpu = GpuHealth::default();
        gpu.note_xid(79, at(0));
        gpu.note_answer(1);
        assert!(!gpu.health().is_healthy(), "it had not been lost");
        gpu.note_lost(&lost(), 1);
        gpu.note_answer(1);
        assert_eq!(gpu.health(), Health::unhealthy("Xid79", "critical error XID 79 at 2026-01-01T00:00:00Z"));
        gpu.note_lost(&lost(), 1);
        gpu.note_answer(2);
        assert!(gpu.health().is_healthy());
    }

    #[test]
    fn only_a_gpu_that_cannot_report_errors_is_unhealthy_without_one() {
        let mut gpu = GpuHealth::default();
        let call = |code| NvmlError::Call { function: "nvmlDeviceRegisterEvents", code };
        gpu.note_watched(Err(call(ReturnCode(999))));
        assert!(gpu.health().is_healthy(), "the driver failed, the GPU did not");
        gpu.note_watched(Err(call(ReturnCode::NOT_SUPPORTED)));
        let Health::Unhealthy { reason, .. } = gpu.health() else { panic!("it is unhealthy") };
        assert_eq!(reason, "DeviceHealthCheckNotSupported");
        gpu.note_watched(Ok(()));
        assert!(gpu.health().is_healthy());
    }
}
