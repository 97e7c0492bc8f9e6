//! The real kubectl, found and called.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::skipped;

/// A kubectl that answers by itself.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// Where kubectl keeps what it learned about servers; of its own, so that no test learns from another.
    cache: PathBuf,
}

/// What a command printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
}

impl Kubectl {
    /// Finds kubectl: `$KUBECTL`; else `kubectl.1.32` beside the one in the path; else the one in the path. A dispatcher that picks another
    /// kubectl by the server's version is refused, because what it runs is not what was asked for.
    ///
    /// Gives none, and says so on the terminal, when there is no kubectl at all.
    pub fn find(kubeconfig: &Path, cache: &Path) -> Result<Option<Self>> {
        let program = match std::env::var_os("KUBECTL").filter(|name| !name.is_empty()) {
            Some(named) => {
                let named = PathBuf::from(named);
                ensure!(named.exists(), "KUBECTL names {}, which does not exist", named.display());
                Some(named)
            }
            None => in_path(),
        };
        let Some(program) = program else {
            skipped("everything that needs kubectl", "none is installed; install kubectl 1.32 or name it in KUBECTL");
            return Ok(None);
        };
        refuse_dispatcher(&program)?;
        Ok(Some(Self { program, kubeconfig: kubeconfig.to_owned(), cache: cache.to_owned() }))
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The kubeconfig that it uses.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs a command and gives what it printed, whether it succeeded or not.
    pub fn run(&self, arguments: &[&str], input: Option<&str>, environment: &[(&str, &str)]) -> Result<Printed> {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache)
            .env("HOME", &self.cache)
            .env_remove("KUBECTL_EXTERNAL_DIFF")
            .envs(environment.iter().copied())
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", self.program.display()))?;
        if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
            // A command that ends before it has read everything says why by itself.
            let _ = stdin.write_all(text.as_bytes());
        }
        let output = child.wait_with_output()?;
        Ok(Printed {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        })
    }
}

fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.is_file())?;
    let found = found.canonicalize().unwrap_or(found);
    let beside = found.with_file_name("kubectl.1.32");
    Some(if beside.is_file() { beside } else { found })
}

fn refuse_dispatcher(program: &Path) -> Result<()> {
    let output = Command::new(program)
        .args(["version", "--client", "-o", "json"])
        .output()
        .with_context(|| format!("{} does not start", program.display()))?;
    let version: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} version --client printed no JSON", program.display()))?;
    let text = version["clientVersion"]["gitVersion"].as_str().unwrap_or_default();
    if text.contains("dispatcher") {
        bail!(
            "{} is a dispatcher ({text}): it picks another kubectl by the server's version. Name the real one in KUBECTL",
            program.display()
        );
    }
    Ok(())
}
