//! The plan of another program: a child process with `--plan`, of which answer and exit code are handed on.

use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::ValueEnum as _;

use crate::{Answer, FAILED, cli::PlanArgs, screen::Screen};

/// How long a program may take to print its help.
const HELP_MAX: Duration = Duration::from_secs(10);
/// What of its help is looked at.
const HELP_BYTES_MAX: u64 = 1 << 20;

/// Runs the program. It is asked for its help first: a program that does not know `--plan` could run for real.
pub(super) async fn run(path: &Path, args: &PlanArgs, screen: Screen) -> Result<Answer> {
    let shown = path.display().to_string();
    let help = help(path).await.with_context(|| format!("{shown} cannot be started"))?;
    let knows_plan = help.split(|letter: char| letter.is_whitespace() || letter == ',').any(|word| word == "--plan");
    if !knows_plan {
        bail!(
            "{shown} does not know --plan: name a program whose main is koord_program::run_controllers, built \
             with a library that has it"
        );
    }
    let mut command = Command::new(path);
    command.args(flags(args));
    if !args.filename.iter().any(|file| file == Path::new("-")) {
        command.stdin(Stdio::null());
    }
    if let Some(columns) = screen.columns() {
        command.env("COLUMNS", columns.to_string());
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    answer(&shown, &output.with_context(|| format!("{shown} cannot be started"))?)
}

/// What the program is given: its own flags, and those that ask for the plan.
fn flags(args: &PlanArgs) -> Vec<OsString> {
    let mut flags: Vec<OsString> = args.flags.iter().map(OsString::from).collect();
    let mut flag = |name: &str, value: Option<OsString>| {
        if let Some(value) = value {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(value);
            flags.push(flag);
        }
    };
    for file in &args.filename {
        flag("filename", Some(file.into()));
    }
    let cluster = &args.answer.cluster;
    flag("kubeconfig", cluster.kubeconfig.as_ref().map(Into::into));
    flag("context", cluster.context.as_ref().map(Into::into));
    flag("at", args.at.map(|at| at.to_string().into()));
    flag("output", args.answer.output.to_possible_value().map(|value| value.get_name().into()));
    flags.push("--plan".into());
    flags
}

async fn help(path: &Path) -> Result<String> {
    let mut child = Command::new(path)
        .arg("--help")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow!("there is no such program; name its path, such as ./operator"),
            io::ErrorKind::PermissionDenied => anyhow!("it is no program that may be run; name the one that was built"),
            _ => error.into(),
        })?;
    let text = child.stdout.take().map(|stdout| {
        tokio::task::spawn_blocking(move || {
            let mut text = Vec::new();
            let read = stdout.take(HELP_BYTES_MAX).read_to_end(&mut text);
            read.map(|_| String::from_utf8_lossy(&text).into_owned())
        })
    });
    let text = match text {
        Some(text) => tokio::time::timeout(HELP_MAX, text).await,
        None => return Ok(String::new()),
    };
    end(&mut child);
    Ok(text.context("it does not print its help")???)
}

/// A program that has printed its help has ended, or does something else than that.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// What is handed on: the plan, or why there is none.
fn answer(shown: &str, Output { status, stdout, stderr }: &Output) -> Result<Answer> {
    let (text, said) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    match code {
        Some(code) if code == 0 || (code <= FAILED && !text.is_empty()) => {
            // Its logs.
            let _ = io::stderr().write_all(stderr);
            Ok(Answer { text: text.into_owned(), code })
        }
        Some(FAILED) => bail!("{shown}: {}", reason(shown, &said)),
        _ => bail!("{shown} died ({status}) before its plan was known: {}", reason(shown, &said)),
    }
}

/// What a program said at last, in one line.
fn reason(shown: &str, said: &str) -> String {
    let is_said = |line: &&str| !line.is_empty() && !["note: ", "tip: "].iter().any(|aside| line.starts_with(aside));
    let lines: Vec<&str> = said.lines().map(str::trim).filter(is_said).collect();
    let text = match lines.iter().position(|line| line.starts_with("error: ")) {
        // A wrong command line: the rest says how help is asked for.
        Some(at) => {
            lines[at..].iter().take_while(|line| !line.starts_with("Usage:")).copied().collect::<Vec<_>>().join(" ")
        }
        None => lines.last().map_or("it said nothing; run it with --plan to see more", |line| *line).to_owned(),
    };
    let name = Path::new(shown).file_name().unwrap_or_default().to_string_lossy();
    let text = text.trim_start_matches("error: ");
    text.strip_prefix(&format!("{name}: ")).unwrap_or(text).to_owned()
}
