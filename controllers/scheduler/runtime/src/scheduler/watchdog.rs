//! A decision that does not end is seen by a thread of its own: the task that decides reports nothing while it hangs.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
};

use koord_runtime::clock::SharedClock;
use koord_scheduler_engine::CurrentAttempt;

use super::Scheduler;
use crate::timeouts::TimeoutReports;

/// Looks once in a period whether a decision lasts for too long, and reports it each time.
struct Watchdog {
    reports: TimeoutReports,
    current_attempt: CurrentAttempt,
    clock: SharedClock,
}

/// A watchdog looks until this is dropped.
pub(crate) struct Watched {
    _end: mpsc::Sender<()>,
}

impl Scheduler {
    /// Reports decisions that hang until the result is dropped.
    pub(crate) fn watch(&self) -> Watched {
        let watchdog = Watchdog {
            reports: self.timeout_reports.clone(),
            current_attempt: self.engine.current_attempt(),
            clock: Arc::clone(&self.clock),
        };
        watchdog.start()
    }
}

impl Watchdog {
    /// Starts the thread. Where the system has none left, only decisions that end are reported.
    fn start(self) -> Watched {
        let (end, ended) = mpsc::channel();
        let run = move || {
            while ended.recv_timeout(self.reports.settings.period) == Err(RecvTimeoutError::Timeout) {
                self.look();
            }
        };
        if let Err(error) = thread::Builder::new().name("scheduling watchdog".to_owned()).spawn(run) {
            tracing::warn!(%error, "decisions that do not end are not reported: no thread");
        }
        Watched { _end: end }
    }

    fn look(&self) {
        let Some((pod, since)) = self.current_attempt.get() else { return };
        self.reports.report(&pod, "decision", self.clock.moment().since(since));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Mutex,
        time::{Duration, Instant},
    };

    use koord_runtime::{
        clock::{Clock as _, ManualClock},
        key::ObjectKey,
        metrics::Registries,
        random::Random,
        uid::Uid,
    };
    use koord_scheduler_engine::{Engine, queue::Timings};
    use koord_scheduler_framework::{
        Plugin, PreFilter, Profile, Registration, Rejection, Request,
        cluster::Cluster,
        node::Node,
        pod::{Pod, Template},
    };

    use super::*;
    use crate::{metrics::Measures, timeouts::Monitoring};

    /// Its PreFilter begins, says so, and ends when it may.
    struct Hanging {
        begun: mpsc::SyncSender<()>,
        may_end: Mutex<mpsc::Receiver<()>>,
    }

    impl Plugin for Hanging {
        fn name(&self) -> &'static str {
            "Hanging"
        }

        fn register(self: Arc<Self>) -> Registration {
            Registration::of(&self).pre_filter(&self)
        }
    }

    impl PreFilter for Hanging {
        fn pre_filter(&self, _: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
            let _ = self.begun.send(());
            let _ = self.may_end.lock().unwrap().recv();
            Ok(())
        }
    }

    #[test]
    fn a_decision_is_reported_while_it_hangs() {
        let (begun, has_begun) = mpsc::sync_channel(1);
        let (let_it_end, may_end) = mpsc::channel();
        let plugin: Arc<dyn Plugin> = Arc::new(Hanging { begun, may_end: Mutex::new(may_end) });
        let profile = Profile::of("koord-scheduler", vec![plugin]);
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let registries = Registries::default();
        let measures = Measures::of(&engine, &registries).unwrap();
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let settings = Monitoring { period: Duration::from_millis(2), timeout: Duration::from_secs(30) };
        let watchdog = Watchdog {
            reports: TimeoutReports { settings, counter: Some(measures.timeouts()) },
            current_attempt: engine.current_attempt(),
            clock: Arc::clone(&clock) as SharedClock,
        };
        let reported = || measures.timeouts().of("koord-scheduler");
        let watched = watchdog.start();
        let template = Template { scheduler: "koord-scheduler".into(), ..Template::default() };
        let (key, template) = (ObjectKey::new("ns", "stuck"), Arc::new(template));
        let pod = Pod { key, uid: Uid::from("1"), template, ..Pod::default() };
        engine.set_node(Arc::new(Node { name: "n1".into(), ..Node::default() }), clock.moment());
        engine.set_pod(Arc::new(pod), clock.moment());
        let began = clock.moment();
        let current_attempt = engine.current_attempt();
        let deciding = thread::spawn(move || engine.attempt(began).is_some());
        has_begun.recv().unwrap();
        assert_eq!(
            current_attempt.get().map(|(pod, since)| (pod.key.to_string(), since)),
            Some(("ns/stuck".to_owned(), began))
        );
        clock.advance(Duration::from_secs(30));
        thread::sleep(20 * settings.period);
        assert_eq!(reported(), 0, "it does not last for too long yet");
        clock.advance(Duration::from_secs(1));
        let limit = Instant::now() + Duration::from_secs(10);
        while reported() < 3 && Instant::now() < limit {
            thread::yield_now();
        }
        assert!(reported() >= 3, "it is reported at every look, and still hangs");
        assert!(!deciding.is_finished());
        let_it_end.send(()).unwrap();
        assert!(deciding.join().unwrap());
        assert!(current_attempt.get().is_none());
        thread::sleep(5 * settings.period);
        let before = reported();
        thread::sleep(20 * settings.period);
        assert_eq!(reported(), before, "nothing hangs any more");
        drop(watched);
    }
}
