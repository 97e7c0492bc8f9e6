//! Why a pod does not get what it wants of a node.

use koord_scheduler_framework::Reason;

use super::resource_options::Mismatch;

pub(super) struct Refused {
    pub(super) reasons: Vec<Reason>,
    pub(super) is_resolvable: bool,
    /// Whether nothing but Reserve would refuse the node.
    pub(super) is_of_reserve: bool,
    /// Whether the topology manager says so, who knows nothing of reservations.
    pub(super) is_of_manager: bool,
}

impl From<Mismatch> for Refused {
    fn from(mismatch: Mismatch) -> Self {
        Self { is_resolvable: false, ..Self::resolvable(mismatch.reason().into()) }
    }
}

impl Refused {
    /// The reason of a refusal of the filter, and that of one that Reserve would give.
    pub(super) const OF_FILTER: u16 = 0;
    pub(super) const OF_RESERVE: u16 = 1;

    pub(super) fn resolvable(reasons: Vec<Reason>) -> Self {
        Self { reasons, is_resolvable: true, is_of_reserve: false, is_of_manager: false }
    }

    pub(super) fn of_reserve(self, is_of_reserve: bool) -> Self {
        Self { is_of_reserve, ..self }
    }

    /// The same where so many reservations have too little: each says so.
    pub(super) fn by_reservations(self, reservations: usize) -> Self {
        if self.is_of_manager || reservations == 0 {
            return self;
        }
        let prefixed = |reason: Reason| Reason { text: format!("Reservation(s) {reason}"), ..reason };
        let reasons: Vec<Reason> = self.reasons.into_iter().map(prefixed).collect();
        let each = std::iter::repeat_n(reasons, reservations);
        Self { reasons: each.flatten().collect(), ..self }
    }
}
