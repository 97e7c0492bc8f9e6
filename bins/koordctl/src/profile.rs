//! `koordctl profile test`: which ClusterColocationProfiles match a pod, and what they make of it.
//!
//! The webhook's own handlers answer, fed with objects of a cluster or of files.

mod dependencies;
mod report;

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use koord_webhook_handlers::pod::mutate::rehearsal::rehearse;
use serde_json::{Value, json};

use self::{dependencies::Dependencies, report::Report};
use crate::{
    Answer,
    cli::{OutputFormat, ProfileCommand, ProfileTestArgs},
    files,
    screen::Screen,
};

/// Stands for the uid of the request, from which pods without a name draw.
const UID: &str = "koordctl";

/// Does what is asked about profiles.
pub async fn run(command: &ProfileCommand, screen: Screen) -> Result<Answer> {
    let ProfileCommand::Test(args) = command;
    let pods = pods(args)?;
    let dependencies = Dependencies::load(args).await?;
    let mut reports = Vec::new();
    for Pod { shown, namespace, object } in &pods {
        let rehearsal = rehearse(dependencies.ctx.pods(), object, namespace, UID);
        let rehearsal = rehearsal.map_err(|denial| anyhow!("{shown} cannot be read: {}", denial.message))?;
        reports.push(Report { shown, namespace, object, rehearsal, dependencies: &dependencies });
    }
    let text = match args.answer.output {
        OutputFormat::Json | OutputFormat::Yaml => {
            let pods: Vec<Value> = reports.iter().map(Report::to_json).collect();
            args.answer.output.document(&json!({"pods": pods, "setAside": dependencies.set_aside_json()}))?
        }
        OutputFormat::Table => {
            let texts: Vec<String> = reports.iter().map(|report| report.to_text(screen)).collect();
            format!("{}{}", dependencies.set_aside_text(), texts.join("\n"))
        }
    };
    let refused = reports.iter().any(|report| report.rehearsal.outcome.is_err());
    Ok(if refused { Answer::failure(text) } else { Answer::success(text) })
}

/// A pod that would be made.
struct Pod {
    /// How it is named to the user.
    shown: String,
    namespace: String,
    object: Value,
}

/// The pods in the files, and those that would be made from the templates in them.
fn pods(args: &ProfileTestArgs) -> Result<Vec<Pod>> {
    const TEMPLATES: [&str; 2] = ["/spec/jobTemplate/spec/template", "/spec/template"];
    let mut pods = Vec::new();
    for mut object in files::objects(&args.files)? {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let own = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let namespace = args.namespace.clone().or(own).unwrap_or_else(|| "default".to_owned());
        if kind != "Pod" {
            let template = TEMPLATES.iter().find_map(|path| object.pointer(path).cloned());
            let Some(template) = template else {
                bail!(
                    "{kind} {name} is no pod and has no template of pods; name a file with a pod, or with a Deployment, Job or the like"
                );
            };
            object =
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
            if object["metadata"].is_null() {
                object["metadata"] = json!({});
            }
            // The API server names what is made from a template.
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("name"));
        }
        object["metadata"]["namespace"] = namespace.clone().into();
        let shown = if kind == "Pod" {
            format!("Pod {namespace}/{name}")
        } else {
            format!("pods of {kind} {namespace}/{name}")
        };
        pods.push(Pod { shown, namespace, object });
    }
    if pods.is_empty() {
        let files: Vec<String> = args.files.iter().map(|file: &PathBuf| file.display().to_string()).collect();
        bail!("there is no object in {}", files.join(", "));
    }
    Ok(pods)
}
