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
/// A network card with remote direct memory access, in percent.
pub const RDMA: &str = "koordinator.sh/rdma";
/// A field-programmable gate array, in percent.
pub const FPGA: &str = "koordinator.sh/fpga";
/// A whole GPU by NVIDIA's name.
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";
/// A whole GPU by AMD's name.
pub const AMD_GPU: &str = "amd.com/gpu";
/// A whole accelerator by Hygon's name.
pub const HYGON_DCU: &str = "dcu.com/gpu";
/// CPUs of Huawei's NPU.
pub const HUAWEI_NPU_CPU: &str = "huawei.com/npu-cpu";
/// Video preprocessing of Huawei's NPU.
pub const HUAWEI_NPU_DVPP: &str = "huawei.com/npu-dvpp";
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

/// The name that stands for a resource in a class: production and pods without a class use it as it is, nothing stands for
/// resources other than `cpu` and `memory` in the other classes, and nothing at all in `koord-free`.
pub fn translate(class: Option<PriorityClass>, resource: &str) -> Option<&str> {
    if matches!(class, None | Some(PriorityClass::Prod)) {
        return Some(resource);
    }
    let names = native_in(class)?;
    match resource {
        "cpu" => Some(names.cpu),
        "memory" => Some(names.memory),
        _ => None,
    }
}

/// Deprecated names, each with the one that took its place.
pub const DEPRECATED: &[(&str, &str)] = &[
    ("koordinator.sh/batch-cpu", BATCH_CPU),
    ("koordinator.sh/batch-memory", BATCH_MEMORY),
    ("kubernetes.io/rdma", RDMA),
    ("kubernetes.io/fpga", FPGA),
    ("kubernetes.io/gpu", GPU),
    ("kubernetes.io/gpu-core", GPU_CORE),
    ("kubernetes.io/gpu-memory", GPU_MEMORY),
    ("kubernetes.io/gpu-memory-ratio", GPU_MEMORY_RATIO),
];

/// The name that took the place of a deprecated one, or the name itself.
pub fn current(resource: &str) -> &str {
    DEPRECATED.iter().find(|(old, _)| *old == resource).map_or(resource, |(_, new)| new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_and_memory_have_names_of_their_own_in_mid_and_batch() {
        use PriorityClass::{Batch, Free, Mid, Prod};
        for (class, resource, name) in [
            (None, "cpu", Some("cpu")),
            (Some(Prod), "nvidia.com/gpu", Some("nvidia.com/gpu")),
            (Some(Mid), "cpu", Some(MID_CPU)),
            (Some(Mid), "memory", Some(MID_MEMORY)),
            (Some(Batch), "cpu", Some(BATCH_CPU)),
            (Some(Batch), "memory", Some(BATCH_MEMORY)),
            (Some(Batch), "ephemeral-storage", None),
            (Some(Free), "cpu", None),
        ] {
            assert_eq!(translate(class, resource), name, "{class:?} {resource}");
        }
    }

    #[test]
    fn deprecated_names_have_successors() {
        assert_eq!(current("koordinator.sh/batch-cpu"), BATCH_CPU);
        assert_eq!(current("kubernetes.io/gpu"), GPU);
        assert_eq!(current("cpu"), "cpu");
    }
}
