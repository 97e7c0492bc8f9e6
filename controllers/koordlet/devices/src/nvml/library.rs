//! The library and its functions, as the loader finds them.

use std::{error::Error, path::Path};

use libloading::Library;

use super::{
    abi::{
        Code, CreateEventSet, DeviceArray, DeviceByIndex, DeviceFields, DeviceSamples, DeviceText, DeviceValue,
        FreeEventSet, Memory, OldProcessInfo, PciInfo, Plain, ProcessInfo, RegisterEvents, SystemNumber, SystemText,
        Utilization, WaitForEvent,
    },
    error::{NvmlError, ReturnCode},
};

/// A function by its name; absent in drivers that do not have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<F> {
    name: &'static str,
    found: Option<F>,
}

/// All functions that are used. They belong to the library, which is kept beside them and unloaded after them.
#[derive(Debug)]
pub(super) struct Functions {
    pub(super) init: Function<Plain>,
    pub(super) shutdown: Function<Plain>,
    pub(super) driver_version: Function<SystemText>,
    pub(super) device_count: Function<SystemNumber>,
    pub(super) device_by_index: Function<DeviceByIndex>,
    pub(super) uuid: Function<DeviceText>,
    pub(super) name: Function<DeviceText>,
    pub(super) minor: Function<DeviceValue<u32>>,
    pub(super) memory: Function<DeviceValue<Memory>>,
    pub(super) utilization: Function<DeviceValue<Utilization>>,
    pub(super) pci_info: Function<DeviceValue<PciInfo>>,
    /// Variants 3 and 2, which fill the same structure.
    pub(super) processes: [Function<DeviceArray<ProcessInfo>>; 2],
    pub(super) old_processes: Function<DeviceArray<OldProcessInfo>>,
    pub(super) process_utilization: Function<DeviceSamples>,
    pub(super) field_values: Function<DeviceFields>,
    pub(super) create_event_set: Function<CreateEventSet>,
    pub(super) free_event_set: Function<FreeEventSet>,
    pub(super) supported_events: Function<DeviceValue<u64>>,
    pub(super) register_events: Function<RegisterEvents>,
    pub(super) wait_for_event: Function<WaitForEvent>,
    _library: Library,
}

// === impl Function ===

impl<F: Copy> Function<F> {
    /// Calls the function, if there is one.
    pub(super) fn call(&self, call: impl FnOnce(F) -> Code) -> Result<(), NvmlError> {
        let Self { name: function, found } = *self;
        let found = found.ok_or(NvmlError::NoFunction { function })?;
        match ReturnCode(call(found)) {
            ReturnCode::SUCCESS => Ok(()),
            code => Err(NvmlError::Call { function, code }),
        }
    }
}

// === impl Functions ===

impl Functions {
    /// Loads the library and looks its functions up.
    #[allow(unsafe_code)]
    pub(super) fn load(library: &Path) -> Result<Self, NvmlError> {
        if cfg!(all(target_os = "linux", target_feature = "crt-static")) {
            return Err(NvmlError::Static);
        }
        // SAFETY: what NVIDIA's library does when it is loaded and unloaded does not touch the memory of this program. Whoever can put another file in its
        // place is root on the node.
        let library = unsafe { Library::new(library) }.map_err(|error| {
            // The loader's words are behind the error.
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            NvmlError::Load { reason }
        })?;
        // SAFETY: each name below goes with the signature of its field, from NVIDIA's documentation of the interface; variants of a function that fill
        // another structure have another name.
        unsafe {
            Ok(Self {
                init: function(&library, "nvmlInit_v2"),
                shutdown: function(&library, "nvmlShutdown"),
                driver_version: function(&library, "nvmlSystemGetDriverVersion"),
                device_count: function(&library, "nvmlDeviceGetCount_v2"),
                device_by_index: function(&library, "nvmlDeviceGetHandleByIndex_v2"),
                uuid: function(&library, "nvmlDeviceGetUUID"),
                name: function(&library, "nvmlDeviceGetName"),
                minor: function(&library, "nvmlDeviceGetMinorNumber"),
                memory: function(&library, "nvmlDeviceGetMemoryInfo"),
                utilization: function(&library, "nvmlDeviceGetUtilizationRates"),
                pci_info: function(&library, "nvmlDeviceGetPciInfo_v3"),
                processes: [
                    function(&library, "nvmlDeviceGetComputeRunningProcesses_v3"),
                    function(&library, "nvmlDeviceGetComputeRunningProcesses_v2"),
                ],
                old_processes: function(&library, "nvmlDeviceGetComputeRunningProcesses"),
                process_utilization: function(&library, "nvmlDeviceGetProcessUtilization"),
                field_values: function(&library, "nvmlDeviceGetFieldValues"),
                create_event_set: function(&library, "nvmlEventSetCreate"),
                free_event_set: function(&library, "nvmlEventSetFree"),
                supported_events: function(&library, "nvmlDeviceGetSupportedEventTypes"),
                register_events: function(&library, "nvmlDeviceRegisterEvents"),
                wait_for_event: function(&library, "nvmlEventSetWait_v2"),
                _library: library,
            })
        }
    }
}

/// Looks a function up.
///
/// # Safety
///
/// The function of this name has the signature `F`, and is not called after the library is unloaded.
#[allow(unsafe_code)]
unsafe fn function<F: Copy>(library: &Library, name: &'static str) -> Function<F> {
    // SAFETY: as the caller says.
    let found = unsafe { library.get::<F>(name) }.ok().map(|symbol| *symbol);
    Function { name, found }
}
