//! GPUs of NVIDIA on a thread of their own: its driver may hang, and the agent does not wait for it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use jiff::Timestamp;
use koord_koordlet_devices::{GpuActivity, Gpus};
use koord_koordlet_system::HostTree;
use parking_lot::{Mutex, MutexGuard};

/// What is known of the GPUs.
#[derive(Default)]
pub struct GpuState {
    pub(crate) gpus: Gpus,
    pub(crate) activities: Vec<GpuActivity>,
    /// Counts rounds of samples.
    pub(crate) round: u64,
    /// Why there are none.
    pub(crate) fault: Option<(String, String)>,
}

/// The state that the thread and the agent share.
#[derive(Clone, Default)]
pub struct SharedGpus(Arc<Mutex<GpuState>>);

impl SharedGpus {
    /// The state; `None` while the driver is asked.
    pub(crate) fn read(&self) -> Option<MutexGuard<'_, GpuState>> {
        self.0.try_lock()
    }

    /// Why GPUs are not known, with the remedy; `None` where they are, or while the driver is asked.
    pub fn fault(&self) -> Option<(String, String)> {
        self.0.try_lock()?.fault.clone()
    }

    /// Starts the thread, which ends after `stop` was set.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn start(&self, sys: PathBuf, interval: Duration, stop: Arc<AtomicBool>) -> std::io::Result<()> {
        let shared = Arc::clone(&self.0);
        let run = move || {
            let mut rounds = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let mut state = shared.lock();
                let now = Timestamp::now();
                if rounds.is_multiple_of(REFRESH_ROUNDS) {
                    let refreshed = state.gpus.refresh(&HostTree, &sys, now);
                    state.fault = refreshed.err().map(|error| (error.to_string(), error.remedy().to_owned()));
                }
                match state.gpus.fetch_xids(now) {
                    Ok(events) => {
                        for event in events {
                            tracing::warn!(
                                gpu = event.uuid,
                                xid = event.xid,
                                critical = event.is_critical,
                                "a GPU reports an error"
                            );
                        }
                    }
                    Err(error) => tracing::debug!(%error, "errors of GPUs cannot be read"),
                }
                state.activities = state.gpus.sample(now).to_vec();
                state.round += 1;
                drop(state);
                rounds += 1;
                thread::sleep(interval);
            }
        };
        thread::Builder::new().name("gpus".to_owned()).spawn(run).map(drop)
    }
}

/// The list of GPUs is read again after so many rounds of samples.
const REFRESH_ROUNDS: u64 = 10;
