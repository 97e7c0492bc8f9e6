//! How long it takes from pressure to the write that relieves it: `cargo bench -p koordlet`.
//!
//! An agent with 110 pods in a tree of files gets pressure while pods that are not best-effort use more than a moment before: it takes samples of all pods,
//! suppresses best-effort pods and writes their quota. First the bench itself gives the pressure. Then, where cgroup v2 is mounted and its kernel notices
//! pressure, processes have to wait for CPUs, and the time begins when the kernel wakes a thread that waits for the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]

#[path = "../tests/fixture_node/node.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod node;

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, mpsc as blocking},
    thread,
    time::{Duration, Instant},
};

use goals::Chosen;
use koord_koordlet_runtime::{Input, delivery};
use koord_koordlet_system::PressureResource;
use koord_runtime::clock::SystemClock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::node::FixtureNode;

const PODS: usize = 110;
const EVENTS: usize = 500;
/// Each takes as long as the window of a trigger: two seconds without `CAP_SYS_RESOURCE`.
const KERNEL_EVENTS: usize = 8;
const GOAL: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    Chosen::run(|chosen| {
        const IN_PROCESS: &str = "pressure to the write, 110 pods, p99";
        const KERNEL: &str = "pressure to the write, from the kernel, slowest";
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        if chosen.has(IN_PROCESS) {
            let times = runtime.block_on(in_process());
            println!("given pressure: p50 {:?}, p99 {:?}", times[EVENTS / 2], times[EVENTS * 99 / 100]);
            chosen.took(GOAL, IN_PROCESS, times[EVENTS * 99 / 100]);
        }
        if chosen.has(KERNEL) {
            match KernelPressure::start() {
                Ok(pressure) => {
                    let times = runtime.block_on(from_kernel(&pressure));
                    println!("the kernel's pressure: {times:?}");
                    chosen.took(GOAL, KERNEL, *times.last().unwrap());
                }
                Err(reason) => println!("the kernel's pressure is not measured: {reason}"),
            }
        }
    })
}

/// A node where a round of samples was half a second ago, and others use more since then, or less.
fn prepare(node: &mut FixtureNode, event: usize) {
    node.advance(1000, 2.0);
    node.advance(1000, 2.0);
    node.advance(500, if event.is_multiple_of(2) { 8.0 } else { 6.0 });
}

/// From what the task of triggers does to the written quota, through the channel and the wakening of the agent's task.
async fn in_process() -> Vec<Duration> {
    let mut node = FixtureNode::new("kubepods", PODS, &[]);
    node.settle();
    let (inputs, mut taken) = mpsc::unbounded_channel();
    let mut times = Vec::new();
    for event in 0..EVENTS {
        prepare(&mut node, event);
        let before = node.quota();
        let sender = inputs.clone();
        tokio::spawn(async move { sender.send((Instant::now(), Input::Pressure(PressureResource::Cpu))).unwrap() });
        let (begin, input) = taken.recv().await.unwrap();
        node.take(input);
        times.push(begin.elapsed());
        assert_ne!(node.quota(), before, "nothing was written");
    }
    times.sort_unstable();
    times
}

async fn from_kernel(pressure: &KernelPressure) -> Vec<Duration> {
    let mut node = FixtureNode::new("kubepods", PODS, &[]);
    node.settle();
    let (inputs, mut taken) = mpsc::unbounded_channel();
    let (path, clock, end) = (pressure.file.clone(), SystemClock::shared(), CancellationToken::new());
    let files = delivery::PressureFiles {
        of_pods: Arc::new(move |resource| (resource == PressureResource::Cpu).then(|| path.clone())),
        proc: PathBuf::from("/proc"),
    };
    let watched_until = end.clone();
    let task = tokio::spawn(async move { delivery::watch_pressure(files, &clock, &inputs, &watched_until).await });
    let woken = pressure.woken();
    let mut times = Vec::new();
    while times.len() < KERNEL_EVENTS {
        prepare(&mut node, times.len());
        let input = tokio::time::timeout(Duration::from_secs(30), taken.recv()).await;
        let input = input.expect("pressure in time").unwrap();
        let Input::Pressure(PressureResource::Cpu) = input else {
            println!("{input:?}");
            continue;
        };
        node.take(input);
        let written = Instant::now();
        let begin = woken.recv_timeout(Duration::from_secs(3)).unwrap();
        times.push(written.saturating_duration_since(begin));
    }
    end.cancel();
    task.await.unwrap();
    times.sort_unstable();
    times
}

/// A cgroup with more busy processes than there are CPUs.
struct KernelPressure {
    folder: PathBuf,
    file: PathBuf,
    processes: Vec<Child>,
}

impl KernelPressure {
    fn start() -> Result<Self, String> {
        let mounted = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let root = mounted.iter().find(|root| root.join("cgroup.controllers").is_file());
        let folder = root.ok_or("cgroup v2 is not mounted")?.join(format!("koordlet-bench-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut pressure = Self { file: folder.join("cpu.pressure"), folder, processes: Vec::new() };
        pressure.trigger().map_err(|error| format!("{}: {error}", pressure.file.display()))?;
        for _ in 0..thread::available_parallelism().map_or(2, |cpus| cpus.get() + 1) {
            let busy = Command::new("sh").args(["-c", "while :; do :; done"]).stdout(Stdio::null()).spawn();
            let busy = busy.map_err(|error| error.to_string())?;
            let id = busy.id();
            pressure.processes.push(busy);
            fs::write(pressure.folder.join("cgroup.procs"), id.to_string()).map_err(|error| error.to_string())?;
        }
        Ok(pressure)
    }

    fn trigger(&self) -> std::io::Result<File> {
        let mut file = OpenOptions::new().read(true).write(true).open(&self.file)?;
        if file.write_all(b"some 150000 1000000").is_err() {
            println!("without CAP_SYS_RESOURCE the kernel looks every two seconds");
            file.write_all(b"some 300000 2000000")?;
        }
        Ok(file)
    }

    /// The moments at which the kernel wakes a thread that waits for pressure.
    fn woken(&self) -> blocking::Receiver<Instant> {
        let (sender, receiver) = blocking::channel();
        let file = self.trigger().unwrap();
        thread::spawn(move || {
            let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
            loop {
                let mut waited = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::PRI)];
                poll(&mut waited, Some(&limit)).unwrap();
                if waited[0].revents().contains(PollFlags::ERR) || sender.send(Instant::now()).is_err() {
                    return;
                }
            }
        });
        receiver
    }
}

impl Drop for KernelPressure {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        fs::remove_dir(&self.folder).unwrap();
    }
}
