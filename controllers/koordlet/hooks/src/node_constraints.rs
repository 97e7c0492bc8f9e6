//! What the reconciler keeps beside the pods of the list: QoS folders, host applications, and folders of pods that are not listed.

use std::collections::BTreeSet;

use koord_koordlet_framework::{Constraints, Precedence, Reason, host_application_cgroup};
use koord_koordlet_system::{CgroupPath, Kernel, Layout, QosFolder, Resource, Value};
use koord_types::qos::QosClass;

use crate::{
    cpuset::CpusetRule,
    refused::{Refused, Subject},
    rules::Rules,
    values::Values,
};

const CGROUP_PATH: &str = "NodeSLO hostApplications.cgroupPath";

/// The constraints of everything that is no listed pod.
pub(crate) fn node_constraints(
    rules: &Rules,
    listed: &BTreeSet<&CgroupPath>,
    kernel: &dyn Kernel,
    refused: &mut Vec<Refused>,
) -> Constraints {
    let layout = rules.layout;
    let mut constraints = Constraints::default();
    for folder in QosFolder::ALL {
        let cgroup = layout.qos(folder);
        if let Some(rule) = rules.group_identity.as_ref().filter(|rule| rule.is_ready()) {
            let identity = Values { group_identity: Some(rule.folder(folder)), ..Values::default() };
            identity.clone().constrain(&cgroup, &mut constraints);
            for pod in kernel.children(&cgroup) {
                if !layout.is_pod_folder(pod.name()) || listed.contains(&pod) {
                    continue;
                }
                identity.clone().constrain(&pod, &mut constraints);
                for container in kernel.children(&pod) {
                    identity.clone().constrain(&container, &mut constraints);
                }
            }
        }
        let idle = rules.core_sched.as_ref().and_then(|rule| rule.idle(folder));
        if let Some(idle) = idle.filter(|_| kernel.supports(&cgroup, Resource::CpuIdle)) {
            constraints.exactly(&cgroup, Resource::CpuIdle, Value::Amount(idle.value), idle.precedence, idle.reason);
        }
    }
    host_applications(rules, &mut constraints, refused);
    constraints
}

fn host_applications(rules: &Rules, constraints: &mut Constraints, refused: &mut Vec<Refused>) {
    let group_identity = rules.group_identity.as_ref().filter(|rule| rule.is_ready());
    if group_identity.is_none() && rules.cpuset.is_none() {
        return;
    }
    for application in &rules.host_applications {
        let cgroup = match host_application_cgroup(rules.layout, application) {
            Ok(cgroup) => cgroup,
            Err(reason) => {
                let subject = Subject::HostApplication(application.name.as_str().into());
                refused.push(Refused { subject, key: CGROUP_PATH, reason: reason.into() });
                continue;
            }
        };
        let is_ls = application.qos == Some(QosClass::Ls);
        let values = Values {
            group_identity: group_identity.map(|rule| rule.host_application(application.qos.as_ref())),
            cpuset: rules.cpuset.as_ref().filter(|_| is_ls).and_then(CpusetRule::host_application),
            ..Values::default()
        };
        values.constrain(&cgroup, constraints);
    }
}

/// What is undone when the agent stops: the kubelet cannot write `cpu.shares` of its QoS folders, and does not start, while `cpu.idle` is 1 there.
pub fn on_stop(layout: Layout, kernel: &dyn Kernel) -> Constraints {
    let mut constraints = Constraints::default();
    for folder in [QosFolder::Burstable, QosFolder::BestEffort] {
        let cgroup = layout.qos(folder);
        if kernel.supports(&cgroup, Resource::CpuIdle) {
            let reason = Reason::new("cpu.idle", "0: the kubelet cannot set shares of an idle folder when it starts");
            constraints.exactly(&cgroup, Resource::CpuIdle, Value::Amount(0), Precedence::Default, reason);
        }
    }
    constraints
}
