//! The GPUs of the node from round to round.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use koord_koordlet_system::FileTree;
use koord_types::device::DeviceTopology;

use super::{
    LIBRARY,
    error::NvmlError,
    health::GpuHealth,
    session::{Buffers, Handle, Session},
};
use crate::{
    found::Health,
    pci::PciAddress,
    usage::{GpuActivity, merged_processes},
};

/// The GPUs of NVIDIA, and the session with their driver.
///
/// Each round the caller [refreshes](Self::refresh) what is known, [fetches critical errors](Self::fetch_xids), and [samples](Self::sample) what processes
/// use. A GPU that fails is unhealthy with the reason, with what was known of it before; the others go on. While a GPU does not answer, the session begins
/// anew once a minute, because a driver shows a GPU that was reset to new sessions only.
#[derive(Debug)]
pub struct Gpus {
    library: PathBuf,
    session: Option<Session>,
    /// The number of the session, and when it began.
    session_number: u64,
    opened: Option<Timestamp>,
    /// Why there is no session.
    closed: Option<NvmlError>,
    /// Whether a GPU could not be read that was not known before.
    is_incomplete: bool,
    driver_version: String,
    known: Vec<Known>,
    failures: Vec<GpuFailure>,
    activities: Vec<GpuActivity>,
    buffers: Buffers,
}

/// A GPU as it is reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    pub uuid: String,
    pub minor: u32,
    /// The product, such as `NVIDIA A100-SXM4-40GB`; empty where the driver does not say.
    pub model: String,
    pub memory_bytes: u64,
    /// `None` where the PCI address is not known.
    pub topology: Option<DeviceTopology>,
    pub health: Health,
}

/// What could not be learned of a GPU in the last round.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("GPU {index}: {error}")]
pub struct GpuFailure {
    /// The place of the GPU in the driver's list.
    pub index: u32,
    /// Why.
    #[source]
    pub error: NvmlError,
}

/// A critical error that the driver has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidEvent {
    /// The GPU; `None` when the driver names one that is not known.
    pub uuid: Option<String>,
    pub xid: u64,
    /// Whether it makes the GPU unhealthy.
    pub is_critical: bool,
}

#[derive(Debug)]
struct Known {
    index: u32,
    handle: Option<Handle>,
    gpu: Gpu,
    health: GpuHealth,
    /// The number of the session in which its XIDs were asked for.
    watched_in: Option<u64>,
}

/// How often a session begins anew while a GPU does not answer, or the driver is not there.
const REOPEN_AFTER: Duration = Duration::from_mins(1);
/// Most critical errors that are fetched in a round; what is left comes in the next one.
const XIDS_MAX: usize = 256;
/// How far samples of what processes use go back: the driver takes one in a second or less.
const SAMPLES_BACK_US: u64 = 2_000_000;

impl Default for Gpus {
    fn default() -> Self {
        Self::new(LIBRARY)
    }
}

impl Gpus {
    /// Nothing is loaded yet. The library is a path, or a name that the loader searches.
    pub fn new(library: impl Into<PathBuf>) -> Self {
        Self {
            library: library.into(),
            session: None,
            session_number: 0,
            opened: None,
            closed: None,
            is_incomplete: false,
            driver_version: String::new(),
            known: Vec::new(),
            failures: Vec::new(),
            activities: Vec::new(),
            buffers: Buffers::default(),
        }
    }

    /// The GPUs that are known, by minor number.
    pub fn gpus(&self) -> impl Iterator<Item = &Gpu> {
        self.known.iter().map(|known| &known.gpu)
    }

    /// The version of the driver; empty before the driver has answered.
    pub fn driver_version(&self) -> &str {
        &self.driver_version
    }

    /// What failed for single GPUs in the last [refresh](Self::refresh) or [round of samples](Self::sample).
    pub fn failures(&self) -> &[GpuFailure] {
        &self.failures
    }

    /// Why critical errors of no GPU arrive, where that is so; GPUs are healthy as long as they answer then.
    pub fn events_error(&self) -> Option<&NvmlError> {
        self.session.as_ref()?.events_error()
    }

    /// Reads the list of GPUs and what is to be reported of each. The library is loaded by the first call.
    ///
    /// # Errors
    ///
    /// There is no library, no driver, or it does not list GPUs. GPUs that were known are unhealthy then.
    pub fn refresh(&mut self, tree: &dyn FileTree, sys: &Path, now: Timestamp) -> Result<(), NvmlError> {
        self.failures.clear();
        let refreshed = self.try_refresh(tree, sys, now);
        if let Err(error) = &refreshed {
            self.session = None;
            self.closed = Some(error.clone());
            for known in &mut self.known {
                known.lose(error, self.session_number);
            }
        }
        for known in &mut self.known {
            known.gpu.health = known.health.health();
        }
        self.known.sort_by_key(|known| known.gpu.minor);
        refreshed
    }

    fn try_refresh(&mut self, tree: &dyn FileTree, sys: &Path, now: Timestamp) -> Result<(), NvmlError> {
        let may_open = self.opened.is_none_or(|opened| elapsed(opened, now) >= REOPEN_AFTER);
        let is_any_lost = self.is_incomplete || self.known.iter().any(|known| known.handle.is_none());
        let session = self.session.take().filter(|_| !(may_open && is_any_lost));
        let session = match (session, &self.closed) {
            (Some(session), _) => session,
            (None, Some(error)) if !may_open => return Err(error.clone()),
            (None, _) => {
                self.opened = Some(now);
                self.session_number += 1;
                Session::open(&self.library)?
            }
        };
        self.closed = None;
        let session = &*self.session.insert(session);
        if let Ok(version) = session.driver_version() {
            self.driver_version = version;
        }
        let count = session.device_count()?;
        self.is_incomplete = false;
        let mut seen = Vec::new();
        for index in 0..count {
            match identify(session, index) {
                Ok((handle, uuid)) => {
                    let known = self.known.iter_mut().find(|known| known.gpu.uuid == uuid);
                    let refreshed = match known {
                        Some(known) => {
                            known.refresh(session, index, handle);
                            Ok(())
                        }
                        None => Known::read(session, index, handle, &uuid).map(|known| self.known.push(known)),
                    };
                    match refreshed {
                        Ok(()) => seen.push(uuid),
                        Err(error) => {
                            self.is_incomplete = true;
                            self.failures.push(GpuFailure { index, error });
                        }
                    }
                }
                // The GPU that had this place is the one that does not answer.
                Err(error) => {
                    let taken = |known: &&mut Known| known.index == index && !seen.contains(&known.gpu.uuid);
                    if let Some(known) = self.known.iter_mut().find(taken) {
                        known.lose(&error, self.session_number);
                        seen.push(known.gpu.uuid.clone());
                    }
                    self.is_incomplete = true;
                    self.failures.push(GpuFailure { index, error });
                }
            }
        }
        forget_removed(&mut self.known, &seen);
        for known in &mut self.known {
            known.learn(session, self.session_number, now, &mut self.failures);
            if known.gpu.topology.is_none() {
                known.locate(session, tree, sys, &mut self.failures);
            }
        }
        Ok(())
    }

    /// Fetches the critical errors that the driver has reported since the last call, and does not wait for any.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn fetch_xids(&mut self, now: Timestamp) -> Result<Vec<XidEvent>, NvmlError> {
        let mut events = Vec::new();
        let Some(session) = &self.session else { return Ok(events) };
        while events.len() < XIDS_MAX
            && let Some(event) = session.next_xid()?
        {
            let by_handle = self.known.iter().position(|known| known.handle == Some(event.handle));
            let by_uuid = || {
                let uuid = session.uuid(event.handle).ok()?;
                self.known.iter().position(|known| known.gpu.uuid == uuid)
            };
            let known = by_handle.or_else(by_uuid).and_then(|at| self.known.get_mut(at));
            let is_critical = !super::is_application_fault(event.xid);
            let uuid = known.map(|known| {
                known.health.note_xid(event.xid, now);
                known.gpu.health = known.health.health();
                known.gpu.uuid.clone()
            });
            events.push(XidEvent { uuid, xid: event.xid, is_critical });
        }
        Ok(events)
    }

    /// Reads which processes use the GPUs. A GPU that fails is left out, and named among the [failures](Self::failures).
    ///
    /// What cannot be told apart by process (for there are drivers and modes of GPUs that cannot) is in the amounts of the whole GPU.
    pub fn sample(&mut self, now: Timestamp) -> &[GpuActivity] {
        self.failures.clear();
        let mut activities = std::mem::take(&mut self.activities);
        let mut used = 0;
        if let Some(session) = &self.session {
            for known in &self.known {
                let Some(handle) = known.handle else { continue };
                if used == activities.len() {
                    activities.push(GpuActivity::default());
                }
                let Some(activity) = activities.get_mut(used) else { break };
                match read_activity(session, handle, now, &mut self.buffers, activity) {
                    Ok(()) => {
                        activity.minor = known.gpu.minor;
                        used += 1;
                    }
                    Err(error) => self.failures.push(GpuFailure { index: known.index, error }),
                }
            }
        }
        activities.truncate(used);
        self.activities = activities;
        &self.activities
    }
}

/// Handle and UUID of a GPU.
fn identify(session: &Session, index: u32) -> Result<(Handle, String), NvmlError> {
    let handle = session.device(index)?;
    Ok((handle, session.uuid(handle)?))
}

/// What the driver does not list any more was removed from the machine; unless it was lost before, for new sessions do not list lost GPUs. One of those stays,
/// unless another GPU has its number.
fn forget_removed(known: &mut Vec<Known>, listed: &[String]) {
    let is_listed = |known: &Known| listed.contains(&known.gpu.uuid);
    let minors: Vec<u32> = known.iter().filter(|known| is_listed(known)).map(|known| known.gpu.minor).collect();
    let is_lost = |known: &Known| known.handle.is_none() && !minors.contains(&known.gpu.minor);
    known.retain(|known| is_listed(known) || is_lost(known));
}

fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

fn read_activity(
    session: &Session,
    handle: Handle,
    now: Timestamp,
    buffers: &mut Buffers,
    activity: &mut GpuActivity,
) -> Result<(), NvmlError> {
    let since_us = u64::try_from(now.as_microsecond()).unwrap_or(0).saturating_sub(SAMPLES_BACK_US);
    let listed = session.processes(handle, buffers);
    let sampled = session.process_samples(handle, since_us, buffers);
    activity.memory_bytes = if listed.is_err() { Some(session.memory(handle)?.used) } else { None };
    activity.core_percent = if listed.is_err() || sampled.is_err() { session.core_percent(handle).ok() } else { None };
    merged_processes(&buffers.processes, &buffers.samples, &mut activity.processes);
    Ok(())
}

impl Known {
    /// A GPU that is seen for the first time. Without its number or memory it cannot be given to pods.
    fn read(session: &Session, index: u32, handle: Handle, uuid: &str) -> Result<Self, NvmlError> {
        let gpu = Gpu {
            uuid: uuid.to_owned(),
            minor: session.minor(handle)?,
            model: String::new(),
            memory_bytes: session.memory(handle)?.total,
            topology: None,
            health: Health::Healthy,
        };
        Ok(Self { index, handle: Some(handle), gpu, health: GpuHealth::default(), watched_in: None })
    }

    /// A GPU that was seen before.
    fn refresh(&mut self, session: &Session, index: u32, handle: Handle) {
        self.index = index;
        self.handle = Some(handle);
        if let Ok(minor) = session.minor(handle) {
            self.gpu.minor = minor;
        }
    }

    /// It does not answer.
    fn lose(&mut self, error: &NvmlError, session_number: u64) {
        self.handle = None;
        self.health.note_lost(error, session_number);
    }

    /// What changes while the agent runs, and what was not known so far.
    fn learn(&mut self, session: &Session, session_number: u64, now: Timestamp, failures: &mut Vec<GpuFailure>) {
        let Some(handle) = self.handle else { return };
        let index = self.index;
        match session.memory(handle) {
            Ok(memory) => {
                self.gpu.memory_bytes = memory.total;
                self.health.note_answer(session_number);
            }
            Err(error) => {
                self.lose(&error, session_number);
                failures.push(GpuFailure { index, error });
                return;
            }
        }
        if self.gpu.model.is_empty() {
            match session.name(handle) {
                Ok(name) => self.gpu.model = name,
                Err(error) => failures.push(GpuFailure { index, error }),
            }
        }
        if self.watched_in != Some(session_number) {
            let watched = session.register_xids(handle);
            self.watched_in = Some(session_number).filter(|_| watched.is_ok());
            self.health.note_watched(watched);
        }
        if self.health.may_have_recovered(now) && session.needs_no_recovery(handle) == Ok(true) {
            self.health.note_recovered();
        }
    }

    fn locate(&mut self, session: &Session, tree: &dyn FileTree, sys: &Path, failures: &mut Vec<GpuFailure>) {
        let Some(handle) = self.handle else { return };
        match session.bus_id(handle) {
            Ok(bus_id) => self.gpu.topology = PciAddress::parse(&bus_id).map(|address| address.topology(tree, sys)),
            Err(error) => failures.push(GpuFailure { index: self.index, error }),
        }
    }
}
