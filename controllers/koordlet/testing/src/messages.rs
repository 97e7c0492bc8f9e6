//! The messages of the hook server and of NRI, as far as cases name their fields: what [`wire`](crate::wire) encodes by.

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holds {
    Text,
    Number,
    /// Texts by text.
    Map,
    Texts,
    Message(&'static str),
    Messages(&'static str),
}

/// A field: its name, its number, what it holds.
pub(crate) type Field = (&'static str, u64, Holds);

use Holds::{Map, Message, Messages, Number, Text, Texts};

const MESSAGES: &[(&str, &[Field])] = &[
    ("PodSandboxMetadata", &[("name", 1, Text), ("uid", 2, Text), ("namespace", 3, Text), ("attempt", 4, Number)]),
    ("ContainerMetadata", &[("name", 1, Text), ("attempt", 2, Number), ("id", 3, Text)]),
    ("HugepageLimit", &[("page_size", 1, Text), ("limit", 2, Number)]),
    (
        "LinuxContainerResources",
        &[
            ("cpu_period", 1, Number),
            ("cpu_quota", 2, Number),
            ("cpu_shares", 3, Number),
            ("memory_limit_in_bytes", 4, Number),
            ("oom_score_adj", 5, Number),
            ("cpuset_cpus", 6, Text),
            ("cpuset_mems", 7, Text),
            ("hugepage_limits", 8, Messages("HugepageLimit")),
            ("unified", 9, Map),
            ("memory_swap_limit_in_bytes", 10, Number),
        ],
    ),
    (
        "PodSandboxHookRequest",
        &[
            ("pod_meta", 1, Message("PodSandboxMetadata")),
            ("runtime_handler", 2, Text),
            ("labels", 3, Map),
            ("annotations", 4, Map),
            ("cgroup_parent", 5, Text),
            ("overhead", 6, Message("LinuxContainerResources")),
            ("resources", 7, Message("LinuxContainerResources")),
        ],
    ),
    (
        "PodSandboxHookResponse",
        &[
            ("labels", 1, Map),
            ("annotations", 2, Map),
            ("cgroup_parent", 3, Text),
            ("resources", 4, Message("LinuxContainerResources")),
        ],
    ),
    (
        "ContainerResourceHookRequest",
        &[
            ("pod_meta", 1, Message("PodSandboxMetadata")),
            ("container_meta", 2, Message("ContainerMetadata")),
            ("container_annotations", 3, Map),
            ("container_resources", 4, Message("LinuxContainerResources")),
            ("pod_resources", 5, Message("LinuxContainerResources")),
            ("pod_annotations", 6, Map),
            ("pod_labels", 7, Map),
            ("pod_cgroup_parent", 8, Text),
            ("container_envs", 9, Map),
        ],
    ),
    (
        "ContainerResourceHookResponse",
        &[
            ("container_annotations", 1, Map),
            ("container_resources", 2, Message("LinuxContainerResources")),
            ("pod_cgroup_parent", 3, Text),
            ("container_envs", 4, Map),
        ],
    ),
    (
        "NriPod",
        &[
            ("id", 1, Text),
            ("name", 2, Text),
            ("uid", 3, Text),
            ("namespace", 4, Text),
            ("labels", 5, Map),
            ("annotations", 6, Map),
            ("runtime_handler", 7, Text),
            ("linux", 8, Message("NriLinuxPod")),
        ],
    ),
    (
        "NriLinuxPod",
        &[
            ("pod_overhead", 1, Message("NriResources")),
            ("pod_resources", 2, Message("NriResources")),
            ("cgroup_parent", 3, Text),
            ("cgroups_path", 4, Text),
            ("resources", 6, Message("NriResources")),
        ],
    ),
    (
        "NriContainer",
        &[
            ("id", 1, Text),
            ("pod_sandbox_id", 2, Text),
            ("name", 3, Text),
            ("state", 4, Number),
            ("labels", 5, Map),
            ("annotations", 6, Map),
            ("args", 7, Texts),
            ("env", 8, Texts),
            ("mounts", 9, Messages("NriMount")),
            ("linux", 11, Message("NriLinuxContainer")),
        ],
    ),
    ("NriMount", &[("destination", 1, Text), ("type", 2, Text), ("source", 3, Text), ("options", 4, Texts)]),
    (
        "NriLinuxContainer",
        &[
            ("devices", 2, Messages("NriDevice")),
            ("resources", 3, Message("NriResources")),
            ("oom_score_adj", 4, Message("NriInt")),
            ("cgroups_path", 5, Text),
        ],
    ),
    (
        "NriDevice",
        &[
            ("path", 1, Text),
            ("type", 2, Text),
            ("major", 3, Number),
            ("minor", 4, Number),
            ("file_mode", 5, Message("NriInt")),
        ],
    ),
    (
        "NriResources",
        &[
            ("memory", 1, Message("NriMemory")),
            ("cpu", 2, Message("NriCPU")),
            ("hugepage_limits", 3, Messages("HugepageLimit")),
            ("blockio_class", 4, Message("NriString")),
            ("rdt_class", 5, Message("NriString")),
            ("unified", 6, Map),
        ],
    ),
    (
        "NriMemory",
        &[("limit", 1, Message("NriInt")), ("reservation", 2, Message("NriInt")), ("swap", 3, Message("NriInt"))],
    ),
    (
        "NriCPU",
        &[
            ("shares", 1, Message("NriInt")),
            ("quota", 2, Message("NriInt")),
            ("period", 3, Message("NriInt")),
            ("cpus", 6, Text),
            ("mems", 7, Text),
        ],
    ),
    ("NriInt", &[("value", 1, Number)]),
    ("NriString", &[("value", 1, Text)]),
    ("NriKV", &[("key", 1, Text), ("value", 2, Text)]),
    ("NriRdt", &[("clos_id", 1, Message("NriString"))]),
    (
        "NriAdjust",
        &[
            ("annotations", 2, Map),
            ("mounts", 3, Messages("NriMount")),
            ("env", 4, Messages("NriKV")),
            ("linux", 6, Message("NriLinuxAdjust")),
        ],
    ),
    (
        "NriLinuxAdjust",
        &[
            ("devices", 1, Messages("NriDevice")),
            ("resources", 2, Message("NriResources")),
            ("cgroups_path", 3, Text),
            ("oom_score_adj", 4, Message("NriInt")),
            ("rdt", 11, Message("NriRdt")),
        ],
    ),
    ("NriLinuxUpdate", &[("resources", 1, Message("NriResources"))]),
    ("NriUpdate", &[("container_id", 1, Text), ("linux", 2, Message("NriLinuxUpdate")), ("ignore_failure", 3, Number)]),
    (
        "StateChangeEvent",
        &[("event", 1, Number), ("pod", 2, Message("NriPod")), ("container", 3, Message("NriContainer"))],
    ),
    ("CreateContainerRequest", &[("pod", 1, Message("NriPod")), ("container", 2, Message("NriContainer"))]),
    ("CreateContainerResponse", &[("adjust", 1, Message("NriAdjust")), ("update", 2, Messages("NriUpdate"))]),
    (
        "UpdateContainerRequest",
        &[
            ("pod", 1, Message("NriPod")),
            ("container", 2, Message("NriContainer")),
            ("linux_resources", 3, Message("NriResources")),
        ],
    ),
    ("UpdateContainerResponse", &[("update", 1, Messages("NriUpdate"))]),
    ("RegisterPluginRequest", &[("plugin_name", 1, Text), ("plugin_idx", 2, Text)]),
    (
        "ConfigureRequest",
        &[
            ("config", 1, Text),
            ("runtime_name", 2, Text),
            ("runtime_version", 3, Text),
            ("registration_timeout", 4, Number),
            ("request_timeout", 5, Number),
        ],
    ),
    ("ConfigureResponse", &[("events", 2, Number)]),
    ("SynchronizeRequest", &[("pods", 1, Messages("NriPod")), ("containers", 2, Messages("NriContainer"))]),
    ("SynchronizeResponse", &[("update", 1, Messages("NriUpdate"))]),
];

/// The fields of a message.
pub(crate) fn fields(message: &str) -> &'static [Field] {
    let found = MESSAGES.iter().find(|(name, _)| *name == message);
    found.unwrap_or_else(|| panic!("unknown message {message}")).1
}
