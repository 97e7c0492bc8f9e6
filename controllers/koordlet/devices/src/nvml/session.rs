//! A session with the library: safe calls, one for each function that is used.
//!
//! Calls of C are unsafe as such. Each passes pointers to values or arrays that live until it returns, with the length of arrays, to a function of the
//! signature that [`Functions::load`] states.
#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_uint},
    path::Path,
};

use super::{
    abi::{
        DevicePointer, EventData, EventSetPointer, FieldValue, Memory, NOT_AVAILABLE, OldProcessInfo, PciInfo,
        ProcessInfo, RECOVERY_ACTION_FIELD, RECOVERY_NONE, Utilization, UtilizationSample, XID_EVENT,
    },
    error::{NvmlError, ReturnCode},
    library::{Function, Functions},
};
use crate::usage::{ProcessMemory, ProcessSample};

/// A loaded and initialized library. It ends with its value.
#[derive(Debug)]
pub(super) struct Session {
    functions: Functions,
    /// Where XIDs arrive; the error where they do not.
    events: Result<EventSet, NvmlError>,
}

/// A GPU of a session. It is not used after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(DevicePointer);

#[derive(Clone, Copy, Debug)]
struct EventSet(EventSetPointer);

// SAFETY: the library may be called from any thread, by NVIDIA's documentation, and the pointers are its own names of things.
unsafe impl Send for Handle {}
// SAFETY: the same.
unsafe impl Send for EventSet {}

/// An XID of a GPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Xid {
    pub(super) handle: Handle,
    pub(super) xid: u64,
}

/// Lists that are used again from round to round.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    infos: Vec<ProcessInfo>,
    old_infos: Vec<OldProcessInfo>,
    utilizations: Vec<UtilizationSample>,
    /// What [`Session::processes`] found last.
    pub(super) processes: Vec<ProcessMemory>,
    /// What [`Session::process_samples`] found last.
    pub(super) samples: Vec<ProcessSample>,
}

/// The longest text that the library writes is 96 bytes.
const TEXT_BYTES: usize = 128;
/// Most processes of one GPU that are read.
const PROCESSES_MAX: usize = 65_536;
const PROCESSES_MIN: usize = 64;

impl Session {
    /// Loads and initializes the library.
    pub(super) fn open(library: &Path) -> Result<Self, NvmlError> {
        let functions = Functions::load(library)?;
        functions.init.call(|init| unsafe { init() })?;
        let mut set = std::ptr::null_mut();
        let created = functions.create_event_set.call(|create| unsafe { create(&raw mut set) });
        Ok(Self { functions, events: created.map(|()| EventSet(set)) })
    }

    pub(super) fn driver_version(&self) -> Result<String, NvmlError> {
        text(|buffer, length| {
            self.functions.driver_version.call(|driver_version| unsafe { driver_version(buffer, length) })
        })
    }

    pub(super) fn device_count(&self) -> Result<u32, NvmlError> {
        let mut count = 0;
        self.functions.device_count.call(|device_count| unsafe { device_count(&raw mut count) })?;
        Ok(count)
    }

    pub(super) fn device(&self, index: u32) -> Result<Handle, NvmlError> {
        let mut device = std::ptr::null_mut();
        self.functions.device_by_index.call(|by_index| unsafe { by_index(index, &raw mut device) })?;
        Ok(Handle(device))
    }

    pub(super) fn uuid(&self, Handle(device): Handle) -> Result<String, NvmlError> {
        text(|buffer, length| self.functions.uuid.call(|uuid| unsafe { uuid(device, buffer, length) }))
    }

    pub(super) fn name(&self, Handle(device): Handle) -> Result<String, NvmlError> {
        text(|buffer, length| self.functions.name.call(|name| unsafe { name(device, buffer, length) }))
    }

    pub(super) fn minor(&self, Handle(device): Handle) -> Result<u32, NvmlError> {
        let mut minor = 0;
        self.functions.minor.call(|get| unsafe { get(device, &raw mut minor) })?;
        Ok(minor)
    }

    pub(super) fn memory(&self, Handle(device): Handle) -> Result<Memory, NvmlError> {
        let mut memory = Memory::default();
        self.functions.memory.call(|get| unsafe { get(device, &raw mut memory) })?;
        Ok(memory)
    }

    /// Percent of the time in which the GPU's cores worked.
    pub(super) fn core_percent(&self, Handle(device): Handle) -> Result<u32, NvmlError> {
        let mut utilization = Utilization::default();
        self.functions.utilization.call(|get| unsafe { get(device, &raw mut utilization) })?;
        Ok(utilization.gpu)
    }

    /// The address on the PCI bus, as NVIDIA writes it.
    pub(super) fn bus_id(&self, Handle(device): Handle) -> Result<String, NvmlError> {
        let mut info = PciInfo::default();
        self.functions.pci_info.call(|get| unsafe { get(device, &raw mut info) })?;
        Ok(string_of(&info.bus_id))
    }

    /// Whether the driver needs nothing to be done with the GPU after what happened to it. Drivers before 565 do not say.
    pub(super) fn needs_no_recovery(&self, Handle(device): Handle) -> Result<bool, NvmlError> {
        let mut value = FieldValue::of(RECOVERY_ACTION_FIELD);
        self.functions.field_values.call(|get| unsafe { get(device, 1, &raw mut value) })?;
        match ReturnCode(value.code) {
            ReturnCode::SUCCESS => Ok(value.value.first() == Some(&RECOVERY_NONE)),
            code => Err(NvmlError::Call { function: "nvmlDeviceGetFieldValues", code }),
        }
    }

    /// The processes that compute on the GPU.
    pub(super) fn processes(&self, Handle(device): Handle, buffers: &mut Buffers) -> Result<(), NvmlError> {
        let Buffers { infos, old_infos, processes, .. } = buffers;
        let process = |pid, used_memory| ProcessMemory {
            pid,
            memory_bytes: if used_memory == NOT_AVAILABLE { 0 } else { used_memory },
        };
        processes.clear();
        for variant in &self.functions.processes {
            let filled = array(variant, infos, |get, array, count| unsafe { get(device, count, array) });
            match filled {
                Err(error) if error.code() == Some(ReturnCode::FUNCTION_NOT_FOUND) => {}
                filled => {
                    processes.extend(filled?.iter().map(|info| process(info.pid, info.used_memory)));
                    return Ok(());
                }
            }
        }
        let oldest = &self.functions.old_processes;
        let filled = array(oldest, old_infos, |get, array, count| unsafe { get(device, count, array) })?;
        processes.extend(filled.iter().map(|info| process(info.pid, info.used_memory)));
        Ok(())
    }

    /// What processes used of the GPU's cores, in samples that are younger than a time; none where there are no such samples.
    pub(super) fn process_samples(
        &self,
        Handle(device): Handle,
        since_us: u64,
        buffers: &mut Buffers,
    ) -> Result<(), NvmlError> {
        let Buffers { utilizations, samples, .. } = buffers;
        samples.clear();
        let function = &self.functions.process_utilization;
        let filled = array(function, utilizations, |get, array, count| unsafe { get(device, array, count, since_us) });
        match filled {
            Err(error) if error.code() == Some(ReturnCode::NOT_FOUND) => Ok(()),
            filled => {
                let sample = |sample: &UtilizationSample| ProcessSample {
                    pid: sample.pid,
                    time_us: sample.time_us,
                    core_percent: sample.cores,
                };
                samples.extend(filled?.iter().map(sample));
                Ok(())
            }
        }
    }

    /// From now on XIDs of the GPU arrive.
    pub(super) fn register_xids(&self, Handle(device): Handle) -> Result<(), NvmlError> {
        let EventSet(set) = self.events.clone()?;
        let mut supported = 0;
        self.functions.supported_events.call(|get| unsafe { get(device, &raw mut supported) })?;
        if supported & XID_EVENT == 0 {
            let function = "nvmlDeviceGetSupportedEventTypes";
            return Err(NvmlError::Call { function, code: ReturnCode::NOT_SUPPORTED });
        }
        self.functions.register_events.call(|register| unsafe { register(device, XID_EVENT, set) })
    }

    /// Why XIDs of no GPU arrive, where that is so.
    pub(super) fn events_error(&self) -> Option<&NvmlError> {
        self.events.as_ref().err()
    }

    /// The next XID that has arrived. It does not wait for one.
    pub(super) fn next_xid(&self) -> Result<Option<Xid>, NvmlError> {
        let Ok(EventSet(set)) = self.events else { return Ok(None) };
        loop {
            let mut event = EventData::default();
            match self.functions.wait_for_event.call(|wait| unsafe { wait(set, &raw mut event, 0) }) {
                Ok(()) if event.kind & XID_EVENT == 0 => {}
                Ok(()) => return Ok(Some(Xid { handle: Handle(event.device), xid: event.data })),
                Err(error) if error.code() == Some(ReturnCode::TIMEOUT) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Session {
    /// What fails here concerns nobody: the session is over.
    fn drop(&mut self) {
        if let Ok(EventSet(set)) = self.events {
            _ = self.functions.free_event_set.call(|free| unsafe { free(set) });
        }
        _ = self.functions.shutdown.call(|shutdown| unsafe { shutdown() });
    }
}

/// A text that the library writes into a buffer of a given length.
fn text(write: impl FnOnce(*mut c_char, c_uint) -> Result<(), NvmlError>) -> Result<String, NvmlError> {
    let mut buffer: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
    write(buffer.as_mut_ptr(), TEXT_BYTES as c_uint)?;
    Ok(string_of(&buffer))
}

/// The text up to its end, or the whole buffer.
fn string_of(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An array that the library fills. It says how long the array would have to be, which may have changed at the next call.
fn array<'a, F: Copy, T: Copy + Default>(
    function: &Function<F>,
    items: &'a mut Vec<T>,
    mut fill: impl FnMut(F, *mut T, *mut c_uint) -> c_uint,
) -> Result<&'a [T], NvmlError> {
    if items.is_empty() {
        items.resize(PROCESSES_MIN, T::default());
    }
    loop {
        let mut count = items.len() as c_uint;
        let filled = function.call(|function| fill(function, items.as_mut_ptr(), &raw mut count));
        match filled {
            Ok(()) => return Ok(items.get(..count as usize).unwrap_or(items)),
            Err(error) if error.code() == Some(ReturnCode::INSUFFICIENT_SIZE) && items.len() < PROCESSES_MAX => {
                let length = (count as usize).max(items.len() * 2).min(PROCESSES_MAX);
                items.resize(length, T::default());
            }
            Err(error) => return Err(error),
        }
    }
}
