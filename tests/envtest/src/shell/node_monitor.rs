//! Looks after kubelets: one that has renewed no lease for some time is lost.
//!
//! No time is kept for any node. A lease that was renewed in time has a later revision than the store had then.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Server;

/// How often leases are looked at, as by kube-controller-manager.
const PERIOD: Duration = Duration::from_secs(5);

/// The revisions that a store had at the last looks, the oldest first.
#[derive(Debug, Default)]
struct Revisions(VecDeque<(Instant, u64)>);

// === impl Server ===

impl Server {
    /// Marks nodes whose kubelets renew no lease for longer than `grace`, for as long as this server is there.
    pub(crate) fn monitor_nodes(&self, grace: Duration) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let shared = Arc::downgrade(&self.shared);
        runtime.spawn(async move {
            let mut looks = interval(PERIOD);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut revisions = Revisions::default();
            loop {
                looks.tick().await;
                let Some(shared) = shared.upgrade() else { return };
                look(&Server { shared }, &mut revisions, grace);
            }
        });
    }
}

fn look(server: &Server, revisions: &mut Revisions, grace: Duration) {
    let now = Instant::now();
    if let Some(since) = revisions.before(now, grace) {
        server.with_core(|core| core.mark_lost_nodes(since));
    }
    revisions.note(now, server.with_core(|core| core.store.revision()));
}

// === impl Revisions ===

impl Revisions {
    /// The revision that the store had `grace` ago; none where that is not known yet.
    fn before(&mut self, now: Instant, grace: Duration) -> Option<u64> {
        // Whoever stopped this process stopped everybody who would have asked it.
        if self.0.back().is_some_and(|(last, _)| now.duration_since(*last) > 2 * PERIOD) {
            self.0.clear();
        }
        let mut found = None;
        while let Some((_, revision)) = self.0.pop_front_if(|(at, _)| now.duration_since(*at) >= grace) {
            found = Some(revision);
        }
        found
    }

    fn note(&mut self, now: Instant, revision: u64) {
        self.0.push_back((now, revision));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_the_store_had_some_time_ago_is_known_unless_the_process_was_stopped_meanwhile() {
        let (mut revisions, start, grace) = (Revisions::default(), Instant::now(), Duration::from_secs(12));
        let mut seen = Vec::new();
        for (second, revision) in [(0, 1), (5, 2), (10, 3), (15, 4), (20, 5), (60, 6), (65, 7)] {
            let now = start + Duration::from_secs(second);
            seen.push(revisions.before(now, grace));
            revisions.note(now, revision);
        }
        assert_eq!(seen, [None, None, None, Some(1), Some(2), None, None]);
    }
}
