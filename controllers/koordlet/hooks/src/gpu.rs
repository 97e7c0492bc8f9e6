//! GPUs: which ones a container sees, and how much of a shared one it may use.

use std::path::{Path, PathBuf};

use koord_types::{
    device::DeviceType,
    device_protocol::{DEVICE_ALLOCATED, DeviceAllocation, GPU_ISOLATION_PROVIDER},
    resource_names::{GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO},
};

use crate::{
    adjustment::{Adjustment, Effect, Mount},
    pod_view::PodView,
    refused::Refused,
};

/// The isolation provider that is known.
const HAMI_CORE: &str = "HAMi-core";
const LOCK_FOLDER: &str = "/tmp/vgpulock";

/// How shared GPUs are isolated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuOptions {
    /// The library that is loaded into containers with a part of a GPU.
    pub hami_core_library: PathBuf,
    /// Whether the library reports what containers use.
    pub monitors_shared_gpus: bool,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self { hami_core_library: "/usr/local/vgpu/libvgpu.so".into(), monitors_shared_gpus: false }
    }
}

/// Adds what a container with GPUs needs. Fails after the visible devices are set when a shared GPU names no memory or no share of it.
pub(crate) fn inject(
    options: &GpuOptions,
    pod: &PodView<'_>,
    container: &str,
    adjustment: &mut Adjustment,
    effects: &mut Vec<Effect>,
    refused: &mut Vec<Refused>,
) {
    let Ok(Some(allocations)) = pod.read(&DEVICE_ALLOCATED, refused) else { return };
    let gpus = allocations.0.get(&DeviceType::Gpu).map(Vec::as_slice).unwrap_or_default();
    let Some(first) = gpus.first() else { return };
    let minors: Vec<String> = gpus.iter().map(|gpu| gpu.minor.to_string()).collect();
    adjustment.envs.insert("NVIDIA_VISIBLE_DEVICES".to_owned(), minors.join(","));
    if pod.labels.get(GPU_ISOLATION_PROVIDER.name()).is_some_and(|provider| provider == HAMI_CORE)
        && let Err(missing) = isolate(options, pod, container, first, adjustment, effects)
    {
        let reason = format!("a GPU shared by HAMi-core has no {missing} among its resources");
        refused.push(pod.refusal(DEVICE_ALLOCATED.name(), reason));
    }
}

fn isolate(
    options: &GpuOptions,
    pod: &PodView<'_>,
    container: &str,
    gpu: &DeviceAllocation,
    adjustment: &mut Adjustment,
    effects: &mut Vec<Effect>,
) -> Result<(), &'static str> {
    let ratio = gpu.resources.get(GPU_MEMORY_RATIO).ok_or(GPU_MEMORY_RATIO)?.value();
    if ratio >= 100 {
        return Ok(());
    }
    let memory = gpu.resources.get(GPU_MEMORY).ok_or(GPU_MEMORY)?.value();
    let library = options.hami_core_library.to_string_lossy().into_owned();
    let mut env = |name: &str, value: String| adjustment.envs.insert(name.to_owned(), value);
    env("CUDA_DEVICE_MEMORY_LIMIT", memory.to_string());
    if let Some(core) = gpu.resources.get(GPU_CORE) {
        env("CUDA_DEVICE_SM_LIMIT", core.value().to_string());
    }
    env("LD_PRELOAD", library.clone());
    adjustment.mounts.push(bind(library.clone(), library));
    adjustment.mounts.push(bind(LOCK_FOLDER.to_owned(), LOCK_FOLDER.to_owned()));
    // Both become names of folders on the node.
    let is_name = |text: &str| !text.is_empty() && !text.contains('/') && !text.starts_with('.');
    if options.monitors_shared_gpus && is_name(pod.uid) && is_name(container) {
        let folder = options.hami_core_library.parent().unwrap_or(Path::new("/"));
        let name = format!("{}_{container}", pod.uid);
        let of_container = folder.join("containers").join(&name);
        let cache = folder.join(format!("{name}.cache"));
        adjustment.envs.insert("CUDA_DEVICE_MEMORY_SHARED_CACHE".to_owned(), cache.to_string_lossy().into_owned());
        let destination = folder.to_string_lossy().into_owned();
        adjustment.mounts.push(bind(of_container.to_string_lossy().into_owned(), destination));
        effects.push(Effect::RecreateFolder(of_container));
    }
    Ok(())
}

fn bind(source: String, destination: String) -> Mount {
    Mount { source, destination, kind: "bind", options: &["rbind"] }
}
