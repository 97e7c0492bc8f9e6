//! What happens to a workload, and what becomes of it. Names are those of the original, as labels of metrics have them.

/// What happens to a workload while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its first pod was created.
    Create,
    /// A scheduling gate holds a pod of it back.
    GatedByQueueAdmission,
    /// No scheduling gate holds the pod back any more.
    AdmissionPassed,
    /// A gang group has the pods without which it is not tried.
    GangMinMemberSatisfied,
    /// Pods are evicted for it.
    PreemptNominated,
    /// It was tried, and pods that are evicted for it are still there.
    PreemptVictimDeleting,
    /// It was tried, and no preemption helps it.
    PreemptFailure,
    /// It was tried in vain without preemption; or its binding has failed.
    ScheduleFailure,
    /// It has its places.
    Scheduled,
    /// The pods that were evicted for it are gone.
    VictimAllDeleted,
    /// Every member of a gang group that waits was tried.
    GangAllPodsAlreadyAttempted,
}

impl Event {
    /// How many there are.
    pub(super) const COUNT: usize = 11;

    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Create,
        Self::GatedByQueueAdmission,
        Self::AdmissionPassed,
        Self::GangMinMemberSatisfied,
        Self::PreemptNominated,
        Self::PreemptVictimDeleting,
        Self::PreemptFailure,
        Self::ScheduleFailure,
        Self::Scheduled,
        Self::VictimAllDeleted,
        Self::GangAllPodsAlreadyAttempted,
    ];

    /// The label `event_type`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::GatedByQueueAdmission => "gatedByQueueAdmission",
            Self::AdmissionPassed => "admissionPassed",
            Self::GangMinMemberSatisfied => "gangMinMemberSatisfied",
            Self::PreemptNominated => "preemptNominated",
            Self::PreemptVictimDeleting => "preemptVictimDeleting",
            Self::PreemptFailure => "preemptFailure",
            Self::ScheduleFailure => "scheduleFailure",
            Self::Scheduled => "scheduled",
            Self::VictimAllDeleted => "victimAllDeleted",
            Self::GangAllPodsAlreadyAttempted => "gangAllPodsAlreadyAttempted",
        }
    }
}

/// What becomes of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The pod has its node.
    Scheduled,
    /// The pod waits no longer, and this scheduler has not placed it.
    Deleted,
    /// The gang group has its places.
    GangScheduled,
    /// No pod of the gang group waits any more, and it was not placed.
    GangDeleted,
}

impl Outcome {
    /// The label `outcome`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Deleted => "deleted",
            Self::GangScheduled => "gangScheduled",
            Self::GangDeleted => "gangDeleted",
        }
    }
}
