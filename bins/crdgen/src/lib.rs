//! What crdgen does: CustomResourceDefinitions, reference pages and sample skeletons out of the declared kinds.
//!
//! It knows no cluster. Read first: [`generate::documents`] (which files there are and what is in them), [`compare`] (which
//! compares definitions with others), [`document::Document`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod chart;
pub mod compare;
mod configuration;
pub mod document;
pub mod generate;
mod installation;
pub mod manager;
pub mod monitoring;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};
use document::Document;
use koord_resource::{
    declare,
    document::{custom_resource_definition, yaml},
};
use serde_json::{Value, json};

/// Prints the CustomResourceDefinitions of all kinds, so that `crdgen | kubectl apply -f -` works.
#[derive(Clone, Debug, Parser)]
#[command(name = "crdgen", version)]
pub struct Arguments {
    /// Writes config/, docs/reference/, the sample skeletons and the chart's data instead of printing.
    #[arg(long, conflicts_with_all = ["check", "diff"])]
    pub write: bool,
    /// Fails, and shows how, when a written file is not what would be written.
    #[arg(long, conflicts_with = "diff")]
    pub check: bool,
    /// Compares the structure of the definitions with those in the YAML files of a folder; prints nothing when they are
    /// equal. Prose and the name of the generator do not count.
    #[arg(long, value_name = "DIR")]
    pub diff: Option<PathBuf>,
    /// Whether definitions are exactly the original's, or say more.
    #[arg(long, value_enum, default_value_t = Profile::Compatible)]
    pub profile: Profile,
    /// How definitions are printed.
    #[arg(long, value_enum, default_value_t = Format::Yaml)]
    pub format: Format,
    /// The repository; by default the one around the working directory.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Whether definitions are exactly the original's, or say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Exactly the original's structure.
    Compatible,
    /// With columns, names and rules that the original lacks.
    Hardened,
}

/// How definitions are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Documents in YAML.
    Yaml,
    /// One List in JSON.
    Json,
}

/// What a run has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// For standard output.
    pub text: String,
    /// False when something that was compared differs.
    pub agrees: bool,
}

/// Does what the arguments say.
pub fn run(arguments: &Arguments) -> Result<Answer> {
    let definitions = definitions(arguments.profile);
    if let Some(folder) = &arguments.diff {
        return compare::with_folder(&definitions, folder).map(differing);
    }
    if arguments.check || arguments.write {
        let root = match &arguments.root {
            Some(root) => root.clone(),
            None => repository_around(&std::env::current_dir().context("the working directory cannot be read")?)?,
        };
        let documents = generate::documents(&definitions)?;
        return if arguments.check { check(&root, &documents) } else { write(&root, &documents) };
    }
    let text = match arguments.format {
        Format::Yaml => yaml::stream(&definitions)?,
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions});
            serde_json::to_string_pretty(&list)? + "\n"
        }
    };
    Ok(Answer { text, agrees: true })
}

/// The definitions of all kinds.
pub fn definitions(profile: Profile) -> Vec<Value> {
    let profile = match profile {
        Profile::Compatible => declare::Profile::Compatible,
        Profile::Hardened => declare::Profile::Hardened,
    };
    koord_types::KINDS.iter().map(|versions| custom_resource_definition(versions, profile)).collect()
}

fn differing(text: String) -> Answer {
    Answer { agrees: text.is_empty(), text }
}

/// The nearest folder upwards that is a workspace.
fn repository_around(start: &Path) -> Result<PathBuf> {
    let is_root = |folder: &Path| {
        fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|manifest| manifest.contains("[workspace]"))
    };
    match start.ancestors().find(|folder| is_root(folder)) {
        Some(root) => Ok(root.to_owned()),
        None => bail!("{} is not in the repository; name it with --root", start.display()),
    }
}

fn check(root: &Path, documents: &[Document]) -> Result<Answer> {
    let mut text = String::new();
    for document in documents {
        let path = root.join(&document.path);
        let present = match fs::read_to_string(&path) {
            Ok(present) => present,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
        };
        text += &compare::texts(&document.path, &present, &document.text);
    }
    for path in generate::leftovers(root, documents)? {
        let _ = writeln!(text, "{path}: nothing generates this file any more");
    }
    if !text.is_empty() {
        text += "run `cargo run --bin crdgen -- --write`\n";
    }
    Ok(differing(text))
}

fn write(root: &Path, documents: &[Document]) -> Result<Answer> {
    let mut text = String::new();
    for document in documents {
        let path = root.join(&document.path);
        if fs::read_to_string(&path).is_ok_and(|present| present == document.text) {
            continue;
        }
        let failed = || format!("{} cannot be written", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(failed)?;
        }
        fs::write(&path, &document.text).with_context(failed)?;
        let _ = writeln!(text, "{}", document.path);
    }
    for path in generate::leftovers(root, documents)? {
        fs::remove_file(root.join(&path)).with_context(|| format!("{path} cannot be removed"))?;
        let _ = writeln!(text, "{path} removed");
    }
    Ok(Answer { text, agrees: true })
}
