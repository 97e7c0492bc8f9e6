//! Processes: their threads, their OOM score, and the kubelet among them.

use std::path::{Path, PathBuf};

use crate::{
    cgroup::{Driver, KubeletRoot},
    file_tree::{FileTree, Reader},
    kubelet_files::driver_of,
    parse_error::ParseError,
    text::{Field, fields},
};

/// The score adjustments that the kernel takes.
pub const OOM_SCORE_ADJUSTMENTS: std::ops::RangeInclusive<i64> = -1000..=1000;

/// The file with the OOM score adjustment of a process.
pub fn oom_score_adjustment_path(proc: &Path, process: u32) -> PathBuf {
    proc.join(process.to_string()).join("oom_score_adj")
}

/// The ids of the threads of a process, in order; none of a process that has ended.
pub fn threads(tree: &dyn FileTree, proc: &Path, process: u32) -> Vec<u32> {
    let folder = proc.join(process.to_string()).join("task");
    Reader::new(tree).numbered(&folder, "").into_iter().map(|(thread, _)| thread).collect()
}

/// When a process was started, in clock ticks since the machine was: with its id it tells it apart from a later process of the same id.
/// Field 22 of `/proc/<pid>/stat`.
///
/// Fails where the text has no such field. The name of the program, in parentheses, may hold anything.
pub fn parse_start_time(text: &[u8]) -> Result<u64, ParseError> {
    /// Counted from the field behind the name of the program, which is the third.
    const PLACE: usize = 22 - 3;
    let field = Field { file: "stat of a process", field: "starttime" };
    let name_end = text.iter().rposition(|byte| *byte == b')').ok_or_else(|| field.missing())?;
    field.unsigned(text.get(name_end + 1..).and_then(|rest| fields(rest).nth(PLACE)))
}

/// A process of the kubelet with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletProcess {
    /// Its id.
    pub process: u32,
    arguments: Vec<String>,
}

impl KubeletProcess {
    /// The first process whose program is named `kubelet`, or that was started as the command `kubelet` of another program.
    pub fn find(tree: &dyn FileTree, proc: &Path) -> Option<Self> {
        let reader = Reader::new(tree);
        let processes = reader.numbered(proc, "").into_iter();
        processes.map(|(process, folder)| (process, reader.text(&folder.join("cmdline")))).find_map(
            |(process, line)| {
                let kubelet = Self { process, arguments: arguments(&line?) };
                let mut names = kubelet.arguments.iter().take(2).map(|name| name.rsplit('/').next().unwrap_or(name));
                names.any(|name| name == "kubelet").then_some(kubelet)
            },
        )
    }

    /// The value of a flag: `--name=value` or `--name value`, with one or two dashes. The last one counts.
    pub fn flag(&self, name: &str) -> Option<&str> {
        let mut value = None;
        let mut arguments = self.arguments.iter().map(String::as_str).peekable();
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else { continue };
            if let Some((_, set)) = flag.split_once('=').filter(|(flag, _)| *flag == name) {
                value = Some(set);
            } else if flag == name {
                value = arguments.peek().copied();
            }
        }
        value
    }

    /// The driver that `--cgroup-driver` sets; it outranks the configuration file. `None` where the flag is missing or of no known driver.
    pub fn cgroup_driver(&self) -> Option<Driver> {
        self.flag("cgroup-driver").and_then(driver_of)
    }

    /// The cgroup of `--cgroup-root`, which outranks the configuration file.
    pub fn cgroup_root(&self) -> Option<KubeletRoot> {
        self.flag("cgroup-root").map(KubeletRoot::new)
    }

    /// The configuration file, as `--config` names it. It is a path in the mount namespace of the kubelet.
    pub fn configuration_file(&self) -> Option<&Path> {
        self.flag("config").map(Path::new)
    }
}

/// The arguments of a `cmdline`, which are separated by NUL bytes.
fn arguments(line: &[u8]) -> Vec<String> {
    let arguments = line.split(|byte| *byte == 0).filter(|argument| !argument.is_empty());
    arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_tree::RecordedTree;

    fn processes(lines: &[(&str, &str)]) -> RecordedTree {
        lines.iter().map(|(process, line)| (format!("/proc/{process}/cmdline"), line.replace(' ', "\0"))).collect()
    }

    #[test]
    fn the_kubelet_is_found_by_the_name_of_its_program() {
        let found = |lines: &[(&str, &str)]| {
            KubeletProcess::find(&processes(lines), Path::new("/proc")).map(|kubelet| kubelet.process)
        };
        assert_eq!(found(&[("1", "/sbin/init"), ("30", "/usr/bin/kubelet --v=2"), ("200", "kubelet")]), Some(30));
        assert_eq!(found(&[("7", "/hyperkube kubelet --v=2")]), Some(7));
        assert_eq!(
            found(&[("7", "tail -f /var/log/kubelet"), ("8", "kubelet-wrapper"), ("self", "kubelet"), ("9", "")]),
            None
        );
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn flags_of_the_kubelet_are_read() {
        let kubelet =
            |line: &str| KubeletProcess::find(&processes(&[("5", line)]), Path::new("/proc")).expect("a kubelet");
        for (line, driver, file) in [
            ("kubelet --cgroup-driver=systemd --config=/etc/k.yaml", Some(Driver::Systemd), Some("/etc/k.yaml")),
            ("kubelet --cgroup-driver cgroupfs --config /etc/k.yaml", Some(Driver::Cgroupfs), Some("/etc/k.yaml")),
            ("kubelet -cgroup-driver=systemd --cgroup-driver=cgroupfs", Some(Driver::Cgroupfs), None),
            ("kubelet --cgroup-driver=other", None, None),
            ("kubelet --cgroup-driver-x=systemd --config", None, None),
            ("kubelet", None, None),
        ] {
            let kubelet = kubelet(line);
            assert_eq!(
                (kubelet.cgroup_driver(), kubelet.configuration_file()),
                (driver, file.map(Path::new)),
                "{line}"
            );
        }
    }

    #[test]
    fn threads_and_scores_are_files_of_the_process() {
        let tree: RecordedTree =
            ["12", "101", "x"].map(|thread| (format!("/proc/12/task/{thread}/stat"), "")).into_iter().collect();
        assert_eq!(threads(&tree, Path::new("/proc"), 12), [12, 101]);
        assert_eq!(threads(&tree, Path::new("/proc"), 13), Vec::<u32>::new());
        assert_eq!(oom_score_adjustment_path(Path::new("/proc"), 12), Path::new("/proc/12/oom_score_adj"));
    }

    #[test]
    fn the_start_time_stands_behind_a_name_that_may_hold_anything() {
        let text =
            "12 (a) b (c)) S 1 12 12 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 358123 1000 10 18446744073709551615\n";
        assert_eq!(parse_start_time(text.as_bytes()), Ok(358_123));
        for text in ["", "12 (a", "12 (a) S 1 2"] {
            let error = parse_start_time(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "stat of a process lacks starttime", "{text:?}");
        }
    }
}
