//! `koordctl config effective`: the complete configuration of a component or of koord-manager, with what its source leaves out.

mod component;
mod manager;

use anyhow::{Result, anyhow, bail};
use koord_config::Kind;
use koord_resource::controller::ResourceKind;
use serde_json::Value;

use self::manager::Source;
use crate::{
    Answer,
    cli::{ConfigCommand, EffectiveArgs},
    connect, files,
    names::{few, question},
    reviewer::Reviewer,
    screen::Screen,
};

/// Prints what is in force.
pub async fn run(command: &ConfigCommand, screen: Screen) -> Result<Answer> {
    let ConfigCommand::Effective(args) = command;
    match &args.file {
        Some(file) => of_file(file, args, screen),
        None => of_cluster(args, screen).await,
    }
}

fn of_file(file: &std::path::Path, args: &EffectiveArgs, screen: Screen) -> Result<Answer> {
    let files = files::read(&[file.to_owned()])?;
    let documents: Vec<koord_lint::Parsed<'_>> = files.iter().flat_map(koord_lint::parse).collect();
    let wrong: Vec<String> = koord_lint::lint(&files, &Reviewer::new("")?)
        .iter()
        .filter(|finding| finding.is_error)
        .map(ToString::to_string)
        .collect();
    if !wrong.is_empty() {
        return Ok(Answer::failure(wrong.join("\n") + "\n"));
    }
    let objects = || {
        let parsed = documents.iter().filter_map(|document| Some((document, document.objects.as_ref().ok()?)));
        parsed.flat_map(|(document, objects)| objects.iter().map(move |object| (document, object)))
    };
    if let Some((document, object, kind)) =
        objects().find_map(|(document, object)| Some((document, object, Kind::of(object)?)))
    {
        if args.node.is_some() {
            bail!("a {} is the same on all nodes; --node is for ConfigMap {}", kind.name(), config_map(args));
        }
        return component::effective(document, object, kind, args.answer.output, screen);
    }
    let name = args.configuration.slo_config_name.as_str();
    let is = |object: &Value, kind: &str, name: &str| object["kind"] == kind && object["metadata"]["name"] == name;
    let Some((_, found)) = objects().find(|(_, object)| is(object, "ConfigMap", name)) else {
        let known = Kind::ALL.map(|kind| format!("{} of {}", kind.name(), kind.api_version()));
        bail!("{} holds no configuration; one is a ConfigMap {name}, a {}", file.display(), known.join(" or a "));
    };
    let node = match &args.node {
        None => None,
        Some(node) => {
            let (_, object) = objects().find(|(_, object)| is(object, "Node", node)).ok_or_else(|| {
                let nodes = objects().filter(|(_, object)| object["kind"] == "Node");
                let names: Vec<String> =
                    nodes.filter_map(|(_, node)| Some(node["metadata"]["name"].as_str()?.to_owned())).collect();
                let known = match question(node, names.iter().map(String::as_str)) {
                    Some(question) => question,
                    None if names.is_empty() => {
                        "the file holds none; without -f its labels are read from the cluster".to_owned()
                    }
                    None => format!("the file holds: {}", few(&names)),
                };
                anyhow!("there is no node {node} in {}; {known}", file.display())
            })?;
            Some(object)
        }
    };
    manager::effective(&Source { name: config_map(args), config_map: Some(found), node }, args.answer.output, screen)
}

async fn of_cluster(args: &EffectiveArgs, screen: Screen) -> Result<Answer> {
    let client = connect::client(&args.answer.cluster.flags()).await?;
    let (namespace, name) = (&args.configuration.config_namespace, &args.configuration.slo_config_name);
    let found = koord_program::listing::get(&client, &ResourceKind::CONFIG_MAP.url_path(namespace, Some(name))).await?;
    let node = match &args.node {
        None => None,
        Some(node) => {
            let found = koord_program::listing::get(&client, &ResourceKind::NODE.url_path("", Some(node))).await?;
            Some(found.ok_or_else(|| anyhow!("there is no node {node}; `kubectl get nodes` shows those that are"))?)
        }
    };
    let source = Source { name: config_map(args), config_map: found.as_ref(), node: node.as_ref() };
    manager::effective(&source, args.answer.output, screen)
}

fn config_map(args: &EffectiveArgs) -> String {
    format!("{}/{}", args.configuration.config_namespace, args.configuration.slo_config_name)
}

/// A text without quotes, unless it is empty.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        value => value.to_string(),
    }
}
