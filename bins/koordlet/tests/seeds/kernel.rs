//! The files of a node as a kernel of Linux 6 takes writes, and refuses them.
//!
//! - cgroup v1: a quota is within that of the cgroups above, a cpuset within that of its parent, and neither is taken from children that have it.
//! - A burst is at most the quota, and a quota is not lowered below the burst.
//! - An idle cgroup takes no shares.
//!
//! While a fault lasts, writes are refused with an error number that has nothing to do with what is written.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use koord_core::random::Random;
use koord_koordlet_system::Writer;
use parking_lot::Mutex;

/// Error numbers that writes are refused with: EPERM, EIO, EBUSY, EINVAL, ENOSPC, EROFS.
const ERRORS: [i32; 6] = [1, 5, 16, 22, 28, 30];
const EINVAL: i32 = 22;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const ERANGE: i32 = 34;

/// What v1 shows where memory has no limit.
const NO_LIMIT: &str = "9223372036854771712";

/// How the kernel fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// So many of a hundred writes are refused.
    Flaky(u64),
    /// All writes are refused: EROFS of files that were remounted, ENOSPC of a full disk.
    Refusing(i32),
}

/// One write of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// The path below the root.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The error number, where it was refused.
    pub(crate) refused: Option<i32>,
}

/// The kernel of one node. Clones are the same kernel.
#[derive(Clone)]
pub(crate) struct Kernel(Arc<Mutex<State>>);

struct State {
    root: PathBuf,
    is_v2: bool,
    random: Random,
    health: Health,
    attempts: Vec<Attempt>,
    /// Files that were written at least once.
    written: BTreeSet<String>,
}

impl Kernel {
    pub(crate) fn new(root: &Path, is_v2: bool, random: Random) -> Self {
        let (attempts, written) = Default::default();
        let root = root.to_owned();
        Self(Arc::new(Mutex::new(State { root, is_v2, random, health: Health::Well, attempts, written })))
    }

    pub(crate) fn set(&self, health: Health) {
        self.0.lock().health = health;
    }

    /// The writes since it was last asked.
    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        std::mem::take(&mut self.0.lock().attempts)
    }

    /// Forgets what was written.
    pub(crate) fn forget(&self) {
        let mut state = self.0.lock();
        (state.written, state.attempts) = Default::default();
    }

    /// All files that an agent has written.
    pub(crate) fn written(&self) -> BTreeSet<String> {
        self.0.lock().written.clone()
    }
}

impl Writer for Kernel {
    fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        let below = path.strip_prefix(&state.root).unwrap().to_str().unwrap().to_owned();
        if !path.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let fault = match state.health {
            Health::Flaky(percent) if state.random.below(100) < percent => {
                Some(ERRORS[state.random.below(ERRORS.len() as u64) as usize])
            }
            Health::Well | Health::Flaky(_) => None,
            Health::Refusing(error) => Some(error),
        };
        let result = match fault {
            Some(error) => Err(error),
            None => taken(path, text.trim(), state.is_v2),
        };
        let refused = result.as_ref().err().copied();
        state.attempts.push(Attempt { path: below.clone(), text: text.to_owned(), refused });
        match result {
            Ok(shown) => {
                state.written.insert(below);
                fs::write(path, shown + "\n")?;
                if path.ends_with("cpuset.cpus") && state.is_v2 {
                    follow(path.parent().unwrap());
                }
                Ok(())
            }
            Err(error) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn append(&mut self, path: &Path, line: &str) -> io::Result<()> {
        self.write(path, line)
    }

    fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        if path.is_dir() { Ok(()) } else { fs::create_dir(path) }
    }

    fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

/// What a file says.
fn shown(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn number(path: &Path) -> Option<i64> {
    shown(path)?.parse().ok()
}

/// The folders in a folder.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// What the file shows after a write; else the error number.
fn taken(path: &Path, text: &str, is_v2: bool) -> Result<String, i32> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let folder = path.parent().unwrap();
    let amount = || text.parse::<i64>().map_err(|_| EINVAL);
    match name {
        "cpu.cfs_quota_us" => {
            let quota = amount()?;
            if quota >= 0 {
                is_quota(quota, number(&folder.join("cpu.cfs_burst_us")))?;
                if quota_above(folder).is_some_and(|above| quota > above) || largest_quota_below(folder) > quota {
                    return Err(EINVAL);
                }
            }
            Ok(quota.max(-1).to_string())
        }
        "cpu.cfs_burst_us" => is_burst(amount()?, number(&folder.join("cpu.cfs_quota_us")).filter(|quota| *quota >= 0)),
        "cpu.max" => {
            let (quota, period) = text.split_once(' ').unwrap_or((text, "100000"));
            if quota != "max" {
                is_quota(quota.parse().map_err(|_| EINVAL)?, number(&folder.join("cpu.max.burst")))?;
            }
            Ok(format!("{quota} {period}"))
        }
        "cpu.max.burst" => {
            let quota = shown(&folder.join("cpu.max")).and_then(|text| text.split(' ').next()?.parse().ok());
            is_burst(amount()?, quota)
        }
        "cpu.shares" | "cpu.weight" if number(&folder.join("cpu.idle")) == Some(1) => Err(EINVAL),
        "cpu.shares" => Ok(amount()?.clamp(2, 262_144).to_string()),
        "cpu.weight" => amount().and_then(|weight| within(weight, 1, 10_000, ERANGE)),
        "cpu.idle" => amount().and_then(|idle| within(idle, 0, 1, EINVAL)),
        "cpu.bvt_warp_ns" => amount().and_then(|identity| within(identity, -1, 2, EINVAL)),
        "cpuset.cpus" => {
            let cpus = mask(text).ok_or(EINVAL)?;
            if is_v2 {
                return Ok(text.to_owned());
            }
            let of = |folder: &Path| shown(&folder.join("cpuset.cpus")).and_then(|text| mask(&text));
            if folder.parent().and_then(of).is_some_and(|parent| cpus & !parent != 0) {
                return Err(EACCES);
            }
            if children(folder).iter().filter_map(|child| of(child)).any(|child| child & !cpus != 0) {
                return Err(EBUSY);
            }
            Ok(text.to_owned())
        }
        "memory.limit_in_bytes" => {
            let limit = amount()?;
            Ok(if limit < 0 { NO_LIMIT.to_owned() } else { (limit / 4096 * 4096).to_string() })
        }
        "memory.max" | "memory.high" | "memory.min" | "memory.low" if text == "max" || text == i64::MAX.to_string() => {
            Ok(if is_v2 { "max" } else { NO_LIMIT }.to_owned())
        }
        "memory.max" | "memory.high" | "memory.min" | "memory.low" => {
            let bytes = amount().and_then(|bytes| within(bytes, 0, i64::MAX, EINVAL));
            Ok((bytes?.parse::<i64>().unwrap_or_default() / 4096 * 4096).to_string())
        }
        _ => Ok(text.to_owned()),
    }
}

fn within(value: i64, least: i64, most: i64, error: i32) -> Result<String, i32> {
    if (least..=most).contains(&value) { Ok(value.to_string()) } else { Err(error) }
}

fn is_quota(quota: i64, burst: Option<i64>) -> Result<(), i32> {
    if quota < 1000 || burst.unwrap_or_default() > quota { Err(EINVAL) } else { Ok(()) }
}

fn is_burst(burst: i64, quota: Option<i64>) -> Result<String, i32> {
    if burst < 0 || quota.is_some_and(|quota| burst > quota) { Err(EINVAL) } else { Ok(burst.to_string()) }
}

/// The quota of the next cgroup above that has one.
fn quota_above(folder: &Path) -> Option<i64> {
    let mut above = folder.parent()?;
    while let Some(quota) = number(&above.join("cpu.cfs_quota_us")) {
        if quota >= 0 {
            return Some(quota);
        }
        above = above.parent()?;
    }
    None
}

fn largest_quota_below(folder: &Path) -> i64 {
    let of = |child: &PathBuf| match number(&child.join("cpu.cfs_quota_us")) {
        Some(quota) if quota >= 0 => quota,
        _ => largest_quota_below(child),
    };
    children(folder).iter().map(of).max().unwrap_or(-1)
}

/// A list of CPUs below 64 as bits; `None` of what is none.
fn mask(list: &str) -> Option<u64> {
    let mut cpus = 0;
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first..=last.min(63)).for_each(|cpu| cpus |= 1 << cpu);
    }
    Some(cpus)
}

/// `cpuset.cpus.effective` of a folder of v2 and those below.
fn follow(folder: &Path) {
    let effective = |folder: &Path| shown(&folder.join("cpuset.cpus.effective")).and_then(|text| mask(&text));
    let own = shown(&folder.join("cpuset.cpus")).and_then(|text| mask(&text)).unwrap_or_default();
    let parent = folder.parent().and_then(effective).unwrap_or(u64::MAX);
    let cpus = if own & parent == 0 { parent } else { own & parent };
    let list: Vec<String> = (0..64).filter(|cpu| cpus >> cpu & 1 == 1).map(|cpu: u32| cpu.to_string()).collect();
    if folder.join("cpuset.cpus.effective").exists() {
        fs::write(folder.join("cpuset.cpus.effective"), list.join(",") + "\n").unwrap();
    }
    for child in children(folder) {
        follow(&child);
    }
}
