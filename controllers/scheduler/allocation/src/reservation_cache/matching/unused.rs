//! Why pods that found no node do not use the reservations that they own or name.

use koord_core::uid::Uid;
use koord_scheduler_framework::{Found, ReasonCode};
use koord_types::reservation::{Reservation, ReservationReason};

use super::{ReservationCache, ReservationMatch, ReservationQuery};
use crate::ReservationMismatch;

/// Reservations about which something is kept for one pod.
const NOTED_MAX: usize = 64;

/// Why the last pod that might have used a reservation, and was refused, does not use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    pub reason: ReservationReason,
    pub message: String,
}

impl Unused {
    fn new(code: ReasonCode, message: String) -> Self {
        Self { reason: ReservationReason::from(code.as_str()), message }
    }
}

impl ReservationCache {
    /// Why a pod that was refused uses none of the Reservations of which it is an owner, and not the one that it names.
    pub fn unused(&self, query: &ReservationQuery<'_>, found: &Found) -> Vec<(Uid, Unused)> {
        if query.selector.is_ignoring {
            return Vec::new();
        }
        let (pod, scope) = (query.request.pod, query.scope());
        let candidates = self.candidates(pod);
        let words =
            if candidates.is_empty() { String::new() } else { found.words(query.request.plugins, query.cluster) };
        let owned = candidates.into_iter().filter_map(|uid| {
            self.info(uid).filter(|info| !info.is_pod)?;
            let unused = match self.about(uid, query, &scope)?.1 {
                ReservationMatch::Matched => {
                    Unused { reason: ReservationReason::Unschedulable, message: format!("{}: {words}", pod.key) }
                }
                // Who names another one does not ask for this.
                ReservationMatch::Ignored
                | ReservationMatch::NotOwner
                | ReservationMatch::Mismatch(ReservationMismatch::Name) => return None,
                ReservationMatch::Mismatch(mismatch) => {
                    let message = format!("{}: the Reservation {}", pod.key, mismatch.words());
                    Unused::new(ReasonCode::ReservationNotMatched, message)
                }
            };
            Some((uid.clone(), unused))
        });
        owned.chain(self.named_by_other(query)).take(NOTED_MAX).collect()
    }

    /// The Reservation that a pod names without being one of its owners.
    fn named_by_other(&self, query: &ReservationQuery<'_>) -> Option<(Uid, Unused)> {
        let pod = query.request.pod;
        let uid = &query.cluster.objects().entry::<Reservation>(query.selector.name()?)?.uid;
        let field = match &self.info(uid)?.owners {
            Some(owners) => owners.mismatch(pod)?,
            None => "spec.owners".to_owned(),
        };
        let message = format!("{}: {field} does not match the pod", pod.key);
        Some((uid.clone(), Unused::new(ReasonCode::ReservationOwnerMismatch, message)))
    }

    /// Keeps what [`ReservationCache::unused`] gave, until the Reservation is used or deleted.
    pub fn note_unused(&mut self, unused: Vec<(Uid, Unused)>) {
        self.unused.extend(unused);
    }

    /// Why the last pod that was refused does not use a Reservation.
    pub fn last_unused(&self, uid: &Uid) -> Option<&Unused> {
        self.unused.get(uid)
    }
}
