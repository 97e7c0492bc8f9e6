//! What a step does: a kubectl command that the reader could type, and the same thing done without kubectl.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use http::{Method, header::CONTENT_TYPE};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::object::Object;

/// Something that is done, and what is expected of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Act {
    #[serde(flatten)]
    pub action: Action,
    /// Part of the message with which it is refused. Without it, it succeeds.
    pub refused: Option<String>,
}

/// Something that can be done.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Create an object.
    Create(Manifest),
    /// Change an object by a merge patch.
    Patch { of: Object, with: Manifest },
    /// Set annotations, or remove those without a value.
    Annotate(Marks),
    /// Set labels, or remove those without a value.
    Label(Marks),
    /// Let nothing new onto a node, and evict what runs there.
    Drain(String),
    /// Let pods onto a node again.
    Uncordon(String),
}

/// Annotations or labels of an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    of: Object,
    set: BTreeMap<String, Option<String>>,
}

/// YAML as it was written, so that a reader sees the text that is sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Manifest {
    text: String,
    value: Value,
}

impl TryFrom<String> for Manifest {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        let value = serde_saphyr::from_str(&text)?;
        Ok(Self { text, value })
    }
}

/// What became of an action, in the words of kubectl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(String),
    /// The API server or a webhook does not let it be done.
    Refused(String),
}

impl Act {
    /// Does it, and fails when it goes otherwise than expected.
    pub async fn perform(&self, client: &Client) -> Result<Outcome> {
        let outcome = self.action.perform(client).await?;
        match (&outcome, &self.refused) {
            (Outcome::Done(_), None) => {}
            (Outcome::Refused(message), Some(part)) if message.contains(part.as_str()) => {}
            (Outcome::Done(_), Some(part)) => bail!("it should have been refused with {part:?}"),
            (Outcome::Refused(message), _) => bail!("it is refused: {message}"),
        }
        Ok(outcome)
    }
}

impl Action {
    /// The command that does it.
    pub fn command(&self) -> String {
        match self {
            Action::Create(manifest) => format!("kubectl create -f - <<'YAML'\n{}YAML", manifest.text),
            Action::Patch { of, with } => {
                let (namespace, object) = (of.namespace_flag(), of.arguments());
                format!(
                    "kubectl {namespace}patch {object} --type=merge --patch-file=/dev/stdin <<'YAML'\n{}YAML",
                    with.text
                )
            }
            Action::Annotate(marks) => marks.command("annotate"),
            Action::Label(marks) => marks.command("label"),
            Action::Drain(node) => format!("kubectl drain {node} --force"),
            Action::Uncordon(node) => format!("kubectl uncordon {node}"),
        }
    }

    async fn perform(&self, client: &Client) -> Result<Outcome> {
        match self {
            Action::Create(manifest) => {
                let object = manifest.object()?;
                let created = send(client, Method::POST, &object.siblings_path(), &manifest.value).await?;
                Ok(outcome(created, || object.done("created")))
            }
            Action::Patch { of, with } => patch(client, of, &with.value, "patched").await,
            Action::Annotate(marks) => {
                let patch_of = json!({"metadata": {"annotations": marks.set}});
                patch(client, &marks.of, &patch_of, "annotated").await
            }
            Action::Label(marks) => {
                patch(client, &marks.of, &json!({"metadata": {"labels": marks.set}}), "labeled").await
            }
            Action::Drain(node) => drain(client, node).await,
            Action::Uncordon(node) => {
                let node = Object::new("node", "", node)?;
                patch(client, &node, &json!({"spec": {"unschedulable": null}}), "uncordoned").await
            }
        }
    }
}

impl Marks {
    fn command(&self, verb: &str) -> String {
        let mut command = format!("kubectl {}{verb} --overwrite {}", self.of.namespace_flag(), self.of.arguments());
        for (name, value) in &self.set {
            command.push(' ');
            command.push_str(&value.as_ref().map_or_else(|| format!("{name}-"), |value| format!("{name}={value}")));
        }
        command
    }
}

impl Manifest {
    fn object(&self) -> Result<Object> {
        let text = |pointer: &str| self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Object::new(&text("/kind").to_ascii_lowercase(), text("/metadata/namespace"), text("/metadata/name"))
    }
}

async fn patch(client: &Client, object: &Object, patch: &Value, done: &str) -> Result<Outcome> {
    let answer = send(client, Method::PATCH, &object.path(), patch).await?;
    Ok(outcome(answer, || object.done(done)))
}

async fn drain(client: &Client, name: &str) -> Result<Outcome> {
    let node = Object::new("node", "", name)?;
    let mut done = match patch(client, &node, &json!({"spec": {"unschedulable": true}}), "cordoned").await? {
        Outcome::Done(text) => vec![text],
        refused @ Outcome::Refused(_) => return Ok(refused),
    };
    let path = format!("/api/v1/pods?fieldSelector=spec.nodeName={name}");
    let pods: Value = client.request(http::Request::get(path).body(Vec::new())?).await?;
    for pod in pods["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let pod = Object::new("pod", &text("namespace"), &text("name"))?;
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"namespace": pod.namespace(), "name": pod.name()},
        });
        match send(client, Method::POST, &format!("{}/eviction", pod.path()), &eviction).await? {
            Ok(()) => done.push(pod.done("evicted")),
            Err(message) => return Ok(Outcome::Refused(message)),
        }
    }
    done.push(node.done("drained"));
    Ok(Outcome::Done(done.join("\n")))
}

fn outcome(answer: Result<(), String>, done: impl FnOnce() -> String) -> Outcome {
    answer.map_or_else(Outcome::Refused, |()| Outcome::Done(done()))
}

/// Sends a body; the inner error is the server's refusal.
async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Result<Result<(), String>> {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(&method).uri(path).header(CONTENT_TYPE, content);
    match client.request::<Value>(request.body(serde_json::to_vec(body)?)?).await {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
        Err(error) => Err(error).with_context(|| format!("{method} {path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::up::scenario;

    fn act(value: Value) -> Act {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn commands_are_what_a_reader_would_type() {
        let commands = [
            act(json!({"annotate": {"of": "nodemetric n", "set": {"a/b": "1", "c": null}}})),
            act(json!({"patch": {"of": "configmap s/c", "with": "data: {}\n"}})),
            act(json!({"drain": "n"})),
            act(json!({"create": "kind: Pod\nmetadata: {name: p}\n", "refused": "no"})),
        ]
        .map(|act| act.action.command());
        assert_eq!(
            commands,
            [
                "kubectl annotate --overwrite nodemetric n a/b=1 c-",
                "kubectl -n s patch configmap c --type=merge --patch-file=/dev/stdin <<'YAML'\ndata: {}\nYAML",
                "kubectl drain n --force",
                "kubectl create -f - <<'YAML'\nkind: Pod\nmetadata: {name: p}\nYAML",
            ]
        );
    }

    #[test]
    fn every_manifest_names_an_object_that_can_be_created() {
        for step in ["tour", "scheduling"].into_iter().flat_map(|name| scenario::find(name).unwrap().steps) {
            for act in step.acts {
                if let Action::Create(manifest) = act.action {
                    let object = manifest.object().unwrap();
                    assert!(!object.name().is_empty() && manifest.text.ends_with('\n'), "{manifest:?}");
                }
            }
        }
    }
}
