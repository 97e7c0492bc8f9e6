//! The generated files: where they are and what is in them.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use koord_resource::{
    admission::WebhookKind,
    controller::ControllerSpec,
    document::{Declared, reference_page, roles, sample_skeleton},
};
use koord_scheduler::{Gated, ReasonCode};
use serde_json::{Value, json};

use crate::{
    chart, configuration,
    document::{COMMAND, Document, yaml_stream, yaml_text},
    installation::{
        MANAGER_ROLE, MUTATING_CONFIGURATION, NAMESPACE, PROFILE_ROLE, SCHEDULER_ROLE, SERVICE,
        VALIDATING_CONFIGURATION, gated_role,
    },
    monitoring,
};

/// Folders in which every file is generated.
const FOLDERS: &[&str] = &[
    "config/crd/bases",
    "config/samples/skeletons",
    "docs/reference",
    "charts/koordinator/files/crds",
    chart::FILES,
    monitoring::CHART,
    configuration::SCHEMAS,
];

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
    for (file, name, rules) in [
        ("rbac/role", MANAGER_ROLE, koord_manager::rbac_rules()),
        ("rbac/colocation-profile/role", PROFILE_ROLE, optional),
        ("scheduler/role", SCHEDULER_ROLE, koord_scheduler::rbac_rules()),
    ] {
        let text = yaml_stream(&roles(name, &rules, NAMESPACE))?;
        documents.push(Document { path: format!("config/{file}.yaml"), text });
    }
    for Gated { name, rules, .. } in &koord_scheduler::GATED {
        let text = yaml_stream(&roles(&gated_role(name), rules, NAMESPACE))?;
        documents.push(Document { path: format!("config/scheduler/{name}/role.yaml"), text });
    }
    let webhooks = webhook_configurations()?;
    documents.push(Document { path: "config/webhook/manifests.yaml".to_owned(), text: yaml_stream(&webhooks)? });
    documents.extend(chart::documents()?);
    for versions in koord_api::KINDS {
        documents.extend(pages(versions));
    }
    documents.extend(monitoring::documents()?);
    documents.extend(configuration::documents()?);
    documents.push(Document { path: "docs/reference/scheduling-reasons.md".to_owned(), text: reasons() });
    documents.push(Document { path: "docs/reference/README.md".to_owned(), text: index() });
    Ok(documents)
}

/// Both webhook configurations. They have the entries that are served with the default gates; the annotation that
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

/// Why koord-scheduler refuses pods, a section for each code.
fn reasons() -> String {
    let mut text = format!(
        "<!-- Generated by `{COMMAND}`. -->\n# Why koord-scheduler refuses pods\n\n\
         The codes in the answers of `koordctl why`, at `/apis/v1/verdicts/NAMESPACE/POD` and in the status of ScheduleExplanations.\n\
         A code keeps its name and meaning; the text beside it is for people.\n"
    );
    let mut codes = ReasonCode::ALL.to_vec();
    codes.sort_by_key(|code| code.as_str());
    for code in codes {
        let (meaning, look, remedy) = (code.meaning().trim(), code.look(), code.remedy());
        let _ = write!(text, "\n## {code}\n\n{meaning}\n\n- Look at: {look}\n- What helps: {remedy}\n");
    }
    text
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
    text += "\nFor operators: metrics and alerts [of koord-manager](metrics.md) and [of koord-scheduler](scheduler-metrics.md), [values of the chart](values.md), [the configuration of koord-scheduler](scheduler-configuration.md), [codes of why pods wait](scheduling-reasons.md).\n";
    text
}
