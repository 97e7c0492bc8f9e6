//! An operator as a process, and what it costs.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

/// How far the coarser of the two clocks may be off.
const PRECISION: Duration = Duration::from_millis(20);

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// What is resident.
    pub resident: u64,
    /// What of it is no page of a file.
    pub anonymous: u64,
    /// What was resident at most.
    pub peak: u64,
}

/// A process that ends when dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Process ===

impl Process {
    /// Starts a program; what it says goes to `log`.
    pub fn start(program: &Path, arguments: &[&str], kubeconfig: &Path, log: PathBuf) -> Result<Self> {
        let file = File::create(&log)?;
        let mut command = Command::new(program);
        command.args(arguments).env("KUBECONFIG", kubeconfig).env("RUST_LOG", "warn");
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| program.display().to_string())?;
        Ok(Self { child, log })
    }

    /// CPU time that it has used.
    pub fn cpu(&self) -> Result<Cpu> {
        Cpu::of(&self.child.id().to_string())
    }

    pub fn memory(&self) -> Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
            kibibytes.map(|kibibytes| kibibytes * 1024).with_context(|| format!("no {name} in /proc"))
        };
        Ok(Memory { resident: bytes("VmRSS")?, anonymous: bytes("RssAnon")?, peak: bytes("VmHWM")? })
    }

    /// An error when it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the operator has ended ({status}); its last words: {}", self.said().1),
        }
    }

    /// How many lines it said, and the last one.
    pub fn said(&self) -> (usize, String) {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        (text.lines().count(), text.lines().last().unwrap_or_default().to_owned())
    }

    /// Ends it as a kubelet does.
    pub async fn terminate(mut self) -> Result<ExitStatus> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            anyhow::ensure!(begin.elapsed() < Duration::from_secs(30), "the operator does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// CPU time of a process, by two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// In nanoseconds, of the threads that run.
    threads: Duration,
    /// In hundredths of a second, also of threads that have ended.
    process: Duration,
}

// === impl Cpu ===

impl Cpu {
    /// What a process, or `self`, has used.
    pub fn of(process: &str) -> Result<Self> {
        let mut threads = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            threads += Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?);
        }
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name of the program, in parentheses, may hold spaces.
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11);
        let ticks =
            fields.next().unwrap_or_default().parse::<u64>()? + fields.next().unwrap_or_default().parse::<u64>()?;
        Ok(Self { threads, process: Duration::from_millis(ticks * 10) })
    }

    /// What has been used since.
    pub fn since(self, earlier: Self) -> Duration {
        let (threads, process) =
            (self.threads.saturating_sub(earlier.threads), self.process.saturating_sub(earlier.process));
        if process > threads + PRECISION { process } else { threads }
    }
}
