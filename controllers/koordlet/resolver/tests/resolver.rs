//! What a pass of the resolver writes, in which order, and what it does when the kernel refuses.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    time::Duration,
};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Constraints, Precedence, Reason, Target};
use koord_koordlet_resolver::{NodeFiles, Resolver, State, WriteError};
use koord_koordlet_system::{CgroupPath, ReadError, Resource, Value};

/// A kernel that checks what a real one does, and notes each write.
#[derive(Default)]
struct Kernel {
    values: BTreeMap<Target, Value>,
    log: Vec<String>,
    /// Targets that show no limit as another number than the one that is written.
    rounded: BTreeSet<Target>,
    /// The errno with which a write fails.
    refuses: BTreeMap<Target, i32>,
}

impl Kernel {
    fn set(&mut self, cgroup: &str, resource: Resource, value: Value) {
        self.values.insert(target(cgroup, resource), value);
    }

    fn shows(&self, cgroup: &str, resource: Resource) -> &Value {
        &self.values[&target(cgroup, resource)]
    }
}

impl NodeFiles for Kernel {
    fn read(&self, target: &Target) -> Result<Value, ReadError> {
        self.values.get(target).cloned().ok_or(ReadError::Gone { path: target.to_string().into() })
    }

    fn is_rounded(&self, target: &Target, _: &Value) -> bool {
        self.rounded.contains(target)
    }

    fn write(&mut self, target: &Target, value: &Value) -> Result<(), WriteError> {
        let refused = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            WriteError::Refused { path: target.to_string().into(), value: value.to_string(), source }
        };
        if let Some(errno) = self.refuses.get(target) {
            return Err(refused(*errno));
        }
        let Target::Cgroup { cgroup, resource } = target else { panic!("{target}") };
        let cpus = |value: &Value| value.cpus().unwrap().clone();
        for (other, shown) in &self.values {
            let Target::Cgroup { cgroup: other, resource: of } = other else { continue };
            match resource {
                // The CPUs of a child are some of its parent's.
                Resource::Cpuset if of == resource => {
                    let is_parent = cgroup.parent().as_ref() == Some(other);
                    let is_child = other.parent().as_ref() == Some(cgroup);
                    if (is_parent && !cpus(value).is_subset(&cpus(shown)))
                        || (is_child && !cpus(shown).is_subset(&cpus(value)))
                    {
                        return Err(refused(libc_errno::EBUSY));
                    }
                }
                Resource::CpuBurst
                    if *of == Resource::CpuQuota
                        && other == cgroup
                        && *shown != Value::Unlimited
                        && value.amount() > shown.amount() =>
                {
                    return Err(refused(libc_errno::EINVAL));
                }
                Resource::CpuQuota
                    if *of == Resource::CpuBurst
                        && other == cgroup
                        && *value != Value::Unlimited
                        && shown.amount() > value.amount() =>
                {
                    return Err(refused(libc_errno::EINVAL));
                }
                _ => {}
            }
        }
        self.log.push(format!("{target}={value}"));
        self.values.insert(target.clone(), value.clone());
        Ok(())
    }

    fn supports(&self, target: &Target) -> bool {
        !matches!(target, Target::Cgroup { resource: Resource::GroupIdentity, .. })
    }
}

mod libc_errno {
    pub(super) const EPERM: i32 = 1;
    pub(super) const EBUSY: i32 = 16;
    pub(super) const EINVAL: i32 = 22;
}

fn target(cgroup: &str, resource: Resource) -> Target {
    Target::Cgroup { cgroup: CgroupPath::new(cgroup), resource }
}

fn constraints<'a>(wanted: impl IntoIterator<Item = (&'a str, Resource, Value)>) -> Constraints {
    let mut constraints = Constraints::default();
    for (cgroup, resource, value) in wanted {
        let reason = Reason::new("spec.test", "because");
        constraints.exactly(&CgroupPath::new(cgroup), resource, value, Precedence::Specified, reason);
    }
    constraints
}

fn cpus(text: &str) -> Value {
    Value::Cpus(text.parse().unwrap())
}

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn resolver() -> Resolver {
    Resolver::new(Duration::from_mins(1))
}

#[test]
fn no_limit_is_written_once_over_another_number_that_means_none() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    for pod in ["be/a", "be/b"] {
        kernel.set(pod, Resource::MemoryHigh, Value::Unlimited);
    }
    kernel.rounded.insert(target("be/a", Resource::MemoryHigh));
    let wanted = ["be/a", "be/b"].map(|pod| (pod, Resource::MemoryHigh, Value::Unlimited));
    for minute in 0..3 {
        resolver.submit("CgroupReconcile", constraints(wanted.clone()));
        resolver.pass(at(minute * 61), &mut kernel);
    }
    assert_eq!(kernel.log, ["be/a/memory.high=unlimited"]);
}

#[test]
fn cpus_move_without_a_moment_in_which_a_child_has_more_than_its_parent() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    for cgroup in ["be", "be/pod", "be/pod/main"] {
        kernel.set(cgroup, Resource::Cpuset, cpus("0-3"));
    }
    let all = ["be/pod/main", "be", "be/pod"];
    resolver.submit("CPUSuppress", constraints(all.map(|cgroup| (cgroup, Resource::Cpuset, cpus("2-5")))));
    let outcome = resolver.pass(at(0), &mut kernel);
    assert!(outcome.refused.is_empty(), "{:?}", outcome.refused);
    assert_eq!(
        kernel.log,
        [
            "be/cpuset.cpus=0-5",
            "be/pod/cpuset.cpus=0-5",
            "be/pod/main/cpuset.cpus=0-5",
            "be/pod/main/cpuset.cpus=2-5",
            "be/pod/cpuset.cpus=2-5",
            "be/cpuset.cpus=2-5"
        ]
    );
}

#[test]
fn what_is_raised_goes_down_and_what_is_lowered_goes_up() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    for (cgroup, bytes) in [("pod", 10), ("pod/a", 5), ("pod/b", 20)] {
        kernel.set(cgroup, Resource::MemoryMin, Value::Amount(bytes));
    }
    let wanted = [("pod/a", 30), ("pod", 40), ("pod/b", 10)];
    resolver.submit(
        "memory",
        constraints(wanted.map(|(cgroup, bytes)| (cgroup, Resource::MemoryMin, Value::Amount(bytes)))),
    );
    resolver.pass(at(0), &mut kernel);
    assert_eq!(kernel.log, ["pod/memory.min=40", "pod/a/memory.min=30", "pod/b/memory.min=10"]);
}

#[test]
fn nothing_is_written_that_the_kernel_shows_already() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    kernel.set("pod", Resource::CpuQuota, Value::Unlimited);
    for second in 0..200 {
        resolver.submit("a", constraints([("pod", Resource::CpuQuota, Value::Unlimited)]));
        resolver.pass(at(second), &mut kernel);
    }
    assert!(kernel.log.is_empty(), "{:?}", kernel.log);
}

#[test]
fn a_burst_above_the_quota_is_cut_and_said_once() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    kernel.set("pod", Resource::CpuQuota, Value::Amount(200_000));
    kernel.set("pod", Resource::CpuBurst, Value::Amount(0));
    let mut refused = Vec::new();
    for second in 0..200 {
        resolver.submit("CPUBurst", constraints([("pod", Resource::CpuBurst, Value::Amount(2_000_000))]));
        refused.extend(resolver.pass(at(second), &mut kernel).refused);
    }
    assert_eq!(kernel.log, ["pod/cpu.cfs_burst_us=200000"]);
    let [(_, wanted, reason)] = &*refused else { panic!("{refused:?}") };
    assert_eq!(*wanted, Value::Amount(2_000_000));
    assert_eq!(reason, "Invalid argument (os error 22); a burst is at most the quota, 200000 µs");
}

#[test]
fn a_burst_that_was_cut_follows_the_quota() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    kernel.set("pod", Resource::CpuQuota, Value::Amount(240_000));
    kernel.set("pod", Resource::CpuBurst, Value::Amount(0));
    resolver.submit("CPUBurst", constraints([("pod", Resource::CpuBurst, Value::Amount(2_000_000))]));
    let mut refused = Vec::new();
    for (second, quota) in [(0, 240_000), (10, 200_000), (20, 300_000)] {
        resolver.submit("BatchResource", constraints([("pod", Resource::CpuQuota, Value::Amount(quota))]));
        for second in second..second + 3 {
            refused.extend(resolver.pass(at(second), &mut kernel).refused);
        }
        for resource in [Resource::CpuQuota, Resource::CpuBurst] {
            assert_eq!(kernel.shows("pod", resource), &Value::Amount(quota), "{resource} at {second}");
        }
    }
    assert_eq!(refused.len(), 1, "it is reported once that the burst is cut: {refused:?}");
    let quota = constraints([("pod", Resource::CpuQuota, Value::Unlimited)]);
    resolver.submit("BatchResource", quota);
    (30..33).for_each(|second| _ = resolver.pass(at(second), &mut kernel));
    assert_eq!(
        kernel.shows("pod", Resource::CpuBurst),
        &Value::Amount(2_000_000),
        "without a quota all of it is taken"
    );
}

#[test]
fn a_refused_value_is_tried_again_after_growing_pauses_and_said_once() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    kernel.set("pod", Resource::CpuShares, Value::Amount(2));
    kernel.refuses.insert(target("pod", Resource::CpuShares), libc_errno::EPERM);
    resolver.submit("a", constraints([("pod", Resource::CpuShares, Value::Amount(1024))]));
    let (mut said, mut tries) = (0, Vec::new());
    for second in 0..200 {
        if resolver.is_due(at(second)) {
            tries.push(second);
        }
        said += resolver.pass(at(second), &mut kernel).refused.len();
    }
    assert_eq!((said, tries), (1, vec![0, 1, 3, 7, 15, 31, 63, 123, 183]));
    kernel.refuses.clear();
    resolver.pass(at(400), &mut kernel);
    assert_eq!(kernel.shows("pod", Resource::CpuShares), &Value::Amount(1024));
}

#[test]
fn a_foreign_writer_is_reported_after_three_reverts_and_not_fought() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    kernel.set("pod", Resource::CpuShares, Value::Amount(2));
    resolver.submit("a", constraints([("pod", Resource::CpuShares, Value::Amount(1024))]));
    let mut foreign = Vec::new();
    for second in (0..1000).step_by(61) {
        foreign.extend(resolver.pass(at(second), &mut kernel).foreign);
        kernel.set("pod", Resource::CpuShares, Value::Amount(7));
    }
    assert_eq!(foreign, [(target("pod", Resource::CpuShares), Value::Amount(7))]);
    assert_eq!(kernel.log.len(), 3);
    resolver.submit("a", constraints([("pod", Resource::CpuShares, Value::Amount(512))]));
    resolver.pass(at(1001), &mut kernel);
    assert_eq!(kernel.shows("pod", Resource::CpuShares), &Value::Amount(512), "what is wanted has changed");
}

#[test]
fn a_cgroup_that_comes_late_is_found_and_one_that_goes_is_forgotten() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    resolver.submit("a", constraints([("pod", Resource::CpuShares, Value::Amount(1024))]));
    for second in 0..30 {
        assert!(resolver.pass(at(second), &mut kernel).refused.is_empty());
    }
    kernel.set("pod", Resource::CpuShares, Value::Amount(2));
    resolver.look_for_gone();
    assert_eq!(resolver.pass(at(30), &mut kernel).written.len(), 1);
    resolver.forget(|target| target.cgroup() == Some(&CgroupPath::new("pod")));
    assert_eq!(resolver.files().count(), 0);
}

#[test]
fn a_file_that_the_kernel_lacks_is_a_state_and_no_error() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    resolver.submit("GroupIdentity", constraints([("pod", Resource::GroupIdentity, Value::Amount(2))]));
    let outcome = resolver.pass(at(0), &mut kernel);
    assert_eq!((outcome.unsupported, outcome.refused.len()), (1, 0));
    assert_eq!(resolver.files().next().unwrap().1.state(), &State::Unsupported);
}

#[test]
fn what_a_strategy_does_not_want_any_more_is_left_to_others() {
    let (mut kernel, mut resolver) = (Kernel::default(), resolver());
    kernel.set("pod", Resource::CpuQuota, Value::Unlimited);
    resolver.submit("BatchResource", constraints([("pod", Resource::CpuQuota, Value::Amount(100_000))]));
    let mut burst = constraints([("pod", Resource::CpuQuota, Value::Amount(130_000))]);
    burst.0[0].precedence = Precedence::Measured;
    resolver.submit("CPUBurst", burst);
    resolver.pass(at(0), &mut kernel);
    assert_eq!(kernel.shows("pod", Resource::CpuQuota), &Value::Amount(130_000));
    resolver.submit("CPUBurst", Constraints::default());
    resolver.pass(at(1), &mut kernel);
    assert_eq!(kernel.shows("pod", Resource::CpuQuota), &Value::Amount(100_000));
    resolver.submit("BatchResource", Constraints::default());
    assert_eq!(resolver.files().count(), 0);
}
