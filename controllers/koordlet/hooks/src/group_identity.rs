//! Group identity: `cpu.bvt_warp_ns` of the Anolis kernel, by QoS class.

use koord_koordlet_framework::Reason;
use koord_koordlet_system::QosFolder;
use koord_types::{
    node_slo::{CpuPolicy, ResourceQos, ResourceQosStrategy},
    pod_annotations::CPU_QOS,
    qos::QosClass,
};

use crate::{
    pod_view::PodView,
    refused::Refused,
    switches::{KernelSwitches, SCHED_CORE, SCHED_GROUP_IDENTITY, Switch},
    values::Wanted,
};

const POLICY: &str = "NodeSLO resourceQOSStrategy.policies.cpuPolicy";
const LSR: &str = "NodeSLO resourceQOSStrategy.lsrClass.cpuQOS.groupIdentity";
const LS: &str = "NodeSLO resourceQOSStrategy.lsClass.cpuQOS.groupIdentity";
const BE: &str = "NodeSLO resourceQOSStrategy.beClass.cpuQOS.groupIdentity";

/// The group identities of the classes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupIdentityRule {
    lsr: Identity,
    ls: Identity,
    be: Identity,
    /// Switches that must be set first; until then no value is given.
    pub(crate) switches: Vec<Switch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    value: i64,
    is_enabled: bool,
}

impl GroupIdentityRule {
    /// The rule of a merged strategy. `None` where nothing is written: the kernel has no group identity, or no class has it enabled and its switch is off.
    /// A kernel without the switch counts as switched on, so that zeros are written when classes are disabled.
    ///
    /// `clears` has zeros written although the switch is off: core scheduling needs that.
    pub(crate) fn new(strategy: &ResourceQosStrategy, kernel: KernelSwitches, clears: bool) -> Option<Self> {
        if !kernel.has_group_identity_file && kernel.group_identity.is_none() {
            return None;
        }
        let policy = strategy.policies.as_ref().and_then(|policies| policies.cpu_policy.as_ref());
        let is_policy = policy.is_none_or(|policy| *policy == CpuPolicy::GroupIdentity || policy.as_str().is_empty());
        let identity = |class: Option<&ResourceQos>| {
            let cpu = class.and_then(|class| class.cpu_qos.as_ref());
            match cpu {
                Some(cpu) if is_policy && cpu.enable == Some(true) => {
                    Identity { value: cpu.group_identity.unwrap_or_default(), is_enabled: true }
                }
                _ => Identity { value: 0, is_enabled: false },
            }
        };
        let (lsr, ls) = (identity(strategy.lsr_class.as_ref()), identity(strategy.ls_class.as_ref()));
        let be = identity(strategy.be_class.as_ref());
        let is_enabled = lsr.is_enabled || ls.is_enabled || be.is_enabled;
        if !is_enabled && kernel.group_identity == Some(false) && !clears {
            return None;
        }
        let mut switches = Vec::new();
        if is_enabled {
            let reason = Reason::new(POLICY, "groupIdentity: cpu.bvt_warp_ns is written only while the switch is 1");
            switches.extend(Switch::unless(SCHED_CORE, kernel.sched_core, false, &reason));
            switches.extend(Switch::unless(SCHED_GROUP_IDENTITY, kernel.group_identity, true, &reason));
        }
        Some(Self { lsr, ls, be, switches })
    }

    /// Whether the switches are as they must be.
    pub(crate) fn is_ready(&self) -> bool {
        self.switches.is_empty()
    }

    /// The value of a QoS folder: 0 of Guaranteed pods, as all pods are below it.
    pub(crate) fn folder(&self, folder: QosFolder) -> Wanted<i64> {
        match folder {
            QosFolder::Guaranteed => Wanted::new(0, LSR, "0: all pods are below this folder"),
            QosFolder::Burstable => of_class(LS, "LS", self.ls),
            QosFolder::BestEffort => of_class(BE, "BE", self.be),
        }
    }

    /// The value of pods without a class of their own.
    fn unlabelled_pod(&self, folder: QosFolder) -> Wanted<i64> {
        match folder {
            QosFolder::Guaranteed if self.lsr.is_enabled => of_class(LSR, "Guaranteed pods as LSR", self.lsr),
            QosFolder::Guaranteed => of_class(LS, "Guaranteed pods as LS, LSR is disabled", self.ls),
            QosFolder::Burstable => of_class(LS, "Burstable pods as LS", self.ls),
            QosFolder::BestEffort => of_class(BE, "BestEffort pods as BE", self.be),
        }
    }

    /// The value of a pod and of all its containers: that of the class of its label, else of its folder. The annotation changes it for pods labelled LS.
    pub(crate) fn pod(&self, pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Wanted<i64> {
        match pod.qos_label() {
            Some(QosClass::Lse | QosClass::Lsr) => of_class(LSR, "LSR", self.lsr),
            Some(QosClass::Be) => of_class(BE, "BE", self.be),
            Some(QosClass::Ls) => self.ls_pod(pod, refused),
            _ => self.unlabelled_pod(pod.folder()),
        }
    }

    fn ls_pod(&self, pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Wanted<i64> {
        let class = of_class(LS, "LS", self.ls);
        // What cannot be read leaves the value of the class.
        let Ok(Some(cpu)) = pod.read(&CPU_QOS, refused) else { return class };
        match (cpu.enable, cpu.group_identity) {
            (Some(true), Some(identity)) => {
                Wanted::new(identity, CPU_QOS.name(), format!("groupIdentity of the pod = {identity}"))
            }
            (Some(true), None) => class,
            _ => Wanted::new(0, CPU_QOS.name(), "0: the annotation does not enable it"),
        }
    }

    /// The value of a host application.
    pub(crate) fn host_application(&self, qos: Option<&QosClass>) -> Wanted<i64> {
        match qos {
            Some(QosClass::Lse | QosClass::Lsr) => of_class(LSR, "LSR", self.lsr),
            Some(QosClass::Ls) => of_class(LS, "LS", self.ls),
            Some(QosClass::Be) => of_class(BE, "BE", self.be),
            _ => Wanted::new(0, LS, "0: applications of no class have none"),
        }
    }
}

fn of_class(setting: &'static str, name: &str, identity: Identity) -> Wanted<i64> {
    let formula = if identity.is_enabled {
        format!("{name} = {}", identity.value)
    } else {
        format!("{name} = 0, it is disabled")
    };
    Wanted::new(identity.value, setting, formula)
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::CgroupPath;
    use koord_types::protocol::Labels;
    use serde_json::json;

    use super::*;

    fn strategy(value: serde_json::Value) -> ResourceQosStrategy {
        serde_json::from_value(value).unwrap()
    }

    fn class(identity: i64) -> serde_json::Value {
        json!({"cpuQOS": {"enable": true, "groupIdentity": identity}})
    }

    const KERNEL: KernelSwitches = KernelSwitches {
        group_identity: None,
        sched_core: None,
        has_group_identity_file: true,
        core_sched: crate::switches::CoreSchedSupport::Unsupported,
    };

    fn pod_value(rule: &GroupIdentityRule, label: &str, folder: &str, annotation: &str) -> (i64, usize) {
        let labels = Labels::from([("koordinator.sh/qosClass".to_owned(), label.to_owned())]);
        let mut annotations = Labels::new();
        if !annotation.is_empty() {
            annotations.insert(CPU_QOS.name().to_owned(), annotation.to_owned());
        }
        let cgroup = CgroupPath::new(folder);
        let (namespace, name, uid) = ("shop", "a", "1");
        let view = PodView {
            namespace,
            name,
            uid,
            labels: &labels,
            annotations: &annotations,
            last_good: None,
            cgroup: &cgroup,
            listed: None,
        };
        let mut refused = Vec::new();
        (rule.pod(&view, &mut refused).value, refused.len())
    }

    #[test]
    fn pods_have_the_identity_of_their_class() {
        let all = strategy(json!({"lsrClass": class(2), "lsClass": class(1), "beClass": class(-1)}));
        let only_be = strategy(json!({"beClass": class(-1)}));
        let only_ls = strategy(json!({"lsClass": class(2)}));
        let (guaranteed, burstable, besteffort) =
            ("kubepods/pod1", "kubepods/burstable/pod1", "kubepods/besteffort/pod1");
        for (strategy, label, folder, value) in [
            (&all, "LSE", guaranteed, 2),
            (&all, "LSR", guaranteed, 2),
            (&all, "LS", burstable, 1),
            (&all, "BE", besteffort, -1),
            (&all, "SYSTEM", burstable, 1),
            (&all, "system", besteffort, -1),
            (&all, "", guaranteed, 2),
            (&only_be, "", guaranteed, 0),
            (&only_be, "LS", burstable, 0),
            (&only_be, "", besteffort, -1),
            (&only_ls, "", guaranteed, 2),
            (&only_ls, "LSR", guaranteed, 0),
        ] {
            let rule = GroupIdentityRule::new(strategy, KERNEL, false).unwrap();
            assert_eq!(pod_value(&rule, label, folder, ""), (value, 0), "{label} {folder}");
        }
        let rule = GroupIdentityRule::new(&all, KERNEL, false).unwrap();
        assert_eq!(QosFolder::ALL.map(|folder| rule.folder(folder).value), [0, 1, -1]);
        let values = [None, Some(QosClass::Ls), Some(QosClass::Be), Some(QosClass::Lsr), Some(QosClass::System)];
        assert_eq!(values.map(|qos| rule.host_application(qos.as_ref()).value), [0, 1, -1, 2, 0]);
    }

    #[test]
    fn the_annotation_counts_for_pods_labelled_ls() {
        let strategy = strategy(json!({"lsrClass": class(2), "lsClass": class(2), "beClass": class(-1)}));
        let rule = GroupIdentityRule::new(&strategy, KERNEL, false).unwrap();
        for (label, annotation, value, refused) in [
            ("LS", r#"{"enable":true,"groupIdentity":-1}"#, -1, 0),
            ("LS", r#"{"enable":true}"#, 2, 0),
            ("LS", r#"{"groupIdentity":1}"#, 0, 0),
            ("LS", r#"{"enable":false,"groupIdentity":1}"#, 0, 0),
            ("LS", r#"{"enable":true,"groupIdentity":3}"#, 2, 1),
            ("LS", "{", 2, 1),
            ("LSR", r#"{"enable":true,"groupIdentity":-1}"#, 2, 0),
            ("BE", "{", -1, 0),
        ] {
            assert_eq!(
                pod_value(&rule, label, "kubepods/burstable/pod1", annotation),
                (value, refused),
                "{annotation}"
            );
        }
    }

    #[test]
    fn switches_come_before_values() {
        let enabled = strategy(json!({"beClass": class(-1)}));
        let disabled = strategy(json!({"beClass": {"cpuQOS": {"enable": false, "groupIdentity": -1}}}));
        let core_sched = strategy(json!({"beClass": class(-1), "policies": {"cpuPolicy": "coreSched"}}));
        let kernel = |group_identity, sched_core| KernelSwitches { group_identity, sched_core, ..KERNEL };
        let switches = |strategy, kernel| {
            let rule = GroupIdentityRule::new(strategy, kernel, false)?;
            let set = |switch: &Switch| (switch.file, switch.value);
            Some((rule.switches.iter().map(set).collect::<Vec<_>>(), rule.folder(QosFolder::BestEffort).value))
        };
        for (strategy, kernel, expected) in [
            (&enabled, kernel(None, None), Some((vec![], -1))),
            (&enabled, kernel(Some(false), None), Some((vec![(SCHED_GROUP_IDENTITY, true)], -1))),
            (
                &enabled,
                kernel(Some(false), Some(true)),
                Some((vec![(SCHED_CORE, false), (SCHED_GROUP_IDENTITY, true)], -1)),
            ),
            (&enabled, kernel(Some(true), Some(false)), Some((vec![], -1))),
            (&disabled, kernel(Some(true), None), Some((vec![], 0))),
            (&disabled, kernel(Some(false), None), None),
            (&disabled, kernel(None, None), Some((vec![], 0))),
            (&core_sched, kernel(Some(true), None), Some((vec![], 0))),
            (&enabled, KernelSwitches::default(), None),
        ] {
            assert_eq!(switches(strategy, kernel), expected, "{kernel:?}");
        }
    }
}
