//! Adds devices to an encoded `ListPodResourcesResponse`, byte for byte otherwise.

use bytes::{Buf as _, BufMut as _, Bytes};
use prost::{
    Message as _,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field},
};

/// Devices of one resource.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerDevices {
    /// Name such as `nvidia.com/gpu`.
    #[prost(string, tag = "1")]
    pub resource_name: String,
    /// Ids of the devices.
    #[prost(string, repeated, tag = "2")]
    pub device_ids: Vec<String>,
}

/// A pod of the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PodName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// An answer of the kubelet that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kubelet's answer cannot be decoded at byte {at}: {problem}")]
pub struct SpliceError {
    /// Where, in bytes from the begin.
    pub at: usize,
    /// What is wrong.
    pub problem: String,
}

// ListPodResourcesResponse
const POD_RESOURCES: u32 = 1;
// PodResources
const POD_NAME: u32 = 1;
const POD_NAMESPACE: u32 = 2;
const POD_CONTAINERS: u32 = 3;
// ContainerResources
const CONTAINER_DEVICES: u32 = 2;

/// Appends what `devices` returns for a pod to the devices of its first container. A pod without containers is left alone.
pub fn add_devices(
    answer: &Bytes,
    mut devices: impl FnMut(&PodName) -> Vec<ContainerDevices>,
) -> Result<Bytes, SpliceError> {
    let mut out = Vec::with_capacity(answer.len());
    for field in fields(answer, 0)? {
        let pod = field.content.filter(|_| field.tag == POD_RESOURCES);
        match pod.map(|pod| with_devices(&pod, field.content_at, &mut devices)).transpose()?.flatten() {
            Some(pod) => put(POD_RESOURCES, &pod, &mut out),
            None => out.put_slice(&field.whole),
        }
    }
    Ok(out.into())
}

/// The pod with its devices; `None` when it has none.
fn with_devices(
    pod: &Bytes,
    at: usize,
    devices: &mut impl FnMut(&PodName) -> Vec<ContainerDevices>,
) -> Result<Option<Bytes>, SpliceError> {
    let fields = fields(pod, at)?;
    let text = |tag| {
        // The last one counts where a field is repeated.
        let content = fields.iter().rev().find(|field| field.tag == tag).and_then(|field| field.content.as_ref());
        content.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    let name = PodName { namespace: text(POD_NAMESPACE), name: text(POD_NAME) };
    let Some(first) = fields.iter().position(|field| field.tag == POD_CONTAINERS && field.content.is_some()) else {
        return Ok(None);
    };
    let added = devices(&name);
    if added.is_empty() {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(pod.len());
    for (position, field) in fields.iter().enumerate() {
        match field.content.as_ref().filter(|_| position == first) {
            Some(container) => {
                let mut container = container.to_vec();
                for devices in &added {
                    put(CONTAINER_DEVICES, &devices.encode_to_vec(), &mut container);
                }
                put(POD_CONTAINERS, &container, &mut out);
            }
            None => out.put_slice(&field.whole),
        }
    }
    Ok(Some(out.into()))
}

struct Field {
    tag: u32,
    /// With tag and length.
    whole: Bytes,
    /// Of a field with a length.
    content: Option<Bytes>,
    content_at: usize,
}

fn fields(message: &Bytes, at: usize) -> Result<Vec<Field>, SpliceError> {
    let mut rest = message.clone();
    let mut fields = Vec::new();
    while rest.has_remaining() {
        let begin = message.len() - rest.len();
        let failed = |problem: &dyn ToString| SpliceError { at: at + begin, problem: problem.to_string() };
        let (tag, wire_type) = decode_key(&mut rest).map_err(|error| failed(&error))?;
        let mut content = None;
        let mut content_at = begin;
        if wire_type == WireType::LengthDelimited {
            let length = decode_varint(&mut rest).map_err(|error| failed(&error))?;
            let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
            let length = length.ok_or_else(|| failed(&"a field is longer than its message"))?;
            content_at = message.len() - rest.len();
            content = Some(rest.split_to(length));
        } else {
            skip_field(wire_type, tag, &mut rest, DecodeContext::default()).map_err(|error| failed(&error))?;
        }
        let whole = message.slice(begin..message.len() - rest.len());
        fields.push(Field { tag, whole, content, content_at: at + content_at });
    }
    Ok(fields)
}

fn put(tag: u32, content: &[u8], out: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(content.len() as u64, out);
    out.put_slice(content);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Answer {
        #[prost(message, repeated, tag = "1")]
        pods: Vec<Pod>,
        #[prost(string, tag = "9")]
        later: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Pod {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        namespace: String,
        #[prost(message, repeated, tag = "3")]
        containers: Vec<Container>,
        #[prost(uint64, tag = "7")]
        later: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Container {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(message, repeated, tag = "2")]
        devices: Vec<ContainerDevices>,
        #[prost(int64, repeated, tag = "3")]
        cpus: Vec<i64>,
        #[prost(fixed64, tag = "11")]
        later: u64,
    }

    fn devices(resource: &str, ids: &[&str]) -> ContainerDevices {
        ContainerDevices { resource_name: resource.into(), device_ids: ids.iter().map(|id| (*id).into()).collect() }
    }

    fn container(name: &str, devices: Vec<ContainerDevices>) -> Container {
        Container { name: name.into(), devices, cpus: vec![1, 2], later: 5 }
    }

    fn answer() -> Answer {
        let pod = |name: &str, containers| Pod { name: name.into(), namespace: "default".into(), containers, later: 3 };
        Answer {
            pods: vec![
                pod("a", vec![container("main", vec![devices("example.com/nic", &["n0"])]), container("side", vec![])]),
                pod("b", vec![container("main", vec![])]),
                pod("c", vec![]),
            ],
            later: "x".into(),
        }
    }

    #[test]
    fn devices_are_added_to_the_first_container_and_later_fields_stay() {
        let gpus = |pod: &PodName| match pod.name.as_str() {
            "b" => vec![],
            _ => vec![devices("koordinator.sh/rdma", &["0000:01:00.1"]), devices("nvidia.com/gpu", &["g0", "g1"])],
        };
        let spliced = add_devices(&answer().encode_to_vec().into(), gpus).unwrap();
        let mut expected = answer();
        expected.pods[0].containers[0]
            .devices
            .extend([devices("koordinator.sh/rdma", &["0000:01:00.1"]), devices("nvidia.com/gpu", &["g0", "g1"])]);
        assert_eq!(Answer::decode(spliced).unwrap(), expected);
    }

    #[test]
    fn nothing_changes_without_devices() {
        let bytes: Bytes = answer().encode_to_vec().into();
        assert_eq!(add_devices(&bytes, |_| vec![]).unwrap(), bytes);
    }

    #[test]
    fn a_cut_answer_is_an_error_with_its_place() {
        let mut bytes = answer().encode_to_vec();
        bytes.pop();
        let error = add_devices(&bytes.into(), |_| vec![]).unwrap_err();
        assert!(error.to_string().contains("a field is longer than its message"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = add_devices(&bytes.into(), |_| vec![devices("a", &["b"])]);
        }

        #[test]
        fn what_can_be_read_is_the_same_without_devices(bytes in prop::collection::vec(0u8..40, 0..60)) {
            let bytes = Bytes::from(bytes);
            if let Ok(spliced) = add_devices(&bytes, |_| vec![]) {
                prop_assert_eq!(spliced, bytes);
            }
        }
    }
}
