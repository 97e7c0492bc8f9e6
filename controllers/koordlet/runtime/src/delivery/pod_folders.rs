//! Notices pods by the folders that the kubelet makes for them, so that it is asked for its pods at once.

use std::{collections::BTreeMap, io, mem::MaybeUninit, os::fd::OwnedFd, path::PathBuf, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_system::{Cgroups, Layout, QosFolder};
use koord_runtime::clock::SharedClock;
use rustix::fs::inotify;
use tokio::{io::unix::AsyncFd, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::report::Report;
use crate::exchange::Input;

pub(super) const FEATURE: &str = "pod folders";
/// How soon a folder that is not there is looked for again, and whether folders have other names now.
const RETRY: Duration = Duration::from_secs(5);
const BURST: u32 = 10;
const REMEDY: &str =
    "raise fs.inotify.max_user_instances and max_user_watches; pods are found by the next list of the kubelet anyway";
/// Five a second.
const INTERVAL: Duration = Duration::from_millis(200);

/// Which folders are watched: those of the QoS classes, of v1 in the hierarchy `cpu`.
#[derive(Clone)]
pub struct PodFolders {
    /// The root of cgroups.
    pub root: PathBuf,
    /// How folders are named now.
    pub layout: Arc<dyn Fn() -> Layout + Send + Sync>,
}

impl PodFolders {
    fn now(&self) -> (Layout, Vec<PathBuf>) {
        let layout = (self.layout)();
        let cgroups = Cgroups::new(self.root.clone(), layout);
        (layout, QosFolder::ALL.map(|folder| cgroups.folder(&layout.qos(folder))).into())
    }
}

/// Watches until the end.
pub(super) async fn run(
    watched: PodFolders,
    clock: SharedClock,
    inputs: mpsc::UnboundedSender<Input>,
    end: CancellationToken,
) {
    let mut report = Report::of(FEATURE, &inputs);
    let mut watches = match Watches::new() {
        Ok(watches) => watches,
        Err(error) => return report.degraded(format!("inotify: {error}"), REMEDY),
    };
    let mut pace = Pace::new(clock.moment());
    loop {
        watches.watch(watched.now());
        match watches.problem() {
            Some(problem) => report.degraded(problem, "none, before the kubelet has made its folders"),
            None => report.active(),
        }
        let wait = pace.wait(clock.moment()).unwrap_or(RETRY);
        tokio::select! {
            () = end.cancelled() => return,
            changed = watches.changed() => match changed {
                Ok(true) => pace.changed(),
                Ok(false) => {}
                Err(error) => return report.degraded(format!("inotify: {error}"), REMEDY),
            },
            () = clock.sleep(wait) => {}
        }
        if pace.take(clock.moment()) && inputs.send(Input::PodFolder).is_err() {
            return;
        }
    }
}

/// The folders with their watches.
struct Watches {
    queue: AsyncFd<OwnedFd>,
    layout: Option<Layout>,
    folders: Vec<PathBuf>,
    /// Folders by the numbers of their watches.
    watched: BTreeMap<i32, usize>,
    errors: BTreeMap<usize, String>,
}

impl Watches {
    #[allow(unsafe_code, reason = "the only way to register a descriptor that is not deprecated")]
    fn new() -> io::Result<Self> {
        let queue = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        // SAFETY: an owned descriptor is the same and stays open until it is dropped, which is after its registration.
        let queue = unsafe { AsyncFd::register(queue)? };
        Ok(Self { queue, layout: None, folders: Vec::new(), watched: BTreeMap::new(), errors: BTreeMap::new() })
    }

    /// Watches these folders, and those that were watched before no longer.
    fn watch(&mut self, (layout, folders): (Layout, Vec<PathBuf>)) {
        if self.layout != Some(layout) {
            self.layout = Some(layout);
            self.folders = folders;
            self.errors.clear();
            for watch in std::mem::take(&mut self.watched).into_keys() {
                // A folder that is gone is watched no longer anyway.
                _ = inotify::remove_watch(&self.queue, watch);
            }
        }
        self.add_missing();
    }

    /// Watches the folders that are not watched yet.
    fn add_missing(&mut self) {
        use inotify::WatchFlags;
        let flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::ONLYDIR;
        for (index, folder) in self.folders.iter().enumerate() {
            if self.watched.values().any(|known| *known == index) {
                continue;
            }
            match inotify::add_watch(&self.queue, folder, flags) {
                Ok(watch) => {
                    self.watched.insert(watch, index);
                    self.errors.remove(&index);
                }
                Err(error) => {
                    self.errors.insert(index, format!("{}: {}", folder.display(), io::Error::from(error)));
                }
            }
        }
    }

    /// Why not all folders are watched.
    fn problem(&self) -> Option<String> {
        let is_complete = self.errors.is_empty() && self.watched.len() == self.folders.len();
        (!is_complete).then(|| self.errors.values().cloned().collect::<Vec<_>>().join("; "))
    }

    /// Waits for a change; whether it is one of a pod's folder.
    async fn changed(&mut self) -> io::Result<bool> {
        let mut guard = self.queue.readable().await?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(self.queue.get_ref(), &mut buffer);
        let mut is_pod = false;
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::WOULDBLOCK) => break,
                Err(error) => return Err(error.into()),
            };
            let flags = event.events();
            if flags.contains(inotify::ReadFlags::IGNORED) {
                // The folder itself is gone.
                self.watched.remove(&event.wd());
            }
            let name = event.file_name().and_then(|name| name.to_str().ok());
            let is_folder = flags.contains(inotify::ReadFlags::ISDIR);
            // Of a queue that overflowed no names are known.
            is_pod |= flags.contains(inotify::ReadFlags::QUEUE_OVERFLOW)
                || (is_folder && name.is_some_and(|name| self.layout.is_some_and(|layout| layout.is_pod_folder(name))));
        }
        guard.clear_ready();
        Ok(is_pod)
    }
}

/// Limits how often changes are passed on: a burst, and then so many a second. Changes in between are passed on as one.
#[derive(Debug)]
struct Pace {
    tokens: u32,
    /// Up to when tokens have been counted.
    counted: Moment,
    is_waiting: bool,
}

impl Pace {
    fn new(now: Moment) -> Self {
        Self { tokens: BURST, counted: now, is_waiting: false }
    }

    fn changed(&mut self) {
        self.is_waiting = true;
    }

    fn refill(&mut self, now: Moment) {
        let passed = now.since(self.counted);
        let tokens = u32::try_from(passed.as_millis() / INTERVAL.as_millis()).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(tokens).min(BURST);
        self.counted = if self.tokens == BURST { now } else { self.counted + INTERVAL.saturating_mul(tokens) };
    }

    /// How long a change waits; `None` where there is none.
    fn wait(&mut self, now: Moment) -> Option<Duration> {
        self.refill(now);
        self.is_waiting
            .then(|| if self.tokens > 0 { Duration::ZERO } else { INTERVAL.saturating_sub(now.since(self.counted)) })
    }

    /// Whether a change is passed on now.
    fn take(&mut self, now: Moment) -> bool {
        self.refill(now);
        let is_passed = self.is_waiting && self.tokens > 0;
        if is_passed {
            self.tokens -= 1;
            self.is_waiting = false;
        }
        is_passed
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::{Driver, Version};
    use koord_runtime::clock::SystemClock;

    use super::*;

    #[test]
    fn a_burst_is_passed_on_and_then_five_a_second() {
        let start = Moment::default() + Duration::from_secs(100);
        let mut pace = Pace::new(start);
        let passed = |pace: &mut Pace, milliseconds: u64| {
            pace.changed();
            pace.take(start + Duration::from_millis(milliseconds))
        };
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let in_one_second = (0..1000).filter(|at| passed(&mut pace, *at)).count();
        assert_eq!(in_one_second, 14, "10 at once and one each 200 ms");
        // A change that was not passed on waits for its time.
        assert_eq!(pace.wait(at(999)), Some(Duration::from_millis(1)));
        assert!(pace.take(at(1000)));
        assert!(!pace.take(at(5000)));
        assert_eq!(pace.wait(at(5000)), None);
        assert_eq!(pace.tokens, BURST);
    }

    #[tokio::test]
    async fn a_folder_of_a_pod_is_noticed_also_where_its_parent_comes_later() {
        let root = tempfile::tempdir().unwrap();
        let (there, later) = (root.path().join("kubepods"), root.path().join("kubepods/besteffort"));
        std::fs::create_dir(&there).unwrap();
        let layout = Layout::new(Version::V1, Driver::Cgroupfs);
        let mut watches = Watches::new().unwrap();
        watches.watch((layout, vec![there.clone(), later.clone()]));
        assert!(watches.problem().unwrap().contains("kubepods/besteffort: No such file"));
        std::fs::create_dir(&later).unwrap();
        assert!(!watches.changed().await.unwrap(), "the folder of a class is none of a pod");
        watches.add_missing();
        assert_eq!(watches.problem(), None);
        for (folder, is_pod) in [(later.join("pod1"), true), (later.join("other"), false), (there.join("pod2"), true)] {
            std::fs::create_dir(&folder).unwrap();
            assert_eq!(watches.changed().await.unwrap(), is_pod, "{}", folder.display());
        }
        std::fs::remove_dir(later.join("pod1")).unwrap();
        assert!(watches.changed().await.unwrap());
        std::fs::remove_dir(later.join("other")).unwrap();
        std::fs::remove_dir(&later).unwrap();
        watches.changed().await.unwrap();
        watches.add_missing();
        assert!(watches.problem().is_some());
    }

    #[tokio::test]
    async fn the_agent_is_notified() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::new(Version::V1, Driver::Cgroupfs);
        let kubepods = root.path().join("cpu/kubepods");
        for folder in ["besteffort", "burstable"] {
            std::fs::create_dir_all(kubepods.join(folder)).unwrap();
        }
        let watched = PodFolders { root: root.path().to_owned(), layout: Arc::new(move || layout) };
        let (inputs, mut answers) = mpsc::unbounded_channel();
        let end = CancellationToken::new();
        let task = tokio::spawn(run(watched, SystemClock::shared(), inputs, end.clone()));
        assert!(matches!(answers.recv().await, Some(Input::Capability { feature: FEATURE, .. })));
        std::fs::create_dir(kubepods.join("pod1")).unwrap();
        assert!(matches!(answers.recv().await, Some(Input::PodFolder)));
        end.cancel();
        task.await.unwrap();
    }
}
