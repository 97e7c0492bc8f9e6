//! What server reflection shows of the hook service, built by hand: the wire format has no other description here.

use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions,
    MethodDescriptorProto, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

const PACKAGE: &str = "runtime.v1alpha1";

/// Type of a field.
#[derive(Clone, Copy)]
enum Kind {
    Str,
    I64,
    U32,
    U64,
    One(&'static str),
    Many(&'static str),
    Map,
}

use Kind::{I64, Many, Map, One, Str, U32, U64};

/// A message and its fields; the number of a field is its place, from 1.
type Message = (&'static str, &'static [(&'static str, Kind)]);

const MESSAGES: [Message; 8] = [
    ("PodSandboxMetadata", &[("name", Str), ("uid", Str), ("namespace", Str), ("attempt", U32)]),
    ("ContainerMetadata", &[("name", Str), ("attempt", U32), ("id", Str)]),
    ("HugepageLimit", &[("page_size", Str), ("limit", U64)]),
    (
        "LinuxContainerResources",
        &[
            ("cpu_period", I64),
            ("cpu_quota", I64),
            ("cpu_shares", I64),
            ("memory_limit_in_bytes", I64),
            ("oom_score_adj", I64),
            ("cpuset_cpus", Str),
            ("cpuset_mems", Str),
            ("hugepage_limits", Many("HugepageLimit")),
            ("unified", Map),
            ("memory_swap_limit_in_bytes", I64),
        ],
    ),
    (
        "PodSandboxHookRequest",
        &[
            ("pod_meta", One("PodSandboxMetadata")),
            ("runtime_handler", Str),
            ("labels", Map),
            ("annotations", Map),
            ("cgroup_parent", Str),
            ("overhead", One("LinuxContainerResources")),
            ("resources", One("LinuxContainerResources")),
        ],
    ),
    (
        "PodSandboxHookResponse",
        &[("labels", Map), ("annotations", Map), ("cgroup_parent", Str), ("resources", One("LinuxContainerResources"))],
    ),
    (
        "ContainerResourceHookRequest",
        &[
            ("pod_meta", One("PodSandboxMetadata")),
            ("container_meta", One("ContainerMetadata")),
            ("container_annotations", Map),
            ("container_resources", One("LinuxContainerResources")),
            ("pod_resources", One("LinuxContainerResources")),
            ("pod_annotations", Map),
            ("pod_labels", Map),
            ("pod_cgroup_parent", Str),
            ("container_envs", Map),
        ],
    ),
    (
        "ContainerResourceHookResponse",
        &[
            ("container_annotations", Map),
            ("container_resources", One("LinuxContainerResources")),
            ("pod_cgroup_parent", Str),
            ("container_envs", Map),
        ],
    ),
];

/// The file that protoc would have read.
pub(super) fn file_descriptors(methods: impl Iterator<Item = (&'static str, &'static str)>) -> FileDescriptorSet {
    let method = |(name, kind): (&str, &str)| MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(format!(".{PACKAGE}.{kind}Request")),
        output_type: Some(format!(".{PACKAGE}.{kind}Response")),
        ..Default::default()
    };
    FileDescriptorSet {
        file: vec![FileDescriptorProto {
            name: Some("runtime/v1alpha1/api.proto".to_owned()),
            package: Some(PACKAGE.to_owned()),
            message_type: MESSAGES.iter().map(message).collect(),
            service: vec![ServiceDescriptorProto {
                name: Some("RuntimeHookService".to_owned()),
                method: methods.map(method).collect(),
                options: None,
            }],
            syntax: Some("proto3".to_owned()),
            ..Default::default()
        }],
    }
}

fn message((name, fields): &Message) -> DescriptorProto {
    let numbered = fields.iter().zip(1..);
    let entries = fields.iter().filter(|(_, kind)| matches!(kind, Map)).map(|(field, _)| DescriptorProto {
        name: Some(entry_name(field)),
        field: vec![plain_field("key", 1, Type::String), plain_field("value", 2, Type::String)],
        options: Some(MessageOptions { map_entry: Some(true), ..Default::default() }),
        ..Default::default()
    });
    DescriptorProto {
        name: Some((*name).to_owned()),
        field: numbered.map(|((field, kind), number)| described(name, field, number, *kind)).collect(),
        nested_type: entries.collect(),
        ..Default::default()
    }
}

fn described(message: &str, field: &str, number: i32, kind: Kind) -> FieldDescriptorProto {
    let of_message = |label, kind: String| FieldDescriptorProto {
        label: Some(label as i32),
        type_name: Some(format!(".{PACKAGE}.{kind}")),
        ..plain_field(field, number, Type::Message)
    };
    match kind {
        Str => plain_field(field, number, Type::String),
        I64 => plain_field(field, number, Type::Int64),
        U32 => plain_field(field, number, Type::Uint32),
        U64 => plain_field(field, number, Type::Uint64),
        One(kind) => of_message(Label::Optional, kind.to_owned()),
        Many(kind) => of_message(Label::Repeated, kind.to_owned()),
        Map => of_message(Label::Repeated, format!("{message}.{}", entry_name(field))),
    }
}

fn plain_field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional as i32),
        r#type: Some(kind as i32),
        json_name: Some(lower_camel(name)),
        ..Default::default()
    }
}

/// `pod_labels` has entries `PodLabelsEntry`.
fn entry_name(field: &str) -> String {
    let camel = lower_camel(field);
    let mut chars = camel.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    format!("{}{}Entry", first.map(String::from).unwrap_or_default(), chars.as_str())
}

fn lower_camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut chars = word.chars();
        name.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(chars.as_str());
        name
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::hookserver::{
        ContainerMetadata, ContainerResourceHookRequest, LinuxContainerResources, PodSandboxHookRequest,
        PodSandboxMetadata,
    };

    /// Numbers of the fields of a message that has all of them.
    fn tags(bytes: &[u8]) -> Vec<u32> {
        let mut rest = bytes;
        let mut tags = Vec::new();
        while !rest.is_empty() {
            let (tag, wire) = prost::encoding::decode_key(&mut rest).unwrap();
            prost::encoding::skip_field(wire, tag, &mut rest, prost::encoding::DecodeContext::default()).unwrap();
            tags.push(tag);
        }
        tags.sort_unstable();
        tags.dedup();
        tags
    }

    fn described_numbers(message: &str) -> Vec<u32> {
        let (_, fields) = MESSAGES.iter().find(|(name, _)| *name == message).unwrap();
        (1..).take(fields.len()).collect()
    }

    #[test]
    fn the_description_has_the_fields_of_the_messages() {
        let map = || [("k".to_owned(), "v".to_owned())].into();
        let resources = LinuxContainerResources {
            cpu_period: 1,
            cpu_quota: 1,
            cpu_shares: 1,
            memory_limit_in_bytes: 1,
            oom_score_adj: 1,
            cpuset_cpus: "0".into(),
            cpuset_mems: "0".into(),
            hugepage_limits: vec![crate::hookserver::HugepageLimit::default()],
            unified: map(),
            memory_swap_limit_in_bytes: 1,
        };
        assert_eq!(tags(&resources.encode_to_vec()), described_numbers("LinuxContainerResources"));
        let pod = PodSandboxHookRequest {
            pod_meta: Some(PodSandboxMetadata::default()),
            runtime_handler: "runc".into(),
            labels: map(),
            annotations: map(),
            cgroup_parent: "/a".into(),
            overhead: Some(resources.clone()),
            resources: Some(resources.clone()),
        };
        assert_eq!(tags(&pod.encode_to_vec()), described_numbers("PodSandboxHookRequest"));
        let container = ContainerResourceHookRequest {
            pod_meta: Some(PodSandboxMetadata::default()),
            container_meta: Some(ContainerMetadata::default()),
            container_annotations: map(),
            container_resources: Some(resources.clone()),
            pod_resources: Some(resources),
            pod_annotations: map(),
            pod_labels: map(),
            pod_cgroup_parent: "/a".into(),
            container_envs: map(),
        };
        assert_eq!(tags(&container.encode_to_vec()), described_numbers("ContainerResourceHookRequest"));
    }

    #[test]
    fn entries_of_maps_are_named_as_protoc_names_them() {
        assert_eq!(entry_name("container_envs"), "ContainerEnvsEntry");
        assert_eq!(lower_camel("memory_limit_in_bytes"), "memoryLimitInBytes");
    }
}
