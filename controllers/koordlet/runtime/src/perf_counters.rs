//! Hardware counters of the kernel (`perf_event_open`): cycles and instructions of the tasks of a cgroup on one CPU.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
    path::Path,
};

use koord_koordlet_metrics::collect::{CounterGroup, CounterReading, CpuCounters};

/// The counters of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerfCounters;

#[derive(Debug)]
struct Group {
    /// Cycles, through which both counters are read.
    leader: File,
    /// Instructions: open as long as they are counted.
    _instructions: OwnedFd,
}

/// `struct perf_event_attr` of `linux/perf_event.h`, in its fifth version, which all supported kernels know.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config_1: u64,
    config_2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_stack_max: u16,
    reserved: u16,
}

const KIND_HARDWARE: u32 = 0;
const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
/// Both times, and all counters of a group in one read.
const READ_FORMAT: u64 = 1 | 2 | 8;
const FLAG_CGROUP: u64 = 1 << 2;
const FLAG_CLOSE_ON_EXEC: u64 = 1 << 3;
const NO_GROUP: RawFd = -1;

impl CpuCounters for PerfCounters {
    fn open(&mut self, cgroup: &Path, cpu: u32) -> io::Result<Box<dyn CounterGroup>> {
        let folder = File::open(cgroup)?;
        let leader = open(CYCLES, folder.as_raw_fd(), cpu, NO_GROUP)?;
        let instructions = open(INSTRUCTIONS, folder.as_raw_fd(), cpu, leader.as_raw_fd())?;
        Ok(Box::new(Group { leader: File::from(leader), _instructions: instructions }))
    }
}

impl CounterGroup for Group {
    fn read(&mut self) -> io::Result<CounterReading> {
        let mut words = [0; 5 * 8];
        self.leader.read_exact(&mut words)?;
        let word = |at: usize| {
            let bytes = words.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        };
        // The number of counters, both times, and the counters in the order in which they were opened.
        Ok(CounterReading { enabled_ns: word(1), running_ns: word(2), cycles: word(3), instructions: word(4) })
    }
}

fn open(event: u64, cgroup: RawFd, cpu: u32, group: RawFd) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: KIND_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: event,
        read_format: READ_FORMAT,
        ..Attributes::default()
    };
    let cpu = i32::try_from(cpu).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // No library that is maintained opens counters of cgroups without a processor model of its own.
    #[allow(
        unsafe_code,
        reason = "the kernel reads the attributes, which live as long as the call, and gives a new descriptor"
    )]
    unsafe {
        let flags = FLAG_CGROUP | FLAG_CLOSE_ON_EXEC;
        let descriptor = libc::syscall(libc::SYS_perf_event_open, &raw const attributes, cgroup, cpu, group, flags);
        let descriptor = i32::try_from(descriptor).unwrap_or(-1);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_of_their_version() {
        assert_eq!(size_of::<Attributes>(), 112);
    }

    #[test]
    fn a_cgroup_that_is_gone_is_an_error() {
        let error = PerfCounters.open(Path::new("/nonexistent/cgroup"), 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_machine_counts_or_says_why_not() {
        let root =
            ["/sys/fs/cgroup/perf_event", "/sys/fs/cgroup"].into_iter().map(Path::new).find(|path| path.exists());
        let Some(root) = root else {
            programs::skipped("counters of cycles", "this machine has no cgroups");
            return;
        };
        match PerfCounters.open(root, 0) {
            Err(error) => programs::skipped("counters of cycles", &error.to_string()),
            Ok(mut group) => {
                std::hint::black_box((0..1_000_000_u64).fold(0_u64, |sum, number| sum ^ number.wrapping_mul(sum)));
                assert!(group.read().unwrap().enabled_ns > 0);
            }
        }
    }
}
