//! Core scheduling: which pods may share a core, and the cookies by which the kernel knows that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_koordlet_framework::Reason;
use koord_koordlet_system::QosFolder;
use koord_types::{
    node_slo::{CpuPolicy, ResourceQos, ResourceQosStrategy},
    pod_annotations::{CORE_SCHED_GROUP_ID, CoreSchedPolicy},
    qos::QosClass,
};

use crate::{
    pod_view::PodView,
    switches::{CoreSchedSupport, KernelSwitches, SCHED_CORE, SCHED_GROUP_IDENTITY, Switch},
    values::Wanted,
};

const POLICY: &str = "NodeSLO resourceQOSStrategy.policies.cpuPolicy";
const LS_IDLE: &str = "NodeSLO resourceQOSStrategy.lsClass.cpuQOS.schedIdle";
const BE_IDLE: &str = "NodeSLO resourceQOSStrategy.beClass.cpuQOS.schedIdle";

/// The groups of the classes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoreSchedRule {
    /// Whether the policy is `coreSched`. Where it is another one, groups are dissolved.
    pub(crate) is_active: bool,
    lsr: Class,
    ls: Class,
    be: Class,
    kernel: KernelSwitches,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Class {
    is_enabled: bool,
    /// Whether its groups are apart from those of the same id of other classes.
    expels: bool,
    is_idle: bool,
}

/// A container or sandbox with its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub pod_uid: Arc<str>,
    /// The folder of its cgroup, by which it is named in messages.
    pub cgroup: Arc<str>,
    /// The group that its processes belong to; `None` when they may share cores with everyone.
    pub group: Option<Arc<str>>,
    pub processes: Vec<u32>,
}

/// A change of cookies. Each is for all threads of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieChange {
    /// `first` gets a new cookie, the others get it from there.
    Create { group: Arc<str>, first: u32, others: Vec<u32> },
    /// The cookie of `from` is given to others.
    Share { group: Arc<str>, from: u32, to: Vec<u32> },
    /// The cookie is taken away.
    Clear { processes: Vec<u32> },
}

/// Which group has which cookie. A cookie is a number that the kernel chooses; 0 is none.
#[derive(Debug, Default)]
pub struct CookieBook {
    groups: BTreeMap<Arc<str>, u64>,
}

/// The id of a process and its cookie.
type Process = (u32, u64);

impl CoreSchedRule {
    /// The rule of a merged strategy; `None` where the kernel has no core scheduling. Then no switch is touched.
    pub(crate) fn new(strategy: &ResourceQosStrategy, kernel: KernelSwitches) -> Option<Self> {
        if kernel.core_sched == CoreSchedSupport::Unsupported {
            return None;
        }
        let policy = strategy.policies.as_ref().and_then(|policies| policies.cpu_policy.as_ref());
        let is_active = policy == Some(&CpuPolicy::CoreSched);
        let class = |class: &Option<ResourceQos>| match class.as_ref().and_then(|class| class.cpu_qos.as_ref()) {
            Some(cpu) if is_active && cpu.enable == Some(true) => {
                Class { is_enabled: true, expels: cpu.core_expeller == Some(true), is_idle: cpu.sched_idle == Some(1) }
            }
            _ => Class::default(),
        };
        let (lsr, ls, be) = (class(&strategy.lsr_class), class(&strategy.ls_class), class(&strategy.be_class));
        Some(Self { is_active, lsr, ls, be, kernel })
    }

    /// Whether the kernel has group identity too. Both at once can lock it up.
    pub(crate) fn has_group_identity(&self) -> bool {
        self.kernel.has_group_identity_file
    }

    /// Switches that must be set before cookies are given. Group identity is switched off last of all: while it is on, what it wrote can be taken back.
    pub(crate) fn switches(&self) -> Vec<Switch> {
        if !self.is_active {
            return Vec::new();
        }
        let reason = Reason::new(POLICY, "coreSched: the kernel has either group identity or core scheduling");
        [(SCHED_GROUP_IDENTITY, self.kernel.group_identity, false), (SCHED_CORE, self.kernel.sched_core, true)]
            .into_iter()
            .filter_map(|(file, now, value)| Switch::unless(file, now, value, &reason))
            .collect()
    }

    /// The group of a pod's processes; `None` for pods that share cores with everyone. Daemons of class SYSTEM are left alone.
    pub(crate) fn group(&self, pod: &PodView<'_>) -> Option<Arc<str>> {
        let class = match pod.qos_label() {
            Some(QosClass::Lse | QosClass::Lsr) => self.lsr,
            Some(QosClass::Ls) => self.ls,
            Some(QosClass::Be) => self.be,
            Some(QosClass::System) => return None,
            _ => match pod.folder() {
                QosFolder::Guaranteed if self.lsr.is_enabled => self.lsr,
                QosFolder::Guaranteed | QosFolder::Burstable => self.ls,
                QosFolder::BestEffort => self.be,
            },
        };
        let id = match CoreSchedPolicy::of(pod.labels) {
            CoreSchedPolicy::None => return None,
            CoreSchedPolicy::Exclusive => pod.uid,
            _ => pod.labels.get(CORE_SCHED_GROUP_ID.name()).map_or("", String::as_str),
        };
        let suffix = if class.expels { "-expeller" } else { "" };
        class.is_enabled.then(|| format!("{id}{suffix}").into())
    }

    /// `cpu.idle` of a QoS folder; `None` for the folder that all pods are below.
    pub(crate) fn idle(&self, folder: QosFolder) -> Option<Wanted<i64>> {
        let (class, setting) = match folder {
            QosFolder::Guaranteed => return None,
            QosFolder::Burstable => (self.ls, LS_IDLE),
            QosFolder::BestEffort => (self.be, BE_IDLE),
        };
        let formula =
            if class.is_idle { "the class runs on idle CPUs only" } else { "0: the class is not set to idle" };
        Some(Wanted::new(class.is_idle.into(), setting, formula))
    }
}

impl CookieBook {
    /// Whether no group has a cookie.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The changes after which the processes of each group have one cookie, and those of no group have none of ours.
    ///
    /// A group keeps its cookie as long as one process has it. At the start it takes over the first cookie that its processes have; one that another group
    /// has is not taken. A group without any gets a new one, which is found at the next call. Processes whose cookie cannot be read have ended.
    pub fn plan(&mut self, members: &[Member], cookie: impl Fn(u32) -> Option<u64>) -> Vec<CookieChange> {
        let mut groups: Vec<(&Arc<str>, Vec<Process>)> = Vec::new();
        let mut places: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        let mut ungrouped = Vec::new();
        for member in members {
            let alive = member.processes.iter().filter_map(|process| Some((*process, cookie(*process)?)));
            match &member.group {
                None => ungrouped.extend(alive),
                Some(group) => {
                    let place = *places.entry(group).or_insert(groups.len());
                    if place == groups.len() {
                        groups.push((group, Vec::new()));
                    }
                    if let Some((_, processes)) = groups.get_mut(place) {
                        processes.extend(alive);
                    }
                }
            }
        }
        let ours: BTreeSet<u64> = self.groups.values().copied().collect();
        let clear: Vec<u32> =
            ungrouped.into_iter().filter(|(_, cookie)| ours.contains(cookie)).map(|(process, _)| process).collect();
        let mut changes: Vec<CookieChange> =
            (!clear.is_empty()).then_some(CookieChange::Clear { processes: clear }).into_iter().collect();
        self.groups.retain(|group, kept| {
            places
                .get(group)
                .and_then(|place| groups.get(*place))
                .is_some_and(|(_, processes)| processes.iter().any(|(_, cookie)| cookie == kept))
        });
        let mut taken: BTreeSet<u64> = self.groups.values().copied().collect();
        for (group, processes) in groups {
            let kept = self.groups.get(group).copied();
            let found = kept.or_else(|| {
                processes.iter().map(|(_, cookie)| *cookie).find(|cookie| *cookie != 0 && !taken.contains(cookie))
            });
            match found {
                Some(cookie) => {
                    taken.insert(cookie);
                    self.groups.insert(Arc::clone(group), cookie);
                    let from = processes.iter().find(|(_, of_process)| *of_process == cookie);
                    let to: Vec<u32> =
                        processes.iter().filter(|(_, other)| *other != cookie).map(|(id, _)| *id).collect();
                    if let Some((from, _)) = from.filter(|_| !to.is_empty()) {
                        changes.push(CookieChange::Share { group: Arc::clone(group), from: *from, to });
                    }
                }
                None => {
                    if let Some(((first, _), others)) = processes.split_first() {
                        let others = others.iter().map(|(process, _)| *process).collect();
                        changes.push(CookieChange::Create { group: Arc::clone(group), first: *first, others });
                    }
                }
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::CgroupPath;
    use koord_types::protocol::Labels;
    use serde_json::json;

    use super::*;

    fn rule() -> CoreSchedRule {
        let strategy = serde_json::from_value(json!({
            "policies": {"cpuPolicy": "coreSched"},
            "lsClass": {"cpuQOS": {"enable": true, "coreExpeller": true}},
            "beClass": {"cpuQOS": {"enable": true, "schedIdle": 1}},
        }));
        let kernel = KernelSwitches { core_sched: CoreSchedSupport::Supported, ..KernelSwitches::default() };
        CoreSchedRule::new(&strategy.unwrap(), kernel).unwrap()
    }

    #[test]
    fn pods_are_grouped_by_label_policy_and_class() {
        for (qos, id, policy, folder, group) in [
            ("LS", "a", "", "kubepods/burstable/pod1", Some("a-expeller")),
            ("BE", "a", "", "kubepods/besteffort/pod1", Some("a")),
            ("BE", "", "", "kubepods/besteffort/pod1", Some("")),
            ("LS", "a", "exclusive", "kubepods/burstable/pod1", Some("uid-1-expeller")),
            ("LS", "a", "none", "kubepods/burstable/pod1", None),
            ("LSR", "a", "", "kubepods/pod1", None),
            ("SYSTEM", "a", "", "kubepods/burstable/pod1", None),
            ("", "a", "", "kubepods/pod1", Some("a-expeller")),
            ("", "a", "", "kubepods/besteffort/pod1", Some("a")),
        ] {
            let texts = [
                ("koordinator.sh/qosClass", qos),
                (CORE_SCHED_GROUP_ID.name(), id),
                ("koordinator.sh/core-sched-policy", policy),
            ];
            let texts = texts.iter().filter(|(_, text)| !text.is_empty());
            let labels: Labels = texts.map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
            let (annotations, cgroup) = (Labels::new(), CgroupPath::new(folder));
            let pod = PodView {
                namespace: "shop",
                name: "a",
                uid: "uid-1",
                labels: &labels,
                annotations: &annotations,
                last_good: None,
                cgroup: &cgroup,
                listed: None,
            };
            assert_eq!(rule().group(&pod).as_deref(), group, "{qos} {id} {policy} {folder}");
        }
        let idle = QosFolder::ALL.map(|folder| rule().idle(folder).map(|idle| idle.value));
        assert_eq!(idle, [None, Some(0), Some(1)]);
    }

    #[test]
    fn a_kernel_without_core_scheduling_keeps_its_switches() {
        let strategy: ResourceQosStrategy =
            serde_json::from_value(json!({"policies": {"cpuPolicy": "coreSched"}})).unwrap();
        let kernel = KernelSwitches {
            group_identity: Some(true),
            sched_core: Some(false),
            core_sched: CoreSchedSupport::Unsupported,
            ..KernelSwitches::default()
        };
        assert_eq!(CoreSchedRule::new(&strategy, kernel), None);
        let supported = KernelSwitches { core_sched: CoreSchedSupport::Supported, ..kernel };
        let switches = CoreSchedRule::new(&strategy, supported).unwrap().switches();
        let set: Vec<_> = switches.iter().map(|switch| (switch.file, switch.value)).collect();
        assert_eq!(set, [(SCHED_GROUP_IDENTITY, false), (SCHED_CORE, true)]);
    }

    fn member(group: Option<&str>, processes: &[u32]) -> Member {
        Member { pod_uid: "1".into(), cgroup: "c".into(), group: group.map(Into::into), processes: processes.to_vec() }
    }

    #[test]
    fn a_group_gets_one_cookie_and_keeps_it() {
        let mut book = CookieBook::default();
        let cookies = |known: &'static [(u32, u64)]| {
            move |process: u32| known.iter().find(|(id, _)| *id == process).map(|(_, cookie)| *cookie)
        };
        let group: Arc<str> = "a".into();
        let members = [member(Some("a"), &[1, 2]), member(Some("a"), &[3, 9])];
        let created = CookieChange::Create { group: Arc::clone(&group), first: 1, others: vec![2, 3] };
        assert_eq!(book.plan(&members, cookies(&[(1, 0), (2, 0), (3, 0)])), [created]);
        assert_eq!(book.plan(&members, cookies(&[(1, 7), (2, 7), (3, 7)])), []);
        // A container was restarted: its new process gets the cookie from one that has it.
        let members = [member(Some("a"), &[1, 2]), member(Some("a"), &[4])];
        let shared = CookieChange::Share { group: Arc::clone(&group), from: 1, to: vec![4] };
        assert_eq!(book.plan(&members, cookies(&[(1, 7), (2, 7), (4, 0)])), [shared]);
        // The policy of a pod became none, and another pod moved to a group of its own.
        let members = [member(None, &[1, 5]), member(Some("b"), &[2]), member(Some("a"), &[4])];
        let changes = book.plan(&members, cookies(&[(1, 7), (2, 7), (4, 7), (5, 99)]));
        let create = CookieChange::Create { group: "b".into(), first: 2, others: vec![] };
        assert_eq!(changes, [CookieChange::Clear { processes: vec![1] }, create]);
    }

    #[test]
    fn cookies_of_an_earlier_run_are_taken_over() {
        let mut book = CookieBook::default();
        let members = [member(Some("a"), &[1]), member(Some("a"), &[2]), member(Some("b"), &[3])];
        // The second group finds only the cookie of the first, which it does not take.
        let changes = book.plan(&members, |process| Some(if process == 2 { 0 } else { 7 }));
        let expected = [
            CookieChange::Share { group: "a".into(), from: 1, to: vec![2] },
            CookieChange::Create { group: "b".into(), first: 3, others: vec![] },
        ];
        assert_eq!(changes, expected);
    }
}
