//! Calls of container runtimes, by NRI or through the runtime proxy: what they are answered.

use koord_koordlet_system::CgroupPath;

use crate::{
    adjustment::{Adjustment, Effect, HookError, Response, RuntimeContainer, RuntimePod},
    gpu,
    hook::{HOOKS, Hook},
    normalization::NormalizationRule,
    pod_view::PodView,
    rdma::{self, DeviceReader},
    refused::Refused,
    resctrl_group::{ResctrlGroup, group_name},
    rules::{FailurePolicy, Options, Rules},
    stage::Stage,
    values::{Values, number},
};

/// Answers a call for a pod's sandbox.
///
/// The adjustment is of the sandbox; the constraints are of the pod's cgroup, which no runtime writes.
pub fn on_sandbox(stage: Stage, pod: &RuntimePod, rules: &Rules) -> Response {
    let cgroup = cgroup_of(pod);
    let view = view(pod, &cgroup);
    let mut values = Values::default();
    let mut response = run(stage, rules, |hook, response| {
        let refused = &mut response.refused;
        match hook {
            Hook::BatchResource => {
                if let Some(of_pod) = rules.batch.and_then(|rule| rule.pod(&view, refused)) {
                    values = of_pod;
                }
            }
            Hook::CpuSetAllocator => {
                let quota = rules.cpuset.as_ref().and_then(|rule| rule.quota(&view, refused));
                values.quota = quota.or(values.quota.take());
            }
            Hook::GroupIdentity => {
                let rule = rules.group_identity.as_ref().filter(|rule| rule.is_ready());
                values.group_identity = rule.map(|rule| rule.pod(&view, refused));
            }
            Hook::Resctrl => response.effects.extend(resctrl_group(stage, &view, rules, refused)),
            _ => {}
        }
    });
    adjust(&values, &mut response.adjustment);
    if !cgroup.as_str().is_empty() {
        values.constrain(&cgroup, &mut response.constraints);
    }
    response
}

/// Answers a call for a container.
pub fn on_container(
    stage: Stage,
    pod: &RuntimePod,
    container: &RuntimeContainer,
    rules: &Rules,
    devices: &dyn DeviceReader,
) -> Response {
    let cgroup = cgroup_of(pod);
    let view = view(pod, &cgroup);
    let mut values = Values::default();
    let mut response = run(stage, rules, |hook, response| {
        let refused = &mut response.refused;
        let adjustment = &mut response.adjustment;
        match hook {
            Hook::BatchResource => {
                let of_container = rules.batch.and_then(|rule| rule.container(&view, &container.name, None, refused));
                values = of_container.unwrap_or_default();
            }
            Hook::CpuNormalization if NormalizationRule::is_for(&view) => {
                let quota = rules.normalization.and_then(|rule| rule.quota(container.cpu_quota));
                values.quota = quota.or(values.quota.take());
            }
            Hook::CpuSetAllocator => {
                if let Some(rule) = &rules.cpuset {
                    values.cpuset = rule.cpus(&view, refused);
                    values.quota = rule.quota(&view, refused).or(values.quota.take());
                }
            }
            Hook::GpuEnvInject => {
                gpu::inject(&rules.options.gpu, &view, &container.name, adjustment, &mut response.effects, refused);
            }
            Hook::RdmaDeviceInject => rdma::inject(devices, &view, adjustment, refused),
            Hook::Resctrl => {
                let schemata = rules.resctrl.as_ref().and_then(|machine| machine.schemata(&view, refused));
                // A group that was not made as the annotation says is none for a container to start in.
                adjustment.rdt_class = schemata.filter(|(_, is_good)| *is_good).and_then(|_| group_name(view.uid));
            }
            _ => {}
        }
    });
    adjust(&values, &mut response.adjustment);
    response
}

impl Response {
    /// The error that NRI is answered: a hook failed, and by both policies that is an error. The runtime does not make the container then.
    pub fn nri_error(&self, options: &Options) -> Option<&HookError> {
        self.error.as_ref().filter(|_| options.failure_policy == FailurePolicy::Fail)
    }

    /// The error that the runtime proxy is answered: a hook failed, and that makes its call fail. What follows is up to the proxy, which knows the other policy.
    pub fn proxy_error(&self) -> Option<&HookError> {
        self.error.as_ref()
    }
}

/// Runs the hooks of a stage in their order, up to the first that fails when that is an error. A disabled stage has no hooks.
fn run(stage: Stage, rules: &Rules, mut hook: impl FnMut(Hook, &mut Response)) -> Response {
    let mut response = Response::default();
    let options = &rules.options;
    if options.disabled_stages.contains(stage) {
        return response;
    }
    let hooks = HOOKS.iter().filter(|row| row.stages.contains(&stage) && options.hooks.contains(row.hook));
    for row in hooks {
        let known = response.refused.len();
        hook(row.hook, &mut response);
        let failure = response.refused.get(known).cloned();
        response.ran.push((row.hook, failure.is_none()));
        if let Some(refused) = failure.filter(|_| options.plugin_failure_policy == FailurePolicy::Fail) {
            response.error = Some(HookError { hook: row.hook, refused });
            break;
        }
    }
    response
}

fn adjust(values: &Values, adjustment: &mut Adjustment) {
    adjustment.cpuset_cpus = values.cpuset.as_ref().map(|wanted| wanted.value.text.clone());
    adjustment.cpu_shares = values.shares.as_ref().map(|wanted| number(&wanted.value));
    adjustment.cpu_quota = values.quota.as_ref().map(|wanted| number(&wanted.value));
    adjustment.memory_limit = values.memory_limit.as_ref().map(|wanted| number(&wanted.value));
}

fn resctrl_group(stage: Stage, pod: &PodView<'_>, rules: &Rules, refused: &mut Vec<Refused>) -> Option<Effect> {
    let machine = rules.resctrl.as_ref()?;
    let group = group_name(pod.uid)?;
    let (schemata, _) = machine.schemata(pod, refused)?;
    Some(match stage {
        Stage::PreRemoveRunPodSandbox => Effect::RemoveGroup(group),
        _ => Effect::EnsureGroup(Box::new(ResctrlGroup::new(group, schemata, Vec::new()))),
    })
}

/// The pod's cgroup; the root when the runtime names none, or one outside of the hierarchy.
fn cgroup_of(pod: &RuntimePod) -> CgroupPath {
    let leaves = pod.cgroup_parent.split('/').any(|folder| folder == "..");
    if leaves { CgroupPath::root() } else { CgroupPath::new(&pod.cgroup_parent) }
}

fn view<'a>(pod: &'a RuntimePod, cgroup: &'a CgroupPath) -> PodView<'a> {
    PodView {
        namespace: &pod.namespace,
        name: &pod.name,
        uid: &pod.uid,
        labels: &pod.labels,
        annotations: &pod.annotations,
        last_good: None,
        cgroup,
        listed: None,
    }
}
