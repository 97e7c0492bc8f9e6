//! Structures and numbers of the interface, from NVIDIA's documentation of it.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

pub(super) type Code = c_uint;
/// A GPU; the pointer is the library's.
pub(super) type DevicePointer = *mut c_void;
pub(super) type EventSetPointer = *mut c_void;

/// Kind of event: critical errors by their XID.
pub(super) const XID_EVENT: c_ulonglong = 8;
/// Field: what NVIDIA recommends to do with the GPU.
pub(super) const RECOVERY_ACTION_FIELD: c_uint = 230;
/// No action is needed.
pub(super) const RECOVERY_NONE: c_uint = 0;
/// What the library writes where it does not know an amount of memory.
pub(super) const NOT_AVAILABLE: c_ulonglong = c_ulonglong::MAX;

/// Bytes of memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    pub(super) total: c_ulonglong,
    pub(super) free: c_ulonglong,
    pub(super) used: c_ulonglong,
}

/// Percent of the time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utilization {
    pub(super) gpu: c_uint,
    pub(super) memory: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    sub_system_id: c_uint,
    /// A text with its end.
    pub(super) bus_id: [c_char; 32],
}

/// A process, by the second and third variant of the function.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessInfo {
    pub(super) pid: c_uint,
    pub(super) used_memory: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// A process, by the first variant, which drivers before 450 have.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OldProcessInfo {
    pub(super) pid: c_uint,
    pub(super) used_memory: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UtilizationSample {
    pub(super) pid: c_uint,
    pub(super) time_us: c_ulonglong,
    /// Percent of the cores.
    pub(super) cores: c_uint,
    memory: c_uint,
    encoder: c_uint,
    decoder: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldValue {
    pub(super) field: c_uint,
    scope: c_uint,
    time: i64,
    latency: i64,
    kind: c_uint,
    pub(super) code: Code,
    /// A union of 8 bytes; of an unsigned int the first four.
    pub(super) value: [c_uint; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct EventData {
    pub(super) device: DevicePointer,
    pub(super) kind: c_ulonglong,
    /// The XID.
    pub(super) data: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

impl FieldValue {
    pub(super) fn of(field: c_uint) -> Self {
        Self { field, ..Self::default() }
    }
}

impl Default for EventData {
    fn default() -> Self {
        Self { device: std::ptr::null_mut(), kind: 0, data: 0, gpu_instance: 0, compute_instance: 0 }
    }
}

pub(super) type Plain = unsafe extern "C" fn() -> Code;
pub(super) type SystemText = unsafe extern "C" fn(*mut c_char, c_uint) -> Code;
pub(super) type SystemNumber = unsafe extern "C" fn(*mut c_uint) -> Code;
pub(super) type DeviceByIndex = unsafe extern "C" fn(c_uint, *mut DevicePointer) -> Code;
pub(super) type DeviceText = unsafe extern "C" fn(DevicePointer, *mut c_char, c_uint) -> Code;
/// Fills one value about a GPU.
pub(super) type DeviceValue<T> = unsafe extern "C" fn(DevicePointer, *mut T) -> Code;
/// Fills an array; the number is its length before, and how many there are afterwards.
pub(super) type DeviceArray<T> = unsafe extern "C" fn(DevicePointer, *mut c_uint, *mut T) -> Code;
pub(super) type DeviceSamples =
    unsafe extern "C" fn(DevicePointer, *mut UtilizationSample, *mut c_uint, c_ulonglong) -> Code;
pub(super) type DeviceFields = unsafe extern "C" fn(DevicePointer, c_int, *mut FieldValue) -> Code;
pub(super) type CreateEventSet = unsafe extern "C" fn(*mut EventSetPointer) -> Code;
pub(super) type FreeEventSet = unsafe extern "C" fn(EventSetPointer) -> Code;
pub(super) type RegisterEvents = unsafe extern "C" fn(DevicePointer, c_ulonglong, EventSetPointer) -> Code;
pub(super) type WaitForEvent = unsafe extern "C" fn(EventSetPointer, *mut EventData, c_uint) -> Code;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes on 64-bit machines, as a C compiler lays the structures out.
    #[test]
    fn structures_have_the_sizes_of_the_interface() {
        let sizes = [
            size_of::<Memory>(),
            size_of::<Utilization>(),
            size_of::<PciInfo>(),
            size_of::<ProcessInfo>(),
            size_of::<OldProcessInfo>(),
            size_of::<UtilizationSample>(),
            size_of::<FieldValue>(),
            size_of::<EventData>(),
        ];
        assert_eq!(sizes, [24, 8, 68, 24, 16, 32, 40, 32]);
    }
}
