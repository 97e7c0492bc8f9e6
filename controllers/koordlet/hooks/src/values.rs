//! What hooks want of one cgroup, with reasons.

use koord_koordlet_framework::{Constraints, Precedence, Reason};
use koord_koordlet_system::{CgroupPath, Resource, Value};
use koord_scheduling::CpuSet;

/// A value with its reason.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted<T> {
    pub(crate) value: T,
    pub(crate) reason: Reason,
    pub(crate) precedence: Precedence,
}

/// CPUs in the text that runtimes get, and as a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cpus {
    pub(crate) text: String,
    pub(crate) cpus: CpuSet,
}

/// What hooks want of a pod's or a container's cgroup. A later hook replaces what an earlier one wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    pub(crate) group_identity: Option<Wanted<i64>>,
    pub(crate) shares: Option<Wanted<Value>>,
    pub(crate) quota: Option<Wanted<Value>>,
    pub(crate) memory_limit: Option<Wanted<Value>>,
    pub(crate) cpuset: Option<Wanted<Cpus>>,
    pub(crate) net_class: Option<Wanted<u32>>,
}

impl<T> Wanted<T> {
    /// A value that follows from the objects.
    pub(crate) fn new(value: T, setting: &'static str, formula: impl Into<std::sync::Arc<str>>) -> Self {
        Self { value, reason: Reason::new(setting, formula), precedence: Precedence::Specified }
    }
}

impl Values {
    /// Adds them as constraints of a cgroup.
    pub(crate) fn constrain(self, cgroup: &CgroupPath, constraints: &mut Constraints) {
        let mut add = |resource, value: Option<Wanted<Value>>| {
            if let Some(Wanted { value, reason, precedence }) = value {
                constraints.exactly(cgroup, resource, value, precedence, reason);
            }
        };
        add(Resource::GroupIdentity, self.group_identity.map(|wanted| wanted.map(Value::Amount)));
        add(Resource::CpuShares, self.shares);
        add(Resource::CpuQuota, self.quota);
        add(Resource::MemoryLimit, self.memory_limit);
        add(Resource::Cpuset, self.cpuset.map(|wanted| wanted.map(|cpus| Value::Cpus(cpus.cpus))));
        add(Resource::NetClassId, self.net_class.map(|wanted| wanted.map(|class| Value::Amount(class.into()))));
    }
}

impl<T> Wanted<T> {
    pub(crate) fn map<U>(self, value: impl FnOnce(T) -> U) -> Wanted<U> {
        Wanted { value: value(self.value), reason: self.reason, precedence: self.precedence }
    }
}

/// The number that runtimes and files of cgroup v1 use: −1 for no limit.
pub(crate) fn number(value: &Value) -> i64 {
    match value {
        Value::Amount(amount) => *amount,
        _ => -1,
    }
}
