//! Which resources a pod may request together, and what they mean (`spec/scheduler.md` 3F.2).

use koord_resource::ResourceList;
use koord_types::resource_names::{
    AMD_GPU, FPGA, GPU, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, GPU_SHARED, HUAWEI_NPU_CORE, HUAWEI_NPU_CPU,
    HUAWEI_NPU_DVPP, HYGON_DCU, NVIDIA_GPU, RDMA,
};

use super::amounts::{DeviceAmounts, DeviceResource};

/// Resources of GPUs, in the order in which the combinations below name them.
const OF_GPUS: [&str; 11] = [
    NVIDIA_GPU,
    AMD_GPU,
    HYGON_DCU,
    GPU,
    GPU_SHARED,
    GPU_CORE,
    GPU_MEMORY,
    GPU_MEMORY_RATIO,
    HUAWEI_NPU_CORE,
    HUAWEI_NPU_CPU,
    HUAWEI_NPU_DVPP,
];

/// Why a request for devices makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// More than one device, and not a whole number of them.
    #[error("invalid resource unit {name}: {amount}")]
    Unit { name: &'static str, amount: i64 },
    /// Resources that do not go together, or amounts of them that do not.
    #[error("invalid resource device requests: [{}]", .0.join(" "))]
    Combination(Vec<&'static str>),
}

/// GPUs that a pod requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedGpus {
    pub each: DeviceAmounts,
    /// How many.
    pub count: usize,
    /// Whether others may have the rest of them.
    pub is_shared: bool,
}

/// The GPUs that a pod requests; none where it requests none.
pub fn gpus(requests: &ResourceList) -> Result<Option<RequestedGpus>, InvalidRequest> {
    let place = |name: &str| OF_GPUS.iter().position(|known| *known == name);
    let mut amounts = [0; OF_GPUS.len()];
    for (name, amount) in requests {
        if let Some(at) = place(name) {
            amounts[at] = amount.value();
        }
    }
    let amount = |name: &str| place(name).map_or(0, |at| amounts[at]);
    let names = OF_GPUS.into_iter().zip(amounts).filter(|(_, amount)| *amount != 0);
    let names: Vec<&'static str> = names.map(|(name, _)| name).collect();
    if names.is_empty() {
        return Ok(None);
    }
    check_unit(GPU, amount(GPU))?;
    let are_percentages = || [GPU_CORE, GPU_MEMORY_RATIO].into_iter().all(|name| is_percentage(amount(name)));
    let divides = |name| {
        let shared = amount(GPU_SHARED);
        amount(name).checked_rem(shared) == Some(0) && amount(name).checked_div(shared).is_some_and(|each| each <= 100)
    };
    let is_valid = match names[..] {
        [NVIDIA_GPU | AMD_GPU | HYGON_DCU | GPU] => true,
        [GPU_MEMORY | GPU_MEMORY_RATIO]
        | [GPU_CORE, GPU_MEMORY | GPU_MEMORY_RATIO]
        | [GPU_MEMORY_RATIO, HUAWEI_NPU_CORE] => are_percentages(),
        [GPU_SHARED, GPU_MEMORY | GPU_MEMORY_RATIO] | [GPU_SHARED, GPU_CORE, GPU_MEMORY | GPU_MEMORY_RATIO] => {
            divides(GPU_CORE) && divides(GPU_MEMORY_RATIO)
        }
        [GPU_SHARED, GPU_MEMORY, HUAWEI_NPU_CORE, HUAWEI_NPU_CPU]
        | [GPU_SHARED, GPU_MEMORY, HUAWEI_NPU_CORE, HUAWEI_NPU_CPU, HUAWEI_NPU_DVPP] => {
            amount(GPU_SHARED) == 1 && amount(HUAWEI_NPU_DVPP) <= 100
        }
        _ => false,
    };
    if !is_valid {
        let mut names = names;
        names.sort_unstable();
        return Err(InvalidRequest::Combination(names));
    }
    let of_vendors = [NVIDIA_GPU, AMD_GPU, HYGON_DCU].map(|name| amount(name).saturating_mul(100));
    let whole = of_vendors.into_iter().fold(amount(GPU), i64::saturating_add);
    let mut all = DeviceAmounts::read(requests);
    if whole > 0 {
        all = [DeviceResource::GpuCore, DeviceResource::GpuMemoryRatio]
            .map(|resource| (resource, whole))
            .into_iter()
            .collect();
    }
    Ok(Some(divided(&all, amount(GPU_SHARED))))
}

/// Whether devices are requested, or something that is none alone.
pub fn wants_devices(requests: &ResourceList) -> bool {
    let names = OF_GPUS.into_iter().chain(PERCENTAGES.map(|(name, _)| name));
    names.into_iter().any(|name| !requests.amount(name).is_zero())
}

/// What a request for devices that are no GPUs amounts to.
pub fn percent(requests: &ResourceList, name: &'static str) -> Result<Option<i64>, InvalidRequest> {
    let amount = requests.amount(name).value();
    check_unit(name, amount)?;
    Ok((amount > 0).then_some(amount))
}

/// The resources that [`percent`] reads.
pub const PERCENTAGES: [(&str, DeviceResource); 2] = [(RDMA, DeviceResource::Rdma), (FPGA, DeviceResource::Fpga)];

/// How many whole devices a percentage is.
pub fn whole_devices(percent: i64) -> Option<usize> {
    (percent > 100 && percent % 100 == 0).then(|| usize::try_from(percent / 100).unwrap_or(usize::MAX))
}

fn divided(all: &DeviceAmounts, shared: i64) -> RequestedGpus {
    use DeviceResource::{Fpga, GpuMemory, GpuMemoryRatio, Rdma};
    let ratio = all.get(GpuMemoryRatio);
    let count = match shared {
        1.. => usize::try_from(shared).unwrap_or(usize::MAX),
        _ => ratio.and_then(whole_devices).unwrap_or(1),
    };
    let divisor = i64::try_from(count).unwrap_or(i64::MAX);
    let of_gpus = all.iter().filter(|(resource, amount)| !matches!(resource, Rdma | Fpga) && *amount > 0);
    let each: DeviceAmounts = of_gpus.map(|(resource, amount)| (resource, amount / divisor)).collect();
    let is_shared = match each.get(GpuMemoryRatio) {
        Some(ratio) => ratio < 100,
        None => each.get(GpuMemory).is_some(),
    };
    RequestedGpus { each, count, is_shared }
}

fn is_percentage(amount: i64) -> bool {
    amount <= 100 || amount % 100 == 0
}

fn check_unit(name: &'static str, amount: i64) -> Result<(), InvalidRequest> {
    if is_percentage(amount) { Ok(()) } else { Err(InvalidRequest::Unit { name, amount }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> ResourceList {
        serde_json::from_value(koord_scheduler_testing::devices::list(text)).unwrap()
    }

    fn requested(text: &str) -> Result<(ResourceList, usize, bool), String> {
        let gpus = gpus(&list(text)).map_err(|error| error.to_string())?.unwrap();
        Ok((gpus.each.list(), gpus.count, gpus.is_shared))
    }

    #[test]
    fn all_names_of_gpus_become_shares_of_each() {
        let whole = "gpu-core=100 gpu-memory-ratio=100";
        let half = "gpu-core=50 gpu-memory-ratio=50";
        let npu = "huawei.com/npu-core=2 huawei.com/npu-cpu=1 huawei.com/npu-dvpp=25 gpu-memory=6Gi";
        for (requests, each, count, is_shared) in [
            ("nvidia.com/gpu=2", whole, 2, false),
            ("amd.com/gpu=1", whole, 1, false),
            ("dcu.com/gpu=8", whole, 8, false),
            ("gpu=300", whole, 3, false),
            ("gpu=50", half, 1, true),
            ("gpu-core=200 gpu-memory-ratio=200", whole, 2, false),
            ("gpu.shared=2 gpu-core=100 gpu-memory-ratio=100", half, 2, true),
            ("gpu-memory=20Gi", "gpu-memory=20Gi", 1, true),
            ("gpu-core=30 gpu-memory=20Gi", "gpu-core=30 gpu-memory=20Gi", 1, true),
            ("gpu.shared=2 gpu-memory=20Gi", "gpu-memory=10Gi", 2, true),
            ("gpu-memory-ratio=200", "gpu-memory-ratio=100", 2, false),
            ("huawei.com/npu-core=20 gpu-memory-ratio=100", "huawei.com/npu-core=20 gpu-memory-ratio=100", 1, false),
            (&format!("gpu.shared=1 cpu=4 {npu}"), npu, 1, true),
        ] {
            assert_eq!(requested(requests), Ok((list(each), count, is_shared)), "{requests}");
        }
        assert_eq!(gpus(&list("cpu=1 gpu=0")), Ok(None));
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        for (requests, names) in [
            ("gpu-core=50", "gpu-core"),
            ("gpu-core=150 gpu-memory-ratio=150", "gpu-core gpu-memory-ratio"),
            ("gpu-core=50 gpu-memory=20Gi gpu-memory-ratio=50", "gpu-core gpu-memory gpu-memory-ratio"),
            ("gpu=100 nvidia.com/gpu=1", "gpu nvidia.com/gpu"),
            ("gpu.shared=2 gpu-memory-ratio=75", "gpu-memory-ratio gpu.shared"),
            ("gpu.shared=2 gpu-memory-ratio=202", "gpu-memory-ratio gpu.shared"),
            (
                "gpu.shared=2 huawei.com/npu-core=2 huawei.com/npu-cpu=1 gpu-memory=6Gi",
                "huawei.com/npu-core huawei.com/npu-cpu gpu-memory gpu.shared",
            ),
        ] {
            let full = |name: &str| if name.contains('/') { name.to_owned() } else { format!("koordinator.sh/{name}") };
            let names = names.split(' ').map(full).collect::<Vec<_>>().join(" ");
            assert_eq!(requested(requests), Err(format!("invalid resource device requests: [{names}]")));
        }
        assert_eq!(requested("gpu=150"), Err("invalid resource unit koordinator.sh/gpu: 150".to_owned()));
    }

    #[test]
    fn more_than_one_other_device_is_a_whole_number_of_them() {
        let of = |text: &str| percent(&list(text), RDMA).map_err(|error| error.to_string());
        assert_eq!((of("rdma=0"), of("rdma=1"), of("rdma=200")), (Ok(None), Ok(Some(1)), Ok(Some(200))));
        assert_eq!(of("rdma=120"), Err("invalid resource unit koordinator.sh/rdma: 120".to_owned()));
        assert_eq!([50, 100, 200, 250].map(whole_devices), [None, None, Some(2), None]);
    }
}
