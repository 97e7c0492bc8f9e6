//! How long parts of the agent's work take, as histograms. What is measured follows from the time that the agent is given.

use std::time::Duration;

use koord_core::clock::Moment;
use koord_koordlet_framework::Target;
use koord_koordlet_resolver::{MountedFiles, NodeFiles, WriteError};
use koord_koordlet_system::{ReadError, Value};
use koord_runtime::metrics::{Audience, Description, Metrics, Unit};
use prometheus::HistogramVec;

use crate::exchange::KubeletPath;

pub(crate) const KUBELET_REQUESTS: Description = Description::histogram(
    "koordlet_kubelet_request_duration_seconds",
    &["verb", "path", "code"],
    &[0.001, 0.004, 0.016, 0.064, 0.256, 1.024, 4.096],
    "How long the kubelet takes to answer; requests without an answer do not count.",
)
.to(Audience::Internal);
pub(crate) const UPDATES: Description = Description::histogram(
    "koordlet_resource_update_duration_milliseconds",
    &["type", "status"],
    &[0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 163.84],
    "How long a write into a file of the node takes, in milliseconds.",
)
.unit(Unit::Count)
.to(Audience::Internal);

/// The histograms. An agent without them measures nothing.
#[derive(Clone)]
pub(crate) struct Durations {
    kubelet_requests: HistogramVec,
    updates: HistogramVec,
}

impl Durations {
    pub(crate) fn new(metrics: &Metrics) -> prometheus::Result<Self> {
        Ok(Self { kubelet_requests: metrics.histogram(KUBELET_REQUESTS)?, updates: metrics.histogram(UPDATES)? })
    }

    pub(crate) fn kubelet_request(&self, path: KubeletPath, status: u16, took: Duration) {
        let status = status.to_string();
        self.kubelet_requests.with_label_values(&["get", path.as_str(), &status]).observe(took.as_secs_f64());
    }

    fn update(&self, target: &Target, is_written: bool, took: Duration) {
        let kind = if target.cgroup().is_some() { "cgroup" } else { "system" };
        let status = if is_written { "success" } else { "failed" };
        self.updates.with_label_values(&[kind, status]).observe(took.as_secs_f64() * 1000.0);
    }
}

/// Files of the node whose writes are measured.
pub(crate) struct MeasuredFiles<'a> {
    pub(crate) files: &'a mut MountedFiles,
    pub(crate) durations: Option<&'a Durations>,
    /// Shows the moment.
    pub(crate) time: &'a dyn Fn() -> Moment,
}

impl NodeFiles for MeasuredFiles<'_> {
    fn read(&self, target: &Target) -> Result<Value, ReadError> {
        self.files.read(target)
    }

    fn is_rounded(&self, target: &Target, value: &Value) -> bool {
        self.files.is_rounded(target, value)
    }

    fn write(&mut self, target: &Target, value: &Value) -> Result<(), WriteError> {
        let begin = (self.time)();
        let result = self.files.write(target, value);
        if let Some(durations) = self.durations {
            durations.update(target, result.is_ok(), (self.time)().since(begin));
        }
        result
    }

    fn supports(&self, target: &Target) -> bool {
        self.files.supports(target)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs};

    use koord_koordlet_system::{CgroupPath, Cgroups, Driver, KernelWriter, Layout, Resource, Version};

    use super::*;

    #[test]
    fn requests_and_writes_are_measured_by_the_time_that_is_given() {
        let metrics = Metrics::new().unwrap();
        let durations = Durations::new(&metrics).unwrap();
        durations.kubelet_request(KubeletPath::Pods, 200, Duration::from_millis(5));
        durations.kubelet_request(KubeletPath::Configuration, 403, Duration::from_millis(500));
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("kubepods")).unwrap();
        fs::write(root.path().join("kubepods/cpu.weight"), "100\n").unwrap();
        let cgroups = Cgroups::new(root.path().to_owned(), Layout::new(Version::V2, Driver::Cgroupfs));
        let mut files = MountedFiles::new(cgroups, Box::new(KernelWriter));
        let now = Cell::new(Duration::ZERO);
        let time = || Moment::at(now.replace(now.get() + Duration::from_millis(3)));
        let mut measured = MeasuredFiles { files: &mut files, durations: Some(&durations), time: &time };
        for (cgroup, is_written) in [("kubepods", true), ("gone", false)] {
            let target = Target::Cgroup { cgroup: CgroupPath::new(cgroup), resource: Resource::CpuShares };
            assert_eq!(measured.write(&target, &Value::Amount(1024)).is_ok(), is_written, "{cgroup}");
        }
        let text = metrics.text(&[Audience::Internal]);
        for line in [
            r#"koordlet_kubelet_request_duration_seconds_bucket{code="200",path="/pods/",verb="get",le="0.004"} 0"#,
            r#"koordlet_kubelet_request_duration_seconds_bucket{code="200",path="/pods/",verb="get",le="0.016"} 1"#,
            r#"koordlet_kubelet_request_duration_seconds_sum{code="403",path="/configz",verb="get"} 0.5"#,
            r#"koordlet_resource_update_duration_milliseconds_sum{status="success",type="cgroup"} 3"#,
            r#"koordlet_resource_update_duration_milliseconds_count{status="failed",type="cgroup"} 1"#,
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing in\n{text}");
        }
    }
}
