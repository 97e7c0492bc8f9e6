//! The functions of the library.

// Each pointer is what the caller passes by the contract of the interface; names are the interface's.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::not_unsafe_ptr_arg_deref)]

use std::{
    ffi::{CStr, c_char, c_void},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::scenario::{Code, Event, Gpu, Scenario};

const SUCCESS: Code = 0;
const UNINITIALIZED: Code = 1;
const INVALID_ARGUMENT: Code = 2;
const NOT_SUPPORTED: Code = 3;
const NOT_FOUND: Code = 6;
const INSUFFICIENT_SIZE: Code = 7;
const TIMEOUT: Code = 10;
const UNKNOWN: Code = 999;
const RECOVERY_ACTION_FIELD: u32 = 230;
const UNSIGNED_INT: u32 = 1;

#[derive(Default)]
struct State {
    scenario: Scenario,
    sessions: i32,
    /// GPUs whose events are registered.
    registered: Vec<usize>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what a function does unless a fault is set or there is no session.
fn call(function: &str, run: impl FnOnce(&mut State) -> Code) -> Code {
    let mut state = lock();
    let state = state.get_or_insert_default();
    match state.scenario.faults.get(function) {
        Some(code) => *code,
        None if state.sessions == 0 => UNINITIALIZED,
        None => run(state),
    }
}

/// The same for a function of one GPU.
fn call_gpu(function: &str, device: *mut c_void, run: impl FnOnce(&Gpu) -> Code) -> Code {
    call(function, |state| {
        let gpu = (device as usize).checked_sub(1).and_then(|index| state.scenario.gpus.get(index));
        match gpu {
            None => INVALID_ARGUMENT,
            Some(gpu) => gpu.faults.get(function).or_else(|| gpu.faults.get("*")).copied().unwrap_or_else(|| run(gpu)),
        }
    })
}

unsafe fn write_text(text: &str, buffer: *mut c_char, length: u32) -> Code {
    if text.len() >= length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: the caller passes a buffer of this length, and the text with its end is not longer.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, text.len());
        *buffer.add(text.len()) = 0;
    }
    SUCCESS
}

/// Fills an array of the caller, or says how long it would have to be.
unsafe fn write_list<T>(items: &[T], array: *mut T, length: *mut u32) -> Code {
    // SAFETY: the caller passes an array of `*length` items.
    unsafe {
        let capacity = *length as usize;
        *length = items.len() as u32;
        if items.len() > capacity {
            return INSUFFICIENT_SIZE;
        }
        if !items.is_empty() {
            std::ptr::copy_nonoverlapping(items.as_ptr(), array, items.len());
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fake_nvml_set(json: *const c_char) -> i32 {
    // SAFETY: the test passes a text with its end.
    let text = unsafe { CStr::from_ptr(json) };
    match serde_json::from_slice(text.to_bytes()) {
        Ok(scenario) => {
            lock().get_or_insert_default().scenario = scenario;
            0
        }
        Err(_) => 1,
    }
}

#[unsafe(no_mangle)]
extern "C" fn fake_nvml_sessions() -> i32 {
    lock().get_or_insert_default().sessions
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Code {
    let mut state = lock();
    let state = state.get_or_insert_default();
    if let Some(code) = state.scenario.faults.get("nvmlInit_v2") {
        return *code;
    }
    state.sessions += 1;
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Code {
    call("nvmlShutdown", |state| {
        state.sessions -= 1;
        state.registered.clear();
        SUCCESS
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(buffer: *mut c_char, length: u32) -> Code {
    call("nvmlSystemGetDriverVersion", |state| {
        // SAFETY: as the interface says.
        unsafe { write_text(&state.scenario.driver_version, buffer, length) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut u32) -> Code {
    call("nvmlDeviceGetCount_v2", |state| {
        // SAFETY: as the interface says.
        unsafe { *count = state.scenario.gpus.len() as u32 };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: *mut *mut c_void) -> Code {
    let handle = (index as usize + 1) as *mut c_void;
    call_gpu("nvmlDeviceGetHandleByIndex_v2", handle, |_| {
        // SAFETY: as the interface says.
        unsafe { *device = handle };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUUID(device: *mut c_void, buffer: *mut c_char, length: u32) -> Code {
    // SAFETY: as the interface says.
    call_gpu("nvmlDeviceGetUUID", device, |gpu| unsafe { write_text(&gpu.uuid, buffer, length) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetName(device: *mut c_void, buffer: *mut c_char, length: u32) -> Code {
    // SAFETY: as the interface says.
    call_gpu("nvmlDeviceGetName", device, |gpu| unsafe { write_text(&gpu.name, buffer, length) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMinorNumber(device: *mut c_void, minor: *mut u32) -> Code {
    call_gpu("nvmlDeviceGetMinorNumber", device, |gpu| {
        // SAFETY: as the interface says.
        unsafe { *minor = gpu.minor };
        SUCCESS
    })
}

#[repr(C)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: *mut c_void, memory: *mut Memory) -> Code {
    call_gpu("nvmlDeviceGetMemoryInfo", device, |gpu| {
        let (total, used) = (gpu.memory_total_bytes, gpu.memory_used_bytes);
        // SAFETY: as the interface says.
        unsafe { *memory = Memory { total, free: total.saturating_sub(used), used } };
        SUCCESS
    })
}

#[repr(C)]
struct Utilization {
    gpu: u32,
    memory: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: *mut c_void, utilization: *mut Utilization) -> Code {
    call_gpu("nvmlDeviceGetUtilizationRates", device, |gpu| {
        // SAFETY: as the interface says.
        unsafe { *utilization = Utilization { gpu: gpu.utilization, memory: 0 } };
        SUCCESS
    })
}

#[repr(C)]
struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
    sub_system_id: u32,
    bus_id: [c_char; 32],
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: *mut c_void, info: *mut PciInfo) -> Code {
    call_gpu("nvmlDeviceGetPciInfo_v3", device, |gpu| {
        // SAFETY: as the interface says.
        unsafe { write_text(&gpu.bus_id, (*info).bus_id.as_mut_ptr(), 32) }
    })
}

#[repr(C)]
struct ProcessInfo {
    pid: u32,
    used_memory: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// Of drivers before 450.
#[repr(C)]
struct OldProcessInfo {
    pid: u32,
    used_memory: u64,
}

const NOT_AVAILABLE: u64 = u64::MAX;

unsafe fn processes(function: &str, device: *mut c_void, count: *mut u32, array: *mut ProcessInfo) -> Code {
    call_gpu(function, device, |gpu| {
        let infos = gpu.processes.iter().map(|process| ProcessInfo {
            pid: process.pid,
            used_memory: process.memory_bytes.unwrap_or(NOT_AVAILABLE),
            gpu_instance: u32::MAX,
            compute_instance: u32::MAX,
        });
        // SAFETY: as the interface says.
        unsafe { write_list(&infos.collect::<Vec<_>>(), array, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: *mut c_void,
    count: *mut u32,
    array: *mut ProcessInfo,
) -> Code {
    // SAFETY: as the interface says.
    unsafe { processes("nvmlDeviceGetComputeRunningProcesses_v3", device, count, array) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v2(
    device: *mut c_void,
    count: *mut u32,
    array: *mut ProcessInfo,
) -> Code {
    // SAFETY: as the interface says.
    unsafe { processes("nvmlDeviceGetComputeRunningProcesses_v2", device, count, array) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses(
    device: *mut c_void,
    count: *mut u32,
    array: *mut OldProcessInfo,
) -> Code {
    call_gpu("nvmlDeviceGetComputeRunningProcesses", device, |gpu| {
        let infos = gpu.processes.iter().map(|process| OldProcessInfo {
            pid: process.pid,
            used_memory: process.memory_bytes.unwrap_or(NOT_AVAILABLE),
        });
        // SAFETY: as the interface says.
        unsafe { write_list(&infos.collect::<Vec<_>>(), array, count) }
    })
}

#[repr(C)]
struct UtilizationSample {
    pid: u32,
    time_us: u64,
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: *mut c_void,
    array: *mut UtilizationSample,
    count: *mut u32,
    last_seen_us: u64,
) -> Code {
    call_gpu("nvmlDeviceGetProcessUtilization", device, |gpu| {
        let samples = gpu.samples.iter().filter(|sample| sample.time_us > last_seen_us);
        let samples = samples.map(|sample| UtilizationSample {
            pid: sample.pid,
            time_us: sample.time_us,
            sm: sample.core_percent,
            memory: 0,
            encoder: 0,
            decoder: 0,
        });
        let samples: Vec<_> = samples.collect();
        if samples.is_empty() {
            return NOT_FOUND;
        }
        // SAFETY: as the interface says.
        unsafe { write_list(&samples, array, count) }
    })
}

#[repr(C)]
struct FieldValue {
    field: u32,
    scope: u32,
    time: i64,
    latency: i64,
    kind: u32,
    code: Code,
    value: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFieldValues(device: *mut c_void, count: i32, values: *mut FieldValue) -> Code {
    call_gpu("nvmlDeviceGetFieldValues", device, |gpu| {
        // SAFETY: as the interface says.
        let values = unsafe { std::slice::from_raw_parts_mut(values, usize::try_from(count).unwrap_or(0)) };
        for value in values {
            match gpu.recovery_action.filter(|_| value.field == RECOVERY_ACTION_FIELD) {
                // Only the part of the union that belongs to the kind is written.
                Some(action) => {
                    (value.code, value.kind) = (SUCCESS, UNSIGNED_INT);
                    // SAFETY: the union is larger than its part.
                    unsafe { std::ptr::from_mut(&mut value.value).cast::<u32>().write(action) };
                }
                None => value.code = NOT_SUPPORTED,
            }
        }
        SUCCESS
    })
}

/// The only set of events.
const EVENT_SET: *mut c_void = std::ptr::without_provenance_mut(0x5e7);

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetCreate(set: *mut *mut c_void) -> Code {
    call("nvmlEventSetCreate", |_| {
        // SAFETY: as the interface says.
        unsafe { *set = EVENT_SET };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: *mut c_void) -> Code {
    call("nvmlEventSetFree", |_| if set == EVENT_SET { SUCCESS } else { INVALID_ARGUMENT })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetSupportedEventTypes(device: *mut c_void, types: *mut u64) -> Code {
    call_gpu("nvmlDeviceGetSupportedEventTypes", device, |gpu| {
        // SAFETY: as the interface says.
        unsafe { *types = gpu.event_types };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(device: *mut c_void, types: u64, set: *mut c_void) -> Code {
    let code = call_gpu("nvmlDeviceRegisterEvents", device, |gpu| match () {
        () if set != EVENT_SET => INVALID_ARGUMENT,
        () if types & !gpu.event_types != 0 => NOT_SUPPORTED,
        () => SUCCESS,
    });
    if code == SUCCESS {
        lock().get_or_insert_default().registered.push(device as usize - 1);
    }
    code
}

#[repr(C)]
struct EventData {
    device: *mut c_void,
    kind: u64,
    data: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetWait_v2(set: *mut c_void, data: *mut EventData, timeout_ms: u32) -> Code {
    call("nvmlEventSetWait_v2", |state| {
        let State { scenario, registered, .. } = state;
        let next = scenario.events.iter().position(|event| registered.contains(&event.gpu));
        let Some(next) = next.filter(|_| set == EVENT_SET) else {
            // Whoever waits would block: the answer is no plain timeout then.
            return if timeout_ms == 0 { TIMEOUT } else { UNKNOWN };
        };
        let Event { gpu, xid } = scenario.events.remove(next);
        let device = (gpu + 1) as *mut c_void;
        // SAFETY: as the interface says.
        unsafe { *data = EventData { device, kind: 8, data: xid, gpu_instance: u32::MAX, compute_instance: u32::MAX } };
        SUCCESS
    })
}
