//! `koordctl new`: a project that compiles, passes its tests and can be installed before a line of it is written by hand.

mod project;
mod written;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Result;

use self::project::Project;
use crate::{
    Answer,
    cli::{NewCommand, NewOperatorArgs},
};

/// Writes what is asked for.
pub fn run(command: &NewCommand) -> Result<Answer> {
    let NewCommand::Operator(args) = command;
    operator(args)
}

fn operator(args: &NewOperatorArgs) -> Result<Answer> {
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let files = Project::of(args)?.files();
    if args.dry_run {
        written::ensure_free(&folder, &files)?;
        let list: Vec<String> = files.iter().map(|file| format!("{}\n", folder.join(&file.path).display())).collect();
        return Ok(Answer::success(list.concat()));
    }
    written::write(&folder, &files)?;
    lay_out(&folder);
    Ok(Answer::success(next_steps(&args.name, &folder, files.len())))
}

/// Breaks the lines of Rust as `cargo fmt` does, because where they are broken depends on how long the names are. Without rustfmt the
/// project is complete too.
fn lay_out(folder: &Path) {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", project::EDITION]).args(project::ROOTS).current_dir(folder);
    let _ = rustfmt.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn next_steps(name: &str, folder: &Path, count: usize) -> String {
    let folder = folder.display();
    format!(
        "{count} files in {folder}; its README.md says what is in them. Next:\n\n  \
         cd {folder}\n  \
         cargo test\n  \
         cargo run -- manifests > config/{name}.yaml\n"
    )
}
