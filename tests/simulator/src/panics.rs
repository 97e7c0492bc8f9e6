//! Makes the code that the runtime calls panic, and its tasks.

use std::{
    collections::BTreeMap,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use koord_runtime::{
    panics::{Injector, Place},
    random::Random,
};
use parking_lot::Mutex;

use crate::fault::Fault;

/// Injects panics into programs, with a seeded source of its own.
pub struct Panics {
    random: Random,
    on: AtomicBool,
    struck: Mutex<BTreeMap<Place, u64>>,
}

/// How rarely each place panics: places that are passed often do so rarely, so that every run has a few of each.
fn one_in(place: Place) -> u64 {
    match place {
        Place::Projection | Place::Watch => 500,
        Place::Listener => 400,
        Place::Reconcile => 120,
        Place::Election => 80,
        Place::Written | Place::Execution | Place::Events | Place::Task => 60,
        Place::Remember => 30,
        Place::Failed => 8,
    }
}

impl Panics {
    /// With `on`, panics begin at once.
    pub fn new(seed: u64, on: bool) -> Arc<Self> {
        Arc::new(Self { random: Random::seeded(seed), on: AtomicBool::new(on), struck: Mutex::default() })
    }

    /// What a program takes.
    pub fn injector(self: &Arc<Self>) -> Injector {
        let panics = Arc::clone(self);
        Arc::new(move |place| {
            if panics.on.load(Ordering::Relaxed) && panics.random.below(one_in(place)) == 0 {
                *panics.struck.lock().entry(place).or_default() += 1;
                // Past the hook that prints panics: these are wanted.
                resume_unwind(Box::new("injected"));
            }
        })
    }

    /// From now on nothing panics.
    pub fn stop(&self) {
        self.on.store(false, Ordering::Relaxed);
    }

    /// Runs this without panics.
    pub(crate) fn suspend<R>(&self, work: impl FnOnce() -> R) -> R {
        let was_on = self.on.swap(false, Ordering::Relaxed);
        let result = work();
        self.on.store(was_on, Ordering::Relaxed);
        result
    }

    /// How often anything has panicked.
    pub(crate) fn count(&self) -> u64 {
        self.struck.lock().values().sum()
    }

    /// How often each place has panicked.
    pub fn faults(&self) -> BTreeMap<Fault, u64> {
        self.struck.lock().iter().map(|(place, times)| (Fault::Panic(*place), *times)).collect()
    }
}
