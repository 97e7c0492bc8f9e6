//! `/validate-node`: a node whose labels would give it several strategies of one key is refused.

use koord_profile::Texts;
use koord_resource::admission::{Denial, Operation, Patch, Request};
use koord_types::slo_config::CHECKED_KEYS;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::NodeView;
use crate::{
    Ctx, decode,
    slo_config::{Example, conflict, strategies},
};

/// Checks the labels of nodes.
#[koord_resource::admission(
    path = "/validate-node",
    gate = "NodeValidatingWebhook",
    name = "vnode.koordinator.sh",
    within = Ctx::nodes,
    on = [Create, Update],
    object_type = "node", groups = [""], versions = ["v1"], resources = ["nodes"],
    rbac(group = "", resource = "configmaps", verbs = [list, watch]),
)]
pub fn validate_node(request: &Request<'_>, view: NodeView<'_>) -> Result<Patch, Denial> {
    validate(request, view).map(|()| Patch::default())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Node<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    name: Option<String>,
    #[serde(borrow)]
    labels: Texts<'a>,
}

fn read(raw: Option<&RawValue>) -> Result<Metadata<'_>, Denial> {
    let node: Node<'_> = decode::object(raw)?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    decode::kind(&text(&node.api_version), &text(&node.kind), ("v1", "Node"), "*v1.Node")?;
    Ok(node.metadata.unwrap_or_default())
}

/// New nodes pass: they must be able to join whatever the configuration says.
fn validate(request: &Request<'_>, view: NodeView<'_>) -> Result<(), Denial> {
    let of_nodes = request.sub_resource.is_empty() && request.resource.resource == "nodes";
    if !of_nodes {
        return Ok(());
    }
    // Whatever is done, what it is done to must be a node.
    if request.operation == Operation::Delete {
        return request.old_object.map_or(Ok(()), |_| read(request.old_object).map(drop));
    }
    let node = read(request.object)?;
    if request.operation != Operation::Update || read(request.old_object)?.labels.same(&node.labels) {
        return Ok(());
    }
    let config = view.slo_config.read();
    let Some(entry) = config.get(&view.name.key()) else { return Ok(()) };
    let Some(data) = &entry.value.data else { return Ok(()) };
    let name = node.name.unwrap_or_default();
    for key in CHECKED_KEYS {
        // A key that would be refused now is in force as it was before, which nobody knows here.
        let Some(chosen) = strategies(key, data) else { continue };
        conflict(key, &chosen, &Example { name: &name, label: |key: &str| node.labels.get(key) })?;
    }
    Ok(())
}
