//! Triggers in the kernel: the agent is woken when tasks have waited too long for CPU or memory, and does not wait for the end of an interval.

use std::{
    fmt, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use koord_core::clock::Moment;
use koord_koordlet_system::PressureResource;
use koord_runtime::clock::SharedClock;
use rustix::fs::{Mode, OFlags};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use super::{Shared, report::Report};
use crate::exchange::Input;

pub(super) const FEATURE: &str = "pressure-triggers";
/// Resources that a strategy relieves.
const RESOURCES: [PressureResource; 2] = [PressureResource::Cpu, PressureResource::Memory];
/// How often files are looked for that were not there, or have been replaced.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// How soon a file is looked for that has just gone.
const GONE_PAUSE: Duration = Duration::from_secs(1);
/// Some task waited for 15 % of a second. The kernel looks ten times in a window, and reports a window once.
const TRIGGER: &str = "some 150000 1000000\n";
/// The same share of the shortest window that the kernel permits without `CAP_SYS_RESOURCE`. It looks every 2 s then.
const SLOW_TRIGGER: &str = "some 300000 2000000\n";

const NEEDS_CAPABILITY: &str =
    "give the container the capability SYS_RESOURCE, as koordlet.pressureTriggers of the chart does";
const NEEDS_KERNEL: &str = "boot a kernel of 5.2 or later that has CONFIG_PSI, with psi=1";
const NEEDS_WRITE: &str =
    "let the agent write the file: a mount that is not read-only, and a profile of AppArmor or SELinux that allows it";

/// The pressure files of a node.
#[derive(Clone)]
pub struct PressureFiles {
    /// The file of all pods, where this version of cgroups has one. Its folder may change while the agent runs.
    pub of_pods: Arc<dyn Fn(PressureResource) -> Option<PathBuf> + Send + Sync>,
    /// `/proc`, with the pressure of the whole node.
    pub proc: PathBuf,
}

/// Waits for triggers until the end. A trigger is written into a file of the node, which an agent that only observes does not do.
pub(super) async fn run(shared: Arc<Shared>, files: PressureFiles, end: CancellationToken) {
    let Shared { settings, only_observes, clock, inputs, .. } = &*shared;
    if !settings.pressure_triggers || *only_observes {
        return Report::of(FEATURE, inputs).off();
    }
    watch_pressure(files, clock, inputs, &end).await;
}

/// Gives an input for each window in which tasks waited too long, and reports what keeps the kernel from noticing that.
pub async fn watch_pressure(
    files: PressureFiles,
    clock: &SharedClock,
    inputs: &mpsc::UnboundedSender<Input>,
    end: &CancellationToken,
) {
    let mut report = Report::of(FEATURE, inputs);
    let mut triggers = RESOURCES.map(|resource| Slot { resource, trigger: Err(Refused::default()) });
    loop {
        for slot in &mut triggers {
            slot.look(&files);
        }
        match triggers.iter().find_map(Slot::problem) {
            Some((reason, remedy)) => report.degraded(reason, remedy),
            None => report.active(),
        }
        let mut look = clock.moment() + LOOK_INTERVAL;
        let [cpu, memory] = &mut triggers;
        while let Some(wait) = until(look, clock) {
            let resource = tokio::select! {
                () = end.cancelled() => return,
                () = clock.sleep(wait) => break,
                is_there = cpu.fired() => is_there.then_some(cpu.resource),
                is_there = memory.fired() => is_there.then_some(memory.resource),
            };
            match resource {
                Some(resource) if inputs.send(Input::Pressure(resource)).is_err() => return,
                Some(_) => {}
                None => look = look.min(clock.moment() + GONE_PAUSE),
            }
        }
    }
}

fn until(next: Moment, clock: &SharedClock) -> Option<Duration> {
    Some(next.since(clock.moment())).filter(|wait| !wait.is_zero())
}

/// A resource with its trigger, or why it has none.
struct Slot {
    resource: PressureResource,
    trigger: Result<Trigger, Refused>,
}

/// A trigger that the kernel has taken. It is there as long as its file is open.
struct Trigger {
    path: PathBuf,
    file: AsyncFd<OwnedFd>,
    is_slow: bool,
}

/// The files that took no trigger.
#[derive(Debug, Default)]
struct Refused(Vec<(PathBuf, io::Error)>);

impl Slot {
    /// Sets the trigger where there is none, or where another file is to be preferred now.
    fn look(&mut self, files: &PressureFiles) {
        let paths = files.of(self.resource);
        let preferred = paths.iter().find(|path| path.exists());
        if self.trigger.as_ref().is_ok_and(|trigger| Some(&trigger.path) == preferred && trigger.is_of_this_file()) {
            return;
        }
        let mut refused = Refused::default();
        for path in paths {
            match Trigger::set(&path) {
                Ok(trigger) => {
                    self.trigger = Ok(trigger);
                    return;
                }
                Err(error) => refused.0.push((path, error)),
            }
        }
        self.trigger = Err(refused);
    }

    /// Waits for pressure; `false` when the file is gone. Does not end where there is no trigger.
    async fn fired(&mut self) -> bool {
        let Ok(trigger) = &self.trigger else { return std::future::pending().await };
        let is_there = trigger.fired().await;
        if !is_there {
            self.trigger = Err(Refused::default());
        }
        is_there
    }

    /// What keeps pressure from being noticed at once, with a remedy.
    fn problem(&self) -> Option<(String, &'static str)> {
        match &self.trigger {
            Ok(trigger) if trigger.is_slow => Some((
                format!("{}: without CAP_SYS_RESOURCE the kernel looks every 2 s alone", trigger.path.display()),
                NEEDS_CAPABILITY,
            )),
            Ok(_) => None,
            Err(refused) => Some((refused.to_string(), refused.remedy())),
        }
    }
}

impl PressureFiles {
    /// The files of a resource, the preferred one first.
    fn of(&self, resource: PressureResource) -> Vec<PathBuf> {
        let of_node = self.proc.join("pressure").join(resource.of_node());
        (self.of_pods)(resource).into_iter().chain([of_node]).collect()
    }
}

impl Trigger {
    fn set(path: &Path) -> io::Result<Self> {
        let open = || rustix::fs::open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
        let file = open()?;
        let is_slow = match rustix::io::write(&file, TRIGGER.as_bytes()) {
            Ok(_) => false,
            Err(rustix::io::Errno::INVAL) => {
                rustix::io::write(&file, SLOW_TRIGGER.as_bytes())?;
                true
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path: path.to_owned(), file: polled(file)?, is_slow })
    }

    /// Waits for pressure; `false` when the cgroup is gone.
    async fn fired(&self) -> bool {
        let Ok(mut guard) = self.file.ready(Interest::PRIORITY | Interest::ERROR).await else { return false };
        let is_gone = guard.ready().is_error();
        guard.clear_ready();
        !is_gone
    }

    /// Whether the path still leads to the file that is open: a cgroup of the same name may have been made anew.
    fn is_of_this_file(&self) -> bool {
        let (Ok(open), Ok(now)) = (rustix::fs::fstat(&self.file), rustix::fs::stat(&self.path)) else { return false };
        (open.st_dev, open.st_ino) == (now.st_dev, now.st_ino)
    }
}

#[allow(unsafe_code, reason = "the only way to register a descriptor that is not deprecated")]
fn polled(file: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is the same and stays open until it is dropped, which is after its registration.
    Ok(unsafe { AsyncFd::register_with_interest(file, Interest::PRIORITY | Interest::ERROR)? })
}

impl Refused {
    /// What would let the last file take a trigger: it is the one that every kernel with pressure has.
    fn remedy(&self) -> &'static str {
        match self.0.last().map(|(_, error)| (error.kind(), error.raw_os_error())) {
            Some((_, Some(libc::EPERM))) => NEEDS_CAPABILITY,
            Some((io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem, _)) => NEEDS_WRITE,
            _ => NEEDS_KERNEL,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (path, error)) in self.0.iter().enumerate() {
            write!(f, "{}{}: {error}", if index == 0 { "" } else { "; " }, path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        net::{TcpListener, TcpStream},
    };

    use rustix::net::{SendFlags, send, sockopt::set_socket_linger};

    use super::*;
    use crate::delivery::testing;

    fn files(root: &Path) -> PressureFiles {
        let folder = root.join("kubepods");
        PressureFiles {
            of_pods: Arc::new(move |resource| {
                Some(folder.join(if resource == PressureResource::Cpu { "cpu.pressure" } else { "memory.pressure" }))
            }),
            proc: root.join("proc"),
        }
    }

    /// A socket, whose urgent data is to poll what pressure is.
    fn trigger(path: PathBuf) -> (Trigger, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        (Trigger { path, file: polled(socket.into()).unwrap(), is_slow: false }, other)
    }

    #[tokio::test]
    async fn a_trigger_fires_until_its_file_is_gone() {
        let (trigger, other) = trigger(PathBuf::new());
        let mut slot = Slot { resource: PressureResource::Cpu, trigger: Ok(trigger) };
        for _ in 0..2 {
            send(&other, b"!", SendFlags::OOB).unwrap();
            assert!(slot.fired().await);
            let Ok(trigger) = &slot.trigger else { panic!("gone") };
            rustix::net::recv(&trigger.file, &mut [0_u8; 1], rustix::net::RecvFlags::OOB).unwrap();
        }
        assert_eq!(slot.problem(), None);
        // A reset connection is an error to poll, as a file of a cgroup that is gone.
        set_socket_linger(&other, Some(Duration::ZERO)).unwrap();
        drop(other);
        assert!(!slot.fired().await);
        assert!(slot.trigger.is_err());
    }

    #[tokio::test]
    async fn a_trigger_is_set_anew_where_another_file_is_to_be_preferred() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("kubepods")).unwrap();
        let files = files(root.path());
        let (trigger, _other) = trigger(root.path().join("proc/pressure/cpu"));
        let mut slot = Slot { resource: PressureResource::Cpu, trigger: Ok(trigger) };
        fs::write(root.path().join("kubepods/cpu.pressure"), "").unwrap();
        slot.look(&files);
        // Files of a tree take no trigger, as they cannot be polled.
        let (reason, remedy) = slot.problem().unwrap();
        assert!(reason.contains("kubepods/cpu.pressure: Operation not permitted"), "{reason}");
        assert!(reason.contains("proc/pressure/cpu: No such file"), "{reason}");
        assert_eq!(remedy, NEEDS_KERNEL);
    }

    #[test]
    fn what_a_kernel_refuses_has_a_remedy() {
        for (code, remedy) in [
            (libc::ENOENT, NEEDS_KERNEL),
            (libc::EOPNOTSUPP, NEEDS_KERNEL),
            (libc::EPERM, NEEDS_CAPABILITY),
            (libc::EACCES, NEEDS_WRITE),
            (libc::EROFS, NEEDS_WRITE),
        ] {
            let refused = Refused(vec![("/proc/pressure/cpu".into(), io::Error::from_raw_os_error(code))]);
            assert_eq!(refused.remedy(), remedy, "{refused}");
        }
    }

    #[tokio::test]
    async fn an_agent_that_only_observes_sets_none() {
        let root = tempfile::tempdir().unwrap();
        let files = files(root.path());
        let in_tree = files.proc.join("pressure/cpu").display().to_string();
        for (is_on, only_observes, state) in [(true, true, "off"), (false, false, "off"), (true, false, &*in_tree)] {
            let (shared, mut taken) = testing::shared(root.path());
            let mut shared = Arc::into_inner(shared).unwrap();
            shared.settings.pressure_triggers = is_on;
            shared.only_observes = only_observes;
            let end = CancellationToken::new();
            let task = tokio::spawn(run(Arc::new(shared), files.clone(), end.clone()));
            let report = testing::report(&mut taken, FEATURE).await;
            assert!(report.contains(state), "{report}");
            end.cancel();
            task.await.unwrap();
        }
    }
}
