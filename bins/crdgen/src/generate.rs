//! The generated files: where they are and what is in them.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use koord_resource::{
    admission::WebhookKind,
    controller::ControllerSpec,
    document::{Declared, reference_page, roles, sample_skeleton, yaml},
};
use serde_json::{Value, json};

use crate::{chart, monitoring};

/// The command that the header of every generated file names.
pub(crate) const COMMAND: &str = "cargo run --bin crdgen -- --write";

/// Folders in which every file is generated.
const FOLDERS: &[&str] =
    &["config/crd/bases", "config/samples/skeletons", "docs/reference", "charts/koordinator/files/crds", chart::FILES];

/// Where the manager is installed unless somebody says otherwise, and what its parts are called.
pub(crate) const NAMESPACE: &str = "koordinator-system";
pub(crate) const MANAGER_ROLE: &str = "koord-manager-role";
pub(crate) const PROFILE_ROLE: &str = "koord-manager-colocation-profile-role";
const SERVICE: &str = "koordinator-webhook-service";
const MUTATING_CONFIGURATION: &str = "koordinator-mutating-webhook-configuration";
const VALIDATING_CONFIGURATION: &str = "koordinator-validating-webhook-configuration";

/// One generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Path from the root of the repository.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// All generated files, in the order of kinds.
pub fn documents(definitions: &[Value]) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    let mut bases = Vec::new();
    for definition in definitions {
        let name = file_name(definition)?;
        let text = yaml_text(definition)?;
        documents.push(Document { path: format!("{}/crds/{name}", chart::FILES), text: text.clone() });
        documents.push(Document { path: format!("config/crd/bases/{name}"), text });
        bases.push(name);
    }
    documents.push(Document { path: "config/crd/kustomization.yaml".to_owned(), text: kustomization(&bases) });
    let optional: Vec<_> = koord_manager::optional_controllers().flat_map(ControllerSpec::rbac_rules).collect();
    for (file, name, rules) in
        [("role", MANAGER_ROLE, koord_manager::rbac_rules()), ("colocation-profile/role", PROFILE_ROLE, optional)]
    {
        let text = yaml_stream(&roles(name, &rules, NAMESPACE))?;
        documents.push(Document { path: format!("config/rbac/{file}.yaml"), text });
    }
    let webhooks = webhook_configurations()?;
    documents.push(Document { path: "config/webhook/manifests.yaml".to_owned(), text: yaml_stream(&webhooks)? });
    documents.extend(chart::documents()?);
    for versions in koord_api::KINDS {
        documents.extend(pages(versions));
    }
    documents.extend(monitoring::documents(&koord_manager::metrics())?);
    documents.push(Document { path: "docs/reference/README.md".to_owned(), text: index() });
    Ok(documents)
}

/// Both webhook configurations. They have the entries that are served while nobody touches a gate; the annotation that
/// the manager rebuilds entries from has all, so that gates bring further ones, and applying the file again finds
/// nothing to change. The certificate authority is left to the manager for the same reason.
fn webhook_configurations() -> Result<Vec<Value>> {
    let kinds = [
        (WebhookKind::Mutating, "MutatingWebhookConfiguration", MUTATING_CONFIGURATION),
        (WebhookKind::Validating, "ValidatingWebhookConfiguration", VALIDATING_CONFIGURATION),
    ];
    kinds.into_iter().map(|(kind, kind_name, name)| configuration(kind, kind_name, name)).collect()
}

fn configuration(kind: WebhookKind, kind_name: &str, name: &str) -> Result<Value> {
    let entries = chart::entries(kind)?;
    let written = |entry: &chart::Entry| entry.in_configuration(NAMESPACE, SERVICE);
    let template = serde_json::to_string(&entries.iter().map(written).collect::<Value>())?;
    let webhooks: Value = entries.iter().filter(|entry| entry.is_served_by_default()).map(written).collect();
    Ok(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind_name,
        "metadata": {"name": name, "annotations": {"template": template}},
        "webhooks": webhooks,
    }))
}

/// Files in generated folders that nothing generates.
pub fn leftovers(root: &Path, documents: &[Document]) -> Result<Vec<String>> {
    let mut leftovers = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        for entry in entries {
            let entry = entry.with_context(|| format!("{folder} cannot be read"))?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if !root.join(&path).is_dir() && documents.iter().all(|document| document.path != path) {
                leftovers.push(path);
            }
        }
    }
    leftovers.sort();
    Ok(leftovers)
}

/// As controller-gen names it: group and plural.
fn file_name(definition: &Value) -> Result<String> {
    let text = |field: &Value| field.as_str().map(str::to_owned).context("a definition without group or plural");
    Ok(format!("{}_{}.yaml", text(&definition["spec"]["group"])?, text(&definition["spec"]["names"]["plural"])?))
}

pub(crate) fn yaml_text(value: &Value) -> Result<String> {
    Ok(format!("# Generated by `{COMMAND}`.\n---\n{}", yaml::document(value)?))
}

fn yaml_stream(values: &[Value]) -> Result<String> {
    Ok(format!("# Generated by `{COMMAND}`.\n{}", yaml::stream(values)?))
}

fn kustomization(bases: &[String]) -> String {
    let mut text = format!(
        "# Generated by `{COMMAND}`.\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
    );
    for name in bases {
        let _ = writeln!(text, "- bases/{name}");
    }
    text
}

/// The reference page of a kind, and a skeleton per version that objects are stored in.
fn pages(versions: &[Declared]) -> Vec<Document> {
    let Some(stored) = versions.iter().find(|version| version.info.served.storage) else { return Vec::new() };
    let page = format!("<!-- Generated by `{COMMAND}`. -->\n{}", reference_page(versions));
    let skeleton = format!("# Generated by `{COMMAND}`.\n{}", sample_skeleton(stored));
    let name = stored.info.kind.to_lowercase();
    vec![
        Document { path: format!("docs/reference/{name}.md"), text: page },
        Document { path: format!("config/samples/skeletons/{name}.yaml"), text: skeleton },
    ]
}

fn index() -> String {
    let mut text =
        format!("<!-- Generated by `{COMMAND}`. -->\n# Reference\n\n| kind | group | scope |\n|---|---|---|\n");
    let stored = koord_api::KINDS.iter().filter_map(|versions| versions.iter().find(|one| one.info.served.storage));
    for declared in stored {
        let info = declared.info;
        let _ =
            writeln!(text, "| [{}]({}.md) | {} | {:?} |", info.kind, info.kind.to_lowercase(), info.group, info.scope);
    }
    text += "\nFor operators: [metrics and alerts](metrics.md), [values of the chart](values.md).\n";
    text
}
