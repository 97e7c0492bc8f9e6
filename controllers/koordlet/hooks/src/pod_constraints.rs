//! What the reconciler keeps of one pod: the files of its cgroup, its containers' and its sandbox's.

use koord_koordlet_framework::{Constraint, Constraints, Pod};
use koord_koordlet_system::{CgroupPath, Kernel};
use koord_types::qos::QosClass;

use crate::{
    hook::Hook,
    normalization::NormalizationRule,
    pod_view::PodView,
    refused::Refused,
    rules::Rules,
    sandbox::{SandboxError, sandbox_cgroup},
    values::Values,
};

/// What hooks want of one pod.
#[derive(Debug, Default)]
pub(crate) struct PodConstraints {
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) refused: Vec<Refused>,
    /// The cgroup of its sandbox; `None` when it is not known or not needed.
    pub(crate) sandbox: Option<CgroupPath>,
    pub(crate) sandbox_error: Option<SandboxError>,
    /// Whether the same pod and rules give the same again. Not while the sandbox is not found.
    pub(crate) is_settled: bool,
}

/// The constraints of a pod, its containers and its sandbox.
pub(crate) fn pod_constraints(
    pod: &Pod,
    last_good: Option<&Pod>,
    rules: &Rules,
    kernel: &dyn Kernel,
) -> PodConstraints {
    let view = PodView::of_pod(pod, last_good);
    let mut found = PodConstraints { is_settled: true, ..PodConstraints::default() };
    let refused = &mut found.refused;
    let mut constraints = Constraints::default();
    // Which class a pod has decides whether the reconciler lifts its quota; a runtime lifts it wherever there are CPUs.
    let is_pinned_class = matches!(view.cpuset_class(), Some(QosClass::Lse | QosClass::Lsr));
    let lifted = rules.cpuset.as_ref().and_then(|rule| rule.quota(&view, refused));
    let normalization = rules.normalization.filter(|_| lifted.is_none() && NormalizationRule::is_for(&view));
    let lifted = lifted.filter(|_| is_pinned_class);
    let group_identity =
        rules.group_identity.as_ref().filter(|rule| rule.is_ready()).map(|rule| rule.pod(&view, refused));

    let mut values = rules.batch.and_then(|rule| rule.pod(&view, refused)).unwrap_or_default();
    values.quota = normalization.and_then(|rule| rule.pod(pod)).or(values.quota);
    values.quota = lifted.clone().or(values.quota);
    values.group_identity.clone_from(&group_identity);
    values.constrain(&pod.cgroup, &mut constraints);

    if !pod.is_virtual_machine() {
        let cpuset = rules.cpuset.as_ref().and_then(|rule| rule.cpus(&view, refused));
        for container in &pod.containers {
            let Some(cgroup) = &container.cgroup else { continue };
            let of_container =
                rules.batch.and_then(|rule| rule.container(&view, &container.name, Some(container), refused));
            let mut values = of_container.unwrap_or_default();
            values.quota = normalization.and_then(|rule| rule.container(container)).or(values.quota);
            values.quota = lifted.clone().or(values.quota);
            values.cpuset.clone_from(&cpuset);
            values.group_identity.clone_from(&group_identity);
            values.constrain(cgroup, &mut constraints);
        }
        if cpuset.is_some() || group_identity.is_some() || needs_tasks(rules) {
            match sandbox_cgroup(pod, kernel) {
                Ok(sandbox) => {
                    found.is_settled = sandbox.is_some();
                    found.sandbox = sandbox;
                }
                Err(error) => {
                    found.is_settled = false;
                    found.sandbox_error = Some(error);
                }
            }
            if let Some(sandbox) = &found.sandbox {
                let values = Values { cpuset, group_identity: group_identity.clone(), ..Values::default() };
                values.constrain(sandbox, &mut constraints);
            }
        }
        if let Some(identity) = group_identity {
            let known = |cgroup: &CgroupPath| {
                found.sandbox.as_ref() == Some(cgroup)
                    || pod.containers.iter().any(|container| container.cgroup.as_ref() == Some(cgroup))
            };
            for cgroup in kernel.children(&pod.cgroup).iter().filter(|cgroup| !known(cgroup)) {
                let values = Values { group_identity: Some(identity.clone()), ..Values::default() };
                values.constrain(cgroup, &mut constraints);
            }
        }
    }
    found.constraints = constraints.0;
    found
}

/// Whether the processes of sandboxes are needed.
fn needs_tasks(rules: &Rules) -> bool {
    rules.options.hooks.contains(Hook::CoreSched) || (rules.resctrl.is_some() && rules.options.moves_tasks)
}
