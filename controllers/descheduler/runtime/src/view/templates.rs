//! Templates of pods. One serves all pods of a workload, and is made of the first of them.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use k8s_openapi::api::core::v1::PodSpec;
use koord_descheduler_framework::{
    Labels,
    pod::{Template, template},
};
use koord_runtime::{
    intern::{Interner, Kept, Shares},
    projection::{DecodeError, WireMetadata},
};
use serde_json::value::RawValue;

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The members of a spec that differ between pods of one workload, and that no template has.
const OWN: [&str; 4] = ["nodeName", "hostname", "subdomain", "schedulingGates"];
/// The members of containers that matter. Others, such as mounts, name volumes that only one pod has.
const OF_CONTAINERS: [&str; 5] = ["name", "image", "resources", "ports", "restartPolicy"];
/// The sources of volumes that matter. Those of claims have the name of the volume, where the claim is named after it.
const OF_VOLUMES: [&str; 11] = [
    "emptyDir",
    "hostPath",
    "persistentVolumeClaim",
    "ephemeral",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "azureDisk",
    "cinder",
    "portworxVolume",
    "iscsi",
    "rbd",
];

/// A spec, taken apart as far as it is needed to see whether it equals another.
pub(super) struct Shape<'a> {
    /// The node of the pod.
    pub(super) node: Option<Cow<'a, str>>,
    text: &'a str,
    members: Members<'a>,
}

/// Templates by 128 bits of what they are made of, with secret keys: that two texts have the same is not to be expected of any cluster, and cannot be
/// brought about.
#[derive(Default)]
pub(super) struct Templates {
    known: Kept<[u64; 2], Template>,
    keys: [RandomState; 2],
    text: Vec<u8>,
}

impl Shares for Templates {
    fn sweep(&mut self) {
        self.known.sweep();
    }

    fn len(&self) -> usize {
        self.known.len()
    }
}

impl<'a> Shape<'a> {
    pub(super) fn of(spec: Option<&'a RawValue>) -> Result<Self, DecodeError> {
        let text = spec.map_or("{}", RawValue::get);
        let members: Members<'a> = read(text)?;
        let node: Option<Cow<'a, str>> = match members.get("nodeName") {
            Some(node) => read(node.get())?,
            None => None,
        };
        Ok(Self { node: node.filter(|node| !node.is_empty()), text, members })
    }

    /// Writes what its template depends on.
    fn write(&self, to: &mut Vec<u8>) -> Result<(), DecodeError> {
        for (key, value) in self.members.iter().filter(|(key, _)| !OWN.contains(&key.as_ref())) {
            match &**key {
                "containers" | "initContainers" => {
                    add(to, key);
                    for container in read::<Option<Vec<Members<'_>>>>(value.get())?.iter().flatten() {
                        add_members(to, container, &OF_CONTAINERS);
                    }
                }
                "volumes" => {
                    add(to, key);
                    for volume in read::<Option<Vec<Members<'_>>>>(value.get())?.iter().flatten() {
                        let of = if volume.contains_key("ephemeral") { "name" } else { "" };
                        add_members(to, volume, &OF_VOLUMES);
                        add_members(to, volume, &[of]);
                    }
                }
                _ => {
                    add(to, key);
                    add(to, value.get());
                }
            }
        }
        Ok(())
    }
}

impl Templates {
    /// The size of the buffer that is kept between pods.
    const TEXT_MAX: usize = 1 << 16;

    /// The template of a pod.
    pub(super) fn template(
        metadata: &WireMetadata<'_>,
        annotations: &BTreeMap<Cow<'_, str>, Cow<'_, str>>,
        shape: &Shape<'_>,
        strings: &mut Interner,
    ) -> Result<Arc<Template>, DecodeError> {
        let wishes = annotations.iter().filter(|(key, _)| koord_scheduler_framework::template::is_wish(key));
        let annotations: BTreeMap<&str, &str> = wishes.map(|(key, value)| (&**key, &**value)).collect();
        let templates = strings.own::<Self>();
        templates.text.clear();
        templates.text.shrink_to(Self::TEXT_MAX);
        add(&mut templates.text, &metadata.namespace);
        add(&mut templates.text, metadata.labels.map_or("", RawValue::get));
        for (key, value) in &annotations {
            add(&mut templates.text, key);
            add(&mut templates.text, value);
        }
        shape.write(&mut templates.text)?;
        let key = templates.keys.each_ref().map(|state| state.hash_one(&*templates.text));
        if let Some(known) = templates.known.find(&key) {
            return Ok(Arc::clone(known));
        }
        let labels: BTreeMap<Cow<'_, str>, Cow<'_, str>> = super::borrowed("metadata.labels", metadata.labels)?;
        let labels: Labels = labels.iter().map(|(key, value)| (strings.intern(key), strings.intern(value))).collect();
        let spec: PodSpec = read(shape.text)?;
        let new = template(&metadata.namespace, labels, &annotations, &spec);
        let new = new.map_err(|error| DecodeError::new("spec.containers.resources", error))?;
        Ok(strings.own::<Self>().known.keep(key, new))
    }
}

fn read<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|error| DecodeError::new("spec", error))
}

/// Adds a text such that two texts in a row differ from other two.
fn add(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(text.as_bytes());
    // No text of JSON, name or label has this byte.
    to.push(0);
}

fn add_members(to: &mut Vec<u8>, members: &Members<'_>, keys: &[&str]) {
    for key in keys {
        if let Some(value) = members.get(*key) {
            add(to, key);
            add(to, value.get());
        }
    }
    to.push(1);
}
