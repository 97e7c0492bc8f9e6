//! `koordctl snapshot save`: all that the scheduler reads of a cluster, as one file that `why -f` reads.

mod redact;
mod replay;

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use koord_program::{output::OutputFormat, plan::Source};
use koord_runtime::clock::SystemClock;
use koord_scheduler_assembly::snapshot;
use serde_json::{Value, json};

use self::redact::redacted;
use crate::{
    Answer,
    cli::{SnapshotCommand, SnapshotSaveArgs},
    connect, files,
    screen::Screen,
    why::configuration,
};

/// Carries out a command about snapshots.
pub async fn run(command: &SnapshotCommand, screen: Screen) -> Result<Answer> {
    match command {
        SnapshotCommand::Save(args) => save(args).await,
        SnapshotCommand::Replay(args) => replay::run(args, screen).await,
    }
}

async fn save(args: &SnapshotSaveArgs) -> Result<Answer> {
    let format = format(&args.output)?;
    let (configuration, gates) = configuration(&args.scheduler)?;
    let schedulers: Vec<&str> = configuration.profiles().iter().map(|profile| &*profile.scheduler_name).collect();
    let now = SystemClock::shared().now();
    let engine = snapshot(&configuration, &gates, Source::Files(Vec::new()), now).await?;
    let mut objects = if args.filename.is_empty() {
        let client = connect::client(&args.cluster.flags()).await?;
        koord_scheduler_assembly::objects(&engine.reads(), &client, now).await?
    } else {
        files::objects(&args.filename)?
    };
    objects.iter_mut().for_each(without_history);
    if args.redact {
        objects = redacted(objects, &schedulers);
    }
    let mut kinds = BTreeMap::<String, usize>::new();
    for object in &objects {
        *kinds.entry(object["kind"].as_str().unwrap_or("?").to_owned()).or_default() += 1;
    }
    let counts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let all = objects.len();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    write(&args.output, &format.document(&list)?, args.force)?;
    let what = if args.redact { "redacted objects" } else { "objects" };
    Ok(Answer::success(format!("{all} {what} in {}: {}\n", args.output.display(), counts.join(", "))))
}

/// By the end of its name.
fn format(file: &Path) -> Result<OutputFormat> {
    match file.extension().and_then(std::ffi::OsStr::to_str) {
        Some("json") => Ok(OutputFormat::Json),
        Some("yaml" | "yml") => Ok(OutputFormat::Yaml),
        _ => bail!("{}: the file's name says how it is written; let it end in .yaml or .json", file.display()),
    }
}

/// What servers and tools remember of who wrote what.
fn without_history(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// Only its owner may read it: it says what runs in the cluster.
fn write(file: &PathBuf, text: &str, force: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(!force).create(force).truncate(force);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let question = || format!("{} cannot be written", file.display());
    match options.open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            bail!("{} exists already; name another file, or overwrite it with --force", file.display())
        }
        opened => opened.and_then(|mut opened| opened.write_all(text.as_bytes())).with_context(question),
    }
}
