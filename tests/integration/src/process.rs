//! Programs as processes that bench drivers measure.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// A process that ends when this is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Result<Self> {
        let started = command.spawn();
        started.map(Self).with_context(|| format!("{} does not start", Path::new(command.get_program()).display()))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Fails when it has ended.
    pub fn check(&mut self) -> Result<()> {
        let ended = self.0.try_wait()?;
        ensure!(ended.is_none(), "process {} has ended: {ended:?}", self.id());
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Debug)]
pub struct Embedded {
    pub process: Running,
    /// A kubeconfig of an administrator.
    pub kubeconfig: PathBuf,
    /// From exec to that file, which is there once the server answers and the definitions are established.
    pub start: Duration,
    _folder: TempDir,
}

impl Embedded {
    /// Starts it with the definitions of a folder.
    pub fn start(program: &Path, definitions: Option<&Path>) -> Result<Self> {
        let folder = TempDir::new()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut command = Command::new(program);
        command.args(["--port=0", "--quiet", "--kubeconfig"]).arg(&kubeconfig);
        if let Some(definitions) = definitions {
            command.arg("--crds").arg(definitions);
        }
        let begin = Instant::now();
        let mut process = Running::start(command.stdout(Stdio::null()))?;
        while !kubeconfig.exists() {
            process.check()?;
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(Self { process, kubeconfig, start: begin.elapsed(), _folder: folder })
    }
}
