//! `/mutate-node-status`: a node that promises more than it has keeps its amplified amounts when kubelet writes its
//! own, and remembers what it really has.

use std::borrow::Cow;

use koord_profile::Texts;
use koord_resource::{
    Quantity, ResourceList,
    admission::{Denial, Operation, Patch, Request, text},
    field::Path,
    go_json,
};
use koord_types::node_annotations::{RAW_ALLOCATABLE, RESOURCE_AMPLIFICATION_RATIO};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Ctx, decode, resources::Amounts};

/// Keeps the amplified amounts of a node.
#[koord_resource::admission(
    path = "/mutate-node-status",
    gate = "NodeMutatingWebhook",
    name = "mnode-status.koordinator.sh",
    on = [Create, Update],
    object_type = "node", groups = [""], versions = ["v1"], resources = ["nodes/status"],
)]
pub fn mutate_node_status(request: &Request<'_>, _: &Ctx) -> Result<Patch, Denial> {
    mutate(request)
}

/// What is amplified.
const AMPLIFIED: [&str; 2] = ["cpu", "memory"];

/// A node. Absent and `null` are the same everywhere.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Node<'a> {
    #[serde(borrow, deserialize_with = "text")]
    api_version: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    status: Option<Status<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    annotations: Texts<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    allocatable: Option<Amounts<'a>>,
}

fn read(raw: Option<&RawValue>) -> Result<Node<'_>, Denial> {
    let node: Node<'_> = decode::object(raw)?;
    decode::kind(&node.api_version, &node.kind, ("v1", "Node"), "*v1.Node")?;
    Ok(node)
}

fn mutate(request: &Request<'_>) -> Result<Patch, Denial> {
    let of_status = request.sub_resource == "status" && request.resource.resource == "nodes";
    if !of_status {
        return Ok(Patch::default());
    }
    // Whatever is done, what it is done to must be a node.
    if request.operation == Operation::Delete {
        return request.old_object.map_or(Ok(()), |_| read(request.old_object).map(drop)).map(|()| Patch::default());
    }
    let node = read(request.object)?;
    if request.operation != Operation::Update {
        return Ok(Patch::default());
    }
    let before = read(request.old_object)?;
    let mut annotations = node.metadata.unwrap_or_default().annotations;
    let (metadata, status) = (Path::root("metadata"), Path::root("status"));
    let annotations_at = metadata.child("annotations");
    let mut patch = Patch::default();

    let ratios = annotations.get(RESOURCE_AMPLIFICATION_RATIO.name()).unwrap_or_default().to_owned();
    if ratios.is_empty() {
        if annotations.get(RAW_ALLOCATABLE.name()).is_some() {
            patch.remove(&annotations_at.key(RAW_ALLOCATABLE.name()))?;
        }
        return Ok(patch);
    }
    let Some(mut allocatable) = node.status.and_then(|status| status.allocatable) else { return Ok(patch) };
    let before = before.status.and_then(|status| status.allocatable).unwrap_or_default();
    if is_own_answer(&annotations, &ratios, &allocatable) {
        return Ok(patch);
    }
    let Some(raw) = raw(&mut annotations, &allocatable, &before)? else { return Ok(patch) };
    let ratios = RESOURCE_AMPLIFICATION_RATIO.read(&ratios).map_err(|error| {
        Denial::internal(format!("failed to unmarshal node resource amplification ratio: {}", error.reason))
    })?;
    for resource in AMPLIFIED {
        let ratio = ratios.ratio(resource);
        if let Some(amount) = raw.get(resource).filter(|_| ratio > 1.0) {
            allocatable.set(resource, amplified(resource, amount, ratio));
        }
    }
    annotations.write(&annotations_at, &mut patch)?;
    allocatable.write(&status.child("allocatable"), &mut patch)?;
    Ok(patch)
}

/// An amount with its factor: CPU in thousandths of cores, memory in whole bytes, because there are no others.
fn amplified(resource: &str, amount: &Quantity, ratio: f64) -> Quantity {
    if resource == "memory" { amount.scaled_by(ratio) } else { amount.milli_scaled_by(ratio) }
}

/// Whether the amounts are those that the annotations of the same object give: this handler was asked already, and
/// asking twice must not amplify twice.
fn is_own_answer(annotations: &Texts<'_>, ratios: &str, allocatable: &Amounts<'_>) -> bool {
    let Some(remembered) = annotations.get(RAW_ALLOCATABLE.name()) else { return false };
    let (Ok(raw), Ok(ratios)) =
        (go_json::from_str::<ResourceList>(remembered), RESOURCE_AMPLIFICATION_RATIO.read(ratios))
    else {
        return false;
    };
    AMPLIFIED.iter().all(|resource| {
        let ratio = ratios.ratio(resource);
        let given = raw
            .get(resource)
            .map(|amount| if ratio > 1.0 { amplified(resource, amount, ratio) } else { amount.clone() });
        allocatable.get(resource) == given.as_ref()
    })
}

/// What the node really has: what kubelet just wrote, if that is new, or what the annotation remembers. None when the
/// annotation says `null`.
fn raw(
    annotations: &mut Texts<'_>,
    allocatable: &Amounts<'_>,
    before: &Amounts<'_>,
) -> Result<Option<ResourceList>, Denial> {
    let same = AMPLIFIED.iter().all(|resource| allocatable.get(resource) == before.get(resource));
    if let Some(remembered) = annotations.get(RAW_ALLOCATABLE.name()).filter(|_| same) {
        return go_json::from_str(remembered).map_err(|error| {
            let words = error.to_string().replace("map[string]string", "v1.ResourceList");
            Denial::internal(format!("failed to unmarshal node raw allocatable: {words}"))
        });
    }
    let written = |resource: &&str| Some(((*resource).to_owned(), allocatable.get(resource)?.clone()));
    let raw: ResourceList = AMPLIFIED.iter().filter_map(written).collect();
    if !raw.is_empty() {
        annotations.set(RAW_ALLOCATABLE.name(), go_json::to_string(&raw)?);
    }
    Ok(Some(raw))
}

#[cfg(test)]
mod tests {
    use koord_resource::admission::GroupVersionResource;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn memory_has_whole_bytes_and_cpu_thousandths_of_cores() {
        let amount =
            |resource: &str, amount: &str, ratio: f64| amplified(resource, &amount.parse().unwrap(), ratio).to_string();
        assert_eq!(amount("memory", "33Gi", 1.33), "47126528655");
        assert_eq!(amount("memory", "32849844Ki", 1.15), "38683976294");
        assert_eq!(amount("memory", "8Gi", 2.0), "16Gi");
        assert_eq!(amount("cpu", "3920m", 1.22), "4782m");
    }

    fn answer(node: &Value, before: &Value) -> Patch {
        let raw = |value: &Value| RawValue::from_string(value.to_string()).unwrap();
        let (object, old) = (raw(node), raw(before));
        let request = Request {
            operation: Operation::Update,
            resource: GroupVersionResource { version: "v1".into(), resource: "nodes".into(), ..Default::default() },
            sub_resource: "status".into(),
            object: Some(&object),
            old_object: Some(&old),
            ..Request::default()
        };
        mutate(&request).unwrap()
    }

    fn node(raw: Option<&str>, cpu: &str) -> Value {
        let mut node = json!({"metadata": {"annotations": {"node.koordinator.sh/resource-amplification-ratio": r#"{"cpu":1.5}"#}},
                              "status": {"allocatable": {"cpu": cpu, "memory": "8Gi"}}});
        if let Some(raw) = raw {
            node["metadata"]["annotations"]["node.koordinator.sh/raw-allocatable"] = raw.into();
        }
        node
    }

    #[test]
    fn its_own_answer_is_not_amplified_again() {
        let raw = r#"{"cpu":"8","memory":"8Gi"}"#;
        let before = node(None, "4");
        assert!(!answer(&node(None, "8"), &before).is_empty());
        assert!(answer(&node(Some(raw), "12"), &before).is_empty());
        assert!(!answer(&node(Some(raw), "16"), &before).is_empty(), "kubelet found more");
    }
}
