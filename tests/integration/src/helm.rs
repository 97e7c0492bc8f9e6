//! The real helm, found and called.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{kubectl::Printed, skipped};

/// A helm that talks to one cluster, with folders of its own.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Helm {
    /// Finds helm: `$HELM`, else the one in the path. `folder` is where it may keep what it likes.
    ///
    /// Gives none, and says so on the terminal, when there is no helm at all.
    pub fn find(kubeconfig: &Path, folder: &Path) -> Result<Option<Self>> {
        let program = match std::env::var_os("HELM").filter(|name| !name.is_empty()) {
            Some(named) => Some(PathBuf::from(named)),
            None => std::env::var_os("PATH").and_then(|path| {
                std::env::split_paths(&path).map(|folder| folder.join("helm")).find(|file| file.is_file())
            }),
        };
        let Some(program) = program else {
            skipped("everything that needs helm", "none is installed; install helm 3.17 or later, or name it in HELM");
            return Ok(None);
        };
        ensure!(program.is_file(), "HELM names {}, which does not exist", program.display());
        Ok(Some(Self { program, kubeconfig: kubeconfig.to_owned(), folder: folder.to_owned() }))
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs a command and gives what it printed, whether it succeeded or not.
    pub fn try_run(&self, arguments: &[&str]) -> Result<Printed> {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HELM_CACHE_HOME", self.folder.join("cache"))
            .env("HELM_CONFIG_HOME", self.folder.join("config"))
            .env("HELM_DATA_HOME", self.folder.join("data"))
            .env("HOME", &self.folder)
            .output()
            .with_context(|| format!("{} does not start", self.program.display()))?;
        Ok(Printed {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        })
    }

    /// Runs a command that must succeed; gives its output.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let printed = self.try_run(arguments)?;
        ensure!(printed.code == 0, "helm {arguments:?}: {}{}", printed.stdout, printed.stderr);
        Ok(printed.stdout)
    }
}
