//! Names of extended resources, and what stands for CPU and memory in each priority class.

use crate::priority::PriorityClass;

/// Milli-cores that others request and do not use, as a whole number.
pub const BATCH_CPU: &str = "kubernetes.io/batch-cpu";
/// Bytes that others request and do not use.
pub const BATCH_MEMORY: &str = "kubernetes.io/batch-memory";
/// Milli-cores that are predicted to stay idle, as a whole number.
pub const MID_CPU: &str = "kubernetes.io/mid-cpu";
/// Bytes that are predicted to stay idle.
pub const MID_MEMORY: &str = "kubernetes.io/mid-memory";
/// A whole or shared GPU, in percent.
pub const GPU: &str = "koordinator.sh/gpu";
/// How many GPUs are shared.
pub const GPU_SHARED: &str = "koordinator.sh/gpu.shared";
/// Share of a GPU's cores, in percent.
pub const GPU_CORE: &str = "koordinator.sh/gpu-core";
/// Bytes of a GPU's memory.
pub const GPU_MEMORY: &str = "koordinator.sh/gpu-memory";
/// Share of a GPU's memory, in percent.
pub const GPU_MEMORY_RATIO: &str = "koordinator.sh/gpu-memory-ratio";
/// Cores of Huawei's NPU.
pub const HUAWEI_NPU_CORE: &str = "huawei.com/npu-core";

/// What stands for `cpu` and `memory` in a class. Production and pods without a class use them as they are, and
/// nothing stands for them in `koord-free`.
pub fn native_in(class: Option<PriorityClass>) -> Option<NativeNames> {
    match class {
        Some(PriorityClass::Batch) => Some(NativeNames { cpu: BATCH_CPU, memory: BATCH_MEMORY }),
        Some(PriorityClass::Mid) => Some(NativeNames { cpu: MID_CPU, memory: MID_MEMORY }),
        Some(PriorityClass::Prod | PriorityClass::Free) | None => None,
    }
}

/// The names that stand for `cpu` and `memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeNames {
    /// In milli-cores.
    pub cpu: &'static str,
    /// In bytes.
    pub memory: &'static str,
}
