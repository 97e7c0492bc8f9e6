//! The table of cgroup files: for each resource its file in both versions, its unit and range, how it is written, and what a child may have of its parent.

use std::{fmt, ops::RangeInclusive};

use koord_scheduling::CpuSet;

use crate::{
    cgroup::Version,
    value::{SHARES, Value, WEIGHTS, shares_of_weight, weight_of_shares},
};

/// A file that every cgroup has, or a kernel may give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    CpuStat,
    CpuShares,
    CpuQuota,
    CpuPeriod,
    CpuBurst,
    GroupIdentity,
    CpuIdle,
    Threads,
    Processes,
    Cpuset,
    CpuUsage,
    CpuPressure,
    MemoryPressure,
    IoPressure,
    MemoryLimit,
    MemoryUsage,
    MemoryStat,
    MemoryNumaStat,
    MemoryMin,
    MemoryLow,
    MemoryHigh,
    MemoryWmarkRatio,
    MemoryWmarkScaleFactor,
    MemoryWmarkMinAdj,
    MemoryPriority,
    MemoryUsePriorityOom,
    MemoryOomGroup,
    PageCacheLimitEnable,
    PageCacheLimitSize,
    PageCacheLimitSync,
    MemoryIdlePageStats,
    BlkioReadIops,
    BlkioReadBps,
    BlkioWriteIops,
    BlkioWriteBps,
    BlkioWeight,
    BlkioCostQos,
    BlkioCostModel,
    NetClassId,
}

/// How a value stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A decimal number.
    Amount,
    /// A number, or no limit: `-1` (v1), `max` (v2).
    Limit,
    /// A number, or no limit as the largest number there is.
    Threshold,
    /// Shares (v1) or the weight that goes with them (v2). The value is in shares.
    Shares,
    /// Microseconds of each period: a file of its own (v1), or the first field of `cpu.max` (v2).
    Quota,
    /// Microseconds: a file of its own (v1), or the second field of `cpu.max` (v2).
    Period,
    /// CPUs.
    Cpus,
    /// A line for each disk: `MAJOR:MINOR AMOUNT`.
    Disks,
    /// A line for each disk with named parameters: `MAJOR:MINOR enable=1 …`.
    DiskParameters,
    /// Ids of threads or processes; each write adds one.
    Ids,
    /// Lines that are read only.
    Lines,
}

/// What the files of a cgroup and of the one above have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// The value of a child is within that of its parent: parents are raised first, and lowered last.
    Within,
    /// Cgroups do not depend on each other.
    Independent,
}

/// Which kernels have the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// All of them.
    Always,
    /// Those that have it in the cgroup of all pods.
    Kubepods,
    /// Those that have it in the cgroup itself.
    File,
    /// Those that have it in the root cgroup.
    Root,
    /// None.
    Never,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub resource: Resource,
    /// The name in metrics and in the audit: the file of v1.
    pub name: &'static str,
    /// The hierarchy and the file of v1.
    v1: Option<(&'static str, &'static str)>,
    /// The file of v2, that it is written to.
    v2: Option<&'static str>,
    pub form: Form,
    /// Amounts that are written at all; disks have them after the number of the disk.
    range: [RangeInclusive<i64>; 2],
    pub nesting: Nesting,
    support: [Support; 2],
}

/// Why a value is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error("{value} is out of the range {min} to {max} of {resource}")]
    Range { resource: Resource, value: i64, min: i64, max: i64 },
    #[error("{resource} takes no such value: {value}")]
    Kind { resource: Resource, value: String },
    #[error("cgroup {version:?} has no {resource}")]
    Version { resource: Resource, version: Version },
}

/// Why a text of a file says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{resource} says {text:?}, which is no {expected}")]
pub struct TextError {
    pub resource: Resource,
    pub text: String,
    pub expected: &'static str,
}

const ANY: RangeInclusive<i64> = i64::MIN..=i64::MAX;
const NOT_NEGATIVE: RangeInclusive<i64> = 0..=i64::MAX;
const SWITCH: RangeInclusive<i64> = 0..=1;
/// From here on a limit of v1 is none: the largest number of bytes in whole pages, of up to 64 KiB.
const UNLIMITED_FROM: i64 = 0x7FFF_FFFF_FFFF_0000;

use Form as F;
use Nesting::{Independent, Within};
use Resource as R;
use Support as S;

const fn row(
    resource: Resource,
    v1: (&'static str, &'static str),
    v2: Option<&'static str>,
    form: Form,
    range: RangeInclusive<i64>,
    support: [Support; 2],
) -> Row {
    let v1_of_range = *range.start()..=*range.end();
    Row { resource, name: v1.1, v1: Some(v1), v2, form, range: [v1_of_range, range], nesting: Independent, support }
}

/// A file that only v2 has.
const fn row_v2(resource: Resource, file: &'static str, range: RangeInclusive<i64>) -> Row {
    let v1_of_range = *range.start()..=*range.end();
    Row {
        resource,
        name: file,
        v1: None,
        v2: Some(file),
        form: F::Amount,
        range: [v1_of_range, range],
        nesting: Independent,
        support: [S::Never, S::File],
    }
}

const fn within(mut row: Row) -> Row {
    row.nesting = Within;
    row
}

const fn ranges(mut row: Row, v1: RangeInclusive<i64>, v2: RangeInclusive<i64>) -> Row {
    row.range = [v1, v2];
    row
}

const ALWAYS: [Support; 2] = [S::Always, S::Always];
const KUBEPODS: [Support; 2] = [S::Kubepods, S::Kubepods];
const ONLY_V1: [Support; 2] = [S::Kubepods, S::Never];
const FILE: [Support; 2] = [S::File, S::File];

/// The table, in the order of [`Resource`].
pub const TABLE: &[Row] = &[
    row(R::CpuStat, ("cpu", "cpu.stat"), Some("cpu.stat"), F::Lines, ANY, ALWAYS),
    row(R::CpuShares, ("cpu", "cpu.shares"), Some("cpu.weight"), F::Shares, SHARES, ALWAYS),
    within(row(R::CpuQuota, ("cpu", "cpu.cfs_quota_us"), Some("cpu.max"), F::Quota, ANY, ALWAYS)),
    row(R::CpuPeriod, ("cpu", "cpu.cfs_period_us"), Some("cpu.max"), F::Period, ANY, ALWAYS),
    ranges(
        row(R::CpuBurst, ("cpu", "cpu.cfs_burst_us"), Some("cpu.max.burst"), F::Amount, ANY, [S::File, S::Kubepods]),
        0..=100_000_000,
        NOT_NEGATIVE,
    ),
    row(R::GroupIdentity, ("cpu", "cpu.bvt_warp_ns"), Some("cpu.bvt_warp_ns"), F::Amount, -1..=2, FILE),
    row(R::CpuIdle, ("cpu", "cpu.idle"), Some("cpu.idle"), F::Amount, SWITCH, KUBEPODS),
    row(R::Threads, ("cpu", "tasks"), Some("cgroup.threads"), F::Ids, ANY, ALWAYS),
    row(R::Processes, ("cpu", "cgroup.procs"), Some("cgroup.procs"), F::Ids, ANY, ALWAYS),
    within(row(R::Cpuset, ("cpuset", "cpuset.cpus"), Some("cpuset.cpus"), F::Cpus, ANY, ALWAYS)),
    row(R::CpuUsage, ("cpuacct", "cpuacct.usage"), Some("cpu.stat"), F::Lines, ANY, ALWAYS),
    row(R::CpuPressure, ("cpuacct", "cpu.pressure"), Some("cpu.pressure"), F::Lines, ANY, KUBEPODS),
    row(R::MemoryPressure, ("cpuacct", "memory.pressure"), Some("memory.pressure"), F::Lines, ANY, KUBEPODS),
    row(R::IoPressure, ("cpuacct", "io.pressure"), Some("io.pressure"), F::Lines, ANY, KUBEPODS),
    within(row(R::MemoryLimit, ("memory", "memory.limit_in_bytes"), Some("memory.max"), F::Limit, ANY, ALWAYS)),
    row(R::MemoryUsage, ("memory", "memory.usage_in_bytes"), Some("memory.current"), F::Lines, ANY, ALWAYS),
    row(R::MemoryStat, ("memory", "memory.stat"), Some("memory.stat"), F::Lines, ANY, ALWAYS),
    row(R::MemoryNumaStat, ("memory", "memory.numa_stat"), Some("memory.numa_stat"), F::Lines, ANY, ALWAYS),
    within(row(
        R::MemoryMin,
        ("memory", "memory.min"),
        Some("memory.min"),
        F::Threshold,
        NOT_NEGATIVE,
        [S::Kubepods, S::Always],
    )),
    within(row(
        R::MemoryLow,
        ("memory", "memory.low"),
        Some("memory.low"),
        F::Threshold,
        NOT_NEGATIVE,
        [S::Kubepods, S::Always],
    )),
    within(row(
        R::MemoryHigh,
        ("memory", "memory.high"),
        Some("memory.high"),
        F::Threshold,
        NOT_NEGATIVE,
        [S::Kubepods, S::Always],
    )),
    row(
        R::MemoryWmarkRatio,
        ("memory", "memory.wmark_ratio"),
        Some("memory.wmark_ratio"),
        F::Amount,
        0..=100,
        [S::Kubepods, S::File],
    ),
    row(
        R::MemoryWmarkScaleFactor,
        ("memory", "memory.wmark_scale_factor"),
        Some("memory.wmark_scale_factor"),
        F::Amount,
        1..=1000,
        [S::Kubepods, S::File],
    ),
    row(
        R::MemoryWmarkMinAdj,
        ("memory", "memory.wmark_min_adj"),
        Some("memory.wmark_min_adj"),
        F::Amount,
        -25..=50,
        [S::Kubepods, S::File],
    ),
    row(
        R::MemoryPriority,
        ("memory", "memory.priority"),
        Some("memory.priority"),
        F::Amount,
        0..=12,
        [S::Kubepods, S::File],
    ),
    row(
        R::MemoryUsePriorityOom,
        ("memory", "memory.use_priority_oom"),
        Some("memory.use_priority_oom"),
        F::Amount,
        SWITCH,
        [S::Kubepods, S::File],
    ),
    row(
        R::MemoryOomGroup,
        ("memory", "memory.oom.group"),
        Some("memory.oom.group"),
        F::Amount,
        SWITCH,
        [S::Kubepods, S::File],
    ),
    row_v2(R::PageCacheLimitEnable, "memory.pagecache_limit.enable", SWITCH),
    row_v2(R::PageCacheLimitSize, "memory.pagecache_limit.size", NOT_NEGATIVE),
    row_v2(R::PageCacheLimitSync, "memory.pagecache_limit.sync", SWITCH),
    row(R::MemoryIdlePageStats, ("memory", "memory.idle_page_stats"), None, F::Lines, ANY, ONLY_V1),
    row(R::BlkioReadIops, ("blkio", "blkio.throttle.read_iops_device"), None, F::Disks, NOT_NEGATIVE, ONLY_V1),
    row(R::BlkioReadBps, ("blkio", "blkio.throttle.read_bps_device"), None, F::Disks, NOT_NEGATIVE, ONLY_V1),
    row(R::BlkioWriteIops, ("blkio", "blkio.throttle.write_iops_device"), None, F::Disks, NOT_NEGATIVE, ONLY_V1),
    row(R::BlkioWriteBps, ("blkio", "blkio.throttle.write_bps_device"), None, F::Disks, NOT_NEGATIVE, ONLY_V1),
    row(R::BlkioWeight, ("blkio", "blkio.cost.weight"), None, F::Disks, 1..=100, ONLY_V1),
    row(R::BlkioCostQos, ("blkio", "blkio.cost.qos"), None, F::DiskParameters, ANY, [S::Root, S::Never]),
    row(R::BlkioCostModel, ("blkio", "blkio.cost.model"), None, F::DiskParameters, ANY, [S::Root, S::Never]),
    row(R::NetClassId, ("net_cls", "net_cls.classid"), None, F::Amount, 0..=u32::MAX as i64, ONLY_V1),
];

// === impl Resource ===

impl Resource {
    /// The row of the table.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name in metrics and in the audit.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Row ===

impl Row {
    /// The hierarchy of v1 (empty for v2) and the file that is written; `None` where that version has none.
    pub fn file(&self, version: Version) -> Option<(&'static str, &'static str)> {
        match version {
            Version::V1 => self.v1,
            Version::V2 => self.v2.map(|file| ("", file)),
        }
    }

    /// The same, of the file that is read: v2 shows the CPUs that a cgroup may use in a file of their own.
    pub fn file_to_read(&self, version: Version) -> Option<(&'static str, &'static str)> {
        match (self.resource, version) {
            (Resource::Cpuset, Version::V2) => Some(("", "cpuset.cpus.effective")),
            _ => self.file(version),
        }
    }

    /// Which kernels have the file.
    pub fn support(&self, version: Version) -> Support {
        match version {
            Version::V1 => self.support[0],
            Version::V2 => self.support[1],
        }
    }

    /// The amounts that are written; weights of v2 for shares.
    pub fn range(&self, version: Version) -> RangeInclusive<i64> {
        match (self.form, version) {
            (Form::Shares, Version::V2) => WEIGHTS,
            (_, Version::V1) => self.range[0].clone(),
            (_, Version::V2) => self.range[1].clone(),
        }
    }

    /// The text that makes the file say a value.
    ///
    /// # Errors
    ///
    /// The value is out of range, or not of a kind that the file has.
    pub fn text(&self, version: Version, value: &Value) -> Result<String, ValueError> {
        let resource = self.resource;
        if self.file(version).is_none() {
            return Err(ValueError::Version { resource, version });
        }
        let kind = || ValueError::Kind { resource, value: value.to_string() };
        let checked = |value: i64| {
            let range = self.range(version);
            let (min, max) = (*range.start(), *range.end());
            if range.contains(&value) { Ok(value) } else { Err(ValueError::Range { resource, value, min, max }) }
        };
        Ok(match (self.form, value) {
            (Form::Amount | Form::Threshold, Value::Amount(amount)) => checked(*amount)?.to_string(),
            (Form::Threshold, Value::Unlimited) => i64::MAX.to_string(),
            (Form::Limit | Form::Quota | Form::Period, Value::Amount(amount)) => amount.to_string(),
            (Form::Limit | Form::Quota, Value::Unlimited) => match version {
                Version::V1 => "-1".to_owned(),
                Version::V2 => "max".to_owned(),
            },
            (Form::Shares, Value::Amount(shares)) => match version {
                Version::V1 => checked(*shares)?.to_string(),
                Version::V2 => {
                    let (min, max) = (*SHARES.start(), *SHARES.end());
                    let weight = weight_of_shares(*shares);
                    weight.ok_or(ValueError::Range { resource, value: *shares, min, max })?.to_string()
                }
            },
            (Form::Cpus, Value::Cpus(cpus)) => cpus.to_string(),
            (Form::Disks, Value::Disk { disk, text }) => {
                let amount: i64 = text.parse().map_err(|_| kind())?;
                // 0 takes a limit of throttling away.
                if amount != 0 || resource == Resource::BlkioWeight {
                    checked(amount)?;
                }
                format!("{disk} {text}")
            }
            (Form::DiskParameters, Value::Disk { disk, text }) => format!("{disk} {text}"),
            _ => return Err(kind()),
        })
    }

    /// The value that a text of the file says; of files with several lines, use the parser of the file.
    ///
    /// # Errors
    ///
    /// The text is none that a kernel writes.
    pub fn value(&self, version: Version, text: &[u8]) -> Result<Value, TextError> {
        let text = str::from_utf8(text).unwrap_or_default().trim();
        let error = |expected| TextError { resource: self.resource, text: text.chars().take(80).collect(), expected };
        let number = |text: &str| match text {
            "max" => Some(Value::Unlimited),
            text => text.parse().ok().map(Value::Amount),
        };
        match self.form {
            Form::Amount => number(text).ok_or_else(|| error("number")),
            Form::Limit | Form::Threshold => match number(text) {
                Some(Value::Amount(amount)) if !(0..UNLIMITED_FROM).contains(&amount) => Ok(Value::Unlimited),
                Some(value) => Ok(value),
                None => Err(error("limit")),
            },
            Form::Shares => match (number(text), version) {
                (Some(Value::Amount(shares)), Version::V1) => Ok(Value::Amount(shares)),
                (Some(Value::Amount(weight)), Version::V2) => {
                    shares_of_weight(weight).map(Value::Amount).ok_or_else(|| error("weight from 1 to 10000"))
                }
                _ => Err(error("number")),
            },
            Form::Quota | Form::Period => {
                let field = match version {
                    Version::V1 => Some(text),
                    Version::V2 => text
                        .split_once(' ')
                        .map(|(quota, period)| if self.form == Form::Quota { quota } else { period }),
                };
                match field.and_then(number) {
                    Some(Value::Amount(amount)) if amount < 0 => Ok(Value::Unlimited),
                    Some(value) => Ok(value),
                    None => Err(error("quota")),
                }
            }
            Form::Cpus => text.parse::<CpuSet>().map(Value::Cpus).map_err(|_| error("list of CPUs")),
            Form::Disks | Form::DiskParameters | Form::Ids | Form::Lines => Err(error("single value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_resources() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.resource as usize, index, "{}", row.name);
        }
    }

    #[test]
    fn a_value_is_written_and_read_as_each_version_does() {
        use Version::{V1, V2};
        let cpus: CpuSet = "0,1,2,5".parse().unwrap();
        for (resource, version, value, text) in [
            (R::CpuShares, V1, Value::Amount(1024), "1024"),
            (R::CpuShares, V2, Value::Amount(998), "38"),
            (R::CpuQuota, V1, Value::Unlimited, "-1"),
            (R::CpuQuota, V2, Value::Unlimited, "max"),
            (R::MemoryLimit, V1, Value::Unlimited, "-1"),
            (R::MemoryLimit, V2, Value::Unlimited, "max"),
            (R::MemoryHigh, V2, Value::Unlimited, "9223372036854775807"),
            (R::Cpuset, V1, Value::Cpus(cpus), "0-2,5"),
            (R::GroupIdentity, V1, Value::Amount(-1), "-1"),
        ] {
            assert_eq!(resource.row().text(version, &value).unwrap(), text, "{resource}");
        }
        for (resource, version, text, value) in [
            (R::CpuQuota, V2, "max 100000\n", Value::Unlimited),
            (R::CpuQuota, V2, "50000 100000\n", Value::Amount(50_000)),
            (R::CpuPeriod, V2, "50000 100000\n", Value::Amount(100_000)),
            (R::CpuQuota, V1, "-1\n", Value::Unlimited),
            (R::MemoryLimit, V1, "9223372036854771712\n", Value::Unlimited),
            (R::MemoryHigh, V2, "max\n", Value::Unlimited),
            (R::CpuShares, V2, "39\n", Value::Amount(998)),
        ] {
            assert_eq!(resource.row().value(version, text.as_bytes()).unwrap(), value, "{resource} {text}");
        }
    }

    #[test]
    fn what_is_out_of_range_or_of_another_kind_is_refused() {
        use Version::{V1, V2};
        for (resource, version, value, message) in [
            (R::GroupIdentity, V1, Value::Amount(3), "3 is out of the range -1 to 2 of cpu.bvt_warp_ns"),
            (R::CpuShares, V2, Value::Amount(1), "1 is out of the range 2 to 262144 of cpu.shares"),
            (
                R::CpuBurst,
                V1,
                Value::Amount(100_000_001),
                "100000001 is out of the range 0 to 100000000 of cpu.cfs_burst_us",
            ),
            (R::Cpuset, V1, Value::Amount(1), "cpuset.cpus takes no such value: 1"),
            (R::BlkioWeight, V2, Value::Amount(1), "cgroup V2 has no blkio.cost.weight"),
            (
                R::BlkioWeight,
                V1,
                Value::Disk { disk: "8:0".into(), text: "101".into() },
                "101 is out of the range 1 to 100 of blkio.cost.weight",
            ),
        ] {
            assert_eq!(resource.row().text(version, &value).unwrap_err().to_string(), message);
        }
        for (resource, text) in [(R::CpuQuota, "max"), (R::Cpuset, "a-b"), (R::MemoryLimit, ""), (R::CpuShares, "0")] {
            assert!(resource.row().value(V2, text.as_bytes()).is_err(), "{resource} {text:?}");
        }
    }
}
