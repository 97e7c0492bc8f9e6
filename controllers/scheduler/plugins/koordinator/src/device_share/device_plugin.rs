//! What the device plugins of vendors read of a pod that was given GPUs (`spec/scheduler.md` 3F.7).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use koord_resource::Time;
use koord_types::{
    device::DeviceType,
    device_protocol::{DeviceAllocation, DeviceAllocations},
    node_annotations::HAMI_VGPU_NODE,
    resource_names::{GPU_CORE, GPU_MEMORY},
};
use serde_json::json;

/// A pod that is about to be bound.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// Its namespace and name.
    pub pod: (&'a str, &'a str),
    /// What keeps it apart from others that share its GPUs.
    pub isolation: Option<&'a str>,
    pub node: &'a str,
    /// Who made the GPUs of the node.
    pub vendor: &'a str,
    /// Which ones they are.
    pub model: &'a str,
    pub now: Timestamp,
}

/// What is written for device plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adaption {
    /// Annotations of the pod.
    pub annotations: BTreeMap<&'static str, String>,
    /// Labels of the pod.
    pub labels: BTreeMap<&'static str, String>,
    /// An annotation of the node. While it is there, no other pod may get GPUs of this vendor on the node.
    pub lock: Option<Lock>,
}

/// The lock of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub name: &'static str,
    /// What it is to be.
    pub value: String,
    /// Whether it is that already.
    pub is_held: bool,
}

/// Why an allocation cannot be written for a device plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdaptionError {
    /// The device plugin divides one GPU at a time.
    #[error("multiple gpu share is not supported on device side")]
    MultiShared,
    /// NPUs of this model cannot be divided.
    #[error("model {0:?} does not support vNPU")]
    Undivided(String),
    /// The device plugin needs to know the share of cores.
    #[error("gpu core resource is required")]
    NoCore,
    /// Less than the least memory that the device plugin can divide.
    #[error("gpu memory must not be less than {0} bytes")]
    TooLittleMemory(i64),
    /// Another pod has the node's lock.
    #[error("failed to lock node: node {0:?} has been locked")]
    Locked(String),
    /// The lock of the node cannot be read.
    #[error("failed to lock node: {0}")]
    Lock(String),
}

const BIND_TIMESTAMP: &str = "scheduling.koordinator.sh/bind-timestamp";
const GPU_MINORS: &str = "scheduling.koordinator.sh/gpu-minors";
const HUAWEI_TIME: &str = "predicate-time";
const HUAWEI_CORES: &str = "huawei.com/npu-core";
/// The model whose device plugin reads another annotation, with the names of NPUs.
const HUAWEI_300I_DUO: &str = "Ascend-310P3-300I-DUO";
const HUAWEI_ASCEND_310P: &str = "huawei.com/Ascend310P";
// The misspelling is what the device plugin reads.
const CAMBRICON_ASSIGNED: &str = "CAMBRICON_DSMLU_ASSIGHED";
const CAMBRICON_PROFILE: &str = "CAMBRICON_DSMLU_PROFILE";
const CAMBRICON_LOCK: &str = "cambricon.com/dsmlu.lock";
const CAMBRICON_UNIT: i64 = 256 << 20;
const METAX_ALLOCATED: &str = "metax-tech.com/gpu-devices-allocated";
const METAX_LOCK: &str = "hami.io/mutex.lock";
const METAX_UNIT: i64 = 1 << 20;

/// A lock that is older was forgotten by its device plugin.
const LOCK_LASTS: SignedDuration = SignedDuration::from_mins(5);

/// What is written for device plugins beside the allocation. `lock` reads an annotation of the node, and `is_known`
/// says whether there is a pod of this namespace and name.
pub fn adapt<'a>(
    allocations: &DeviceAllocations,
    binding: &Binding<'_>,
    lock: impl Fn(&str) -> Option<&'a str>,
    is_known: impl Fn(&str, &str) -> bool,
) -> Result<Adaption, AdaptionError> {
    let mut adaption = Adaption::default();
    let time = binding.now.as_nanosecond().to_string();
    adaption.annotations.insert(BIND_TIMESTAMP, time.clone());
    let gpus = allocations.0.get(&DeviceType::Gpu).map_or(&[][..], Vec::as_slice);
    let Some(first) = gpus.first() else { return Ok(adaption) };
    adaption.annotations.insert(GPU_MINORS, minors(gpus));
    if binding.isolation == Some("HAMi-core") {
        adaption.labels.insert(HAMI_VGPU_NODE.name(), binding.node.to_owned());
    }
    match binding.vendor {
        "huawei" => {
            adaption.annotations.insert(HUAWEI_TIME, time);
            let (name, value) = huawei(binding.model, first, gpus)?;
            adaption.annotations.insert(name, value);
        }
        "cambricon" => {
            adaption.annotations.insert(CAMBRICON_PROFILE, cambricon(first, gpus)?);
            adaption.annotations.insert(CAMBRICON_ASSIGNED, "false".to_owned());
            adaption.lock = Some(locked(binding, CAMBRICON_LOCK, lock(CAMBRICON_LOCK), is_known)?);
        }
        "metax" => {
            adaption.annotations.insert(METAX_ALLOCATED, metax(gpus)?);
            adaption.lock = Some(locked(binding, METAX_LOCK, lock(METAX_LOCK), is_known)?);
        }
        _ => {}
    }
    Ok(adaption)
}

fn minors(gpus: &[DeviceAllocation]) -> String {
    gpus.iter().map(|gpu| gpu.minor.to_string()).collect::<Vec<_>>().join(",")
}

/// Whole NPUs by their numbers, a part of one by its template: the annotation and its value.
fn huawei(
    model: &str,
    first: &DeviceAllocation,
    gpus: &[DeviceAllocation],
) -> Result<(&'static str, String), AdaptionError> {
    let template = first.extension.as_ref().map_or("", |extension| &extension.gpu_shared_resource_template);
    match (model, template) {
        (HUAWEI_300I_DUO, "") => {
            let names: Vec<String> = gpus.iter().map(|gpu| format!("Ascend310P-{}", gpu.minor)).collect();
            Ok((HUAWEI_ASCEND_310P, names.join(",")))
        }
        (HUAWEI_300I_DUO, _) => Err(AdaptionError::Undivided(model.to_owned())),
        (_, "") => Ok((HUAWEI_CORES, minors(gpus))),
        _ => Ok((HUAWEI_CORES, format!("{}-{template}", first.minor))),
    }
}

fn cambricon(first: &DeviceAllocation, gpus: &[DeviceAllocation]) -> Result<String, AdaptionError> {
    if gpus.len() > 1 {
        return Err(AdaptionError::MultiShared);
    }
    let (core, units) = core_and_memory(first, CAMBRICON_UNIT)?;
    Ok(format!("{}_{core}_{units}", first.minor))
}

/// The GPUs of the only container that has any.
fn metax(gpus: &[DeviceAllocation]) -> Result<String, AdaptionError> {
    let shares = gpus.iter().map(|gpu| {
        let (core, units) = core_and_memory(gpu, METAX_UNIT)?;
        Ok(format!(r#"{{"uuid":{},"compute":{core},"vRam":{units}}}"#, json!(gpu.id)))
    });
    let shares: Vec<String> = shares.collect::<Result<_, _>>()?;
    Ok(format!("[[{}]]", shares.join(",")))
}

fn core_and_memory(gpu: &DeviceAllocation, unit: i64) -> Result<(i64, i64), AdaptionError> {
    let core = gpu.resources.get(GPU_CORE).ok_or(AdaptionError::NoCore)?.value();
    match gpu.resources.amount(GPU_MEMORY).value() / unit {
        ..=0 => Err(AdaptionError::TooLittleMemory(unit)),
        units => Ok((core, units)),
    }
}

/// The lock for this pod, unless another pod has it: one that exists, for less than five minutes. One that this pod has got before,
/// in an attempt that came to nothing, is its own still.
fn locked(
    binding: &Binding<'_>,
    name: &'static str,
    current: Option<&str>,
    is_known: impl Fn(&str, &str) -> bool,
) -> Result<Lock, AdaptionError> {
    if let Some(current) = current {
        let [since, namespace, pod] = *current.split(',').collect::<Vec<_>>() else {
            return Err(AdaptionError::Lock(format!("invalid node lock value {current:?}")));
        };
        let since: Time = since.parse().map_err(|error| AdaptionError::Lock(format!("{error}")))?;
        // One that is dated ahead lasts until then and five minutes more.
        let lasts = binding.now.duration_since(since.at()) <= LOCK_LASTS;
        if lasts && (namespace, pod) == binding.pod {
            return Ok(Lock { name, value: current.to_owned(), is_held: true });
        }
        if lasts && is_known(namespace, pod) {
            return Err(AdaptionError::Locked(binding.node.to_owned()));
        }
    }
    let (namespace, pod) = binding.pod;
    let value = format!("{},{namespace},{pod}", binding.now.strftime("%Y-%m-%dT%H:%M:%SZ"));
    Ok(Lock { name, value, is_held: false })
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::devices::list;
    use koord_types::device_protocol::DEVICE_ALLOCATED;
    use serde_json::Value;

    use super::*;

    fn gpu(minor: i32, resources: &str) -> Value {
        json!({"minor": minor, "id": format!("GPU-{minor}"), "resources": list(resources)})
    }

    fn binding(vendor: &str) -> Binding<'_> {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        Binding { pod: ("ns", "p"), isolation: None, node: "n1", vendor, model: "", now }
    }

    fn adapted(gpus: &[Value], binding: &Binding<'_>, lock: Option<&str>) -> Result<Adaption, String> {
        let allocations = DEVICE_ALLOCATED.read(&json!({ "gpu": gpus }).to_string()).unwrap();
        let is_known = |namespace: &str, name: &str| (namespace, name) == ("ns", "other");
        adapt(&allocations, binding, |_| lock, is_known).map_err(|error| error.to_string())
    }

    fn annotation(gpus: &[Value], vendor: &str, name: &str) -> Result<String, String> {
        adapted(gpus, &binding(vendor), None).map(|adaption| adaption.annotations[name].clone())
    }

    const WHOLE: &str = "gpu-core=100 gpu-memory=80Gi gpu-memory-ratio=100";

    #[test]
    fn every_vendor_reads_its_own_words() {
        let two = [gpu(0, WHOLE), gpu(1, WHOLE)];
        let ok = |text: &str| Ok(text.to_owned());
        assert_eq!(annotation(&two, "nvidia", BIND_TIMESTAMP), ok("1700000000000000000"));
        assert_eq!(annotation(&two, "nvidia", GPU_MINORS), ok("0,1"));
        assert_eq!(annotation(&two, "huawei", HUAWEI_TIME), ok("1700000000000000000"));
        assert_eq!(annotation(&two, "huawei", HUAWEI_CORES), ok("0,1"));
        let mut part = gpu(3, "huawei.com/npu-core=2 gpu-memory=6Gi");
        part["extension"] = json!({"gpuSharedResourceTemplate": "vir02"});
        assert_eq!(annotation(&[part], "huawei", HUAWEI_CORES), ok("3-vir02"));
        let half = [gpu(1, "gpu-core=50 gpu-memory=1100Mi")];
        assert_eq!(annotation(&half, "cambricon", CAMBRICON_PROFILE), ok("1_50_4"));
        assert_eq!(annotation(&half, "cambricon", CAMBRICON_ASSIGNED), ok("false"));
        let metax = r#"[[{"uuid":"GPU-1","compute":50,"vRam":1100}]]"#;
        assert_eq!(annotation(&half, "metax", METAX_ALLOCATED), ok(metax));
        let isolated = Binding { isolation: Some("HAMi-core"), ..binding("nvidia") };
        assert_eq!(adapted(&two, &isolated, None).unwrap().labels["hami.io/vgpu-node"], "n1");
        assert_eq!(adapted(&[], &binding("cambricon"), None).unwrap().annotations.len(), 1);
    }

    #[test]
    fn what_a_device_plugin_cannot_divide_is_refused() {
        let refused = |gpus: &[Value]| adapted(gpus, &binding("cambricon"), None).unwrap_err();
        assert_eq!(refused(&[gpu(0, WHOLE), gpu(1, WHOLE)]), "multiple gpu share is not supported on device side");
        assert_eq!(refused(&[gpu(0, "gpu-memory=1Gi")]), "gpu core resource is required");
        let little = "gpu memory must not be less than 268435456 bytes";
        assert_eq!(refused(&[gpu(0, "gpu-core=1 gpu-memory=255Mi")]), little);
    }

    #[test]
    fn an_npu_of_the_300i_duo_has_a_name_and_cannot_be_divided() {
        let duo = Binding { model: "Ascend-310P3-300I-DUO", ..binding("huawei") };
        let whole = adapted(&[gpu(0, WHOLE), gpu(3, WHOLE)], &duo, None).unwrap().annotations;
        assert_eq!(whole["huawei.com/Ascend310P"], "Ascend310P-0,Ascend310P-3");
        assert!(whole.contains_key("predicate-time") && !whole.contains_key("huawei.com/npu-core"));
        let mut part = gpu(0, WHOLE);
        part["extension"] = json!({"gpuSharedResourceTemplate": "vir02"});
        let refused = adapted(&[part], &duo, None).unwrap_err();
        assert_eq!(refused, r#"model "Ascend-310P3-300I-DUO" does not support vNPU"#);
    }

    #[test]
    fn a_node_is_locked_for_one_pod_at_a_time() {
        let lock =
            |current: Option<&str>| adapted(&[gpu(0, WHOLE)], &binding("metax"), current).map(|adaption| adaption.lock);
        let value = "2023-11-14T22:13:20Z,ns,p".to_owned();
        let own = Ok(Some(Lock { name: METAX_LOCK, value, is_held: false }));
        assert_eq!(lock(None), own);
        assert_eq!(
            lock(Some("2023-11-14T22:09:20Z,ns,other")),
            Err(r#"failed to lock node: node "n1" has been locked"#.to_owned())
        );
        assert!(lock(Some("2023-11-14T22:23:20Z,ns,other")).is_err(), "dated ten minutes ahead");
        assert_eq!(lock(Some("2023-11-14T22:08:19Z,ns,other")), own, "more than five minutes old");
        assert_eq!(lock(Some("2023-11-14T22:13:19Z,ns,gone")), own, "its pod is gone");
        let value = "2023-11-14T22:12:20Z,ns,p".to_owned();
        let held = Ok(Some(Lock { name: METAX_LOCK, value: value.clone(), is_held: true }));
        assert_eq!(lock(Some(&value)), held, "it has got it before");
        assert!(lock(Some("soon,ns,other")).unwrap_err().starts_with("failed to lock node: "));
        let lone = r#"failed to lock node: invalid node lock value "2023-11-14T22:08:19Z""#;
        assert_eq!(lock(Some("2023-11-14T22:08:19Z")), Err(lone.to_owned()));
    }
}
