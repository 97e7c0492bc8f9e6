//! The reconciler: what hooks want of all pods, whoever made their containers, and also after another program has changed it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_koordlet_framework::{Constraint, Constraints, Pod};
use koord_koordlet_system::{CgroupPath, Kernel, Resource, Value, parse_ids};
use koord_types::pod_annotations::{NETWORK_QOS, OOM_SCORE_ADJ, OOM_SCORE_ADJ_SPEC, RESCTRL};

use crate::{
    core_sched::{CookieBook, CookieChange, Member},
    hook::Hook,
    network::{
        terway::TerwayFiles,
        traffic::{PodMinors, TrafficPlan},
    },
    node_constraints::node_constraints,
    oom_score::{OomScore, score},
    pod_constraints::{PodConstraints, pod_constraints},
    pod_view::PodView,
    refused::Refused,
    resctrl_group::{ResctrlGroup, group_name},
    rules::Rules,
    sandbox::SandboxError,
    switches::Switch,
    values::Values,
};

/// Reconciles one list of pods after the other. What did not change is not computed again.
#[derive(Debug, Default)]
pub struct Reconciler {
    rules: Option<Arc<Rules>>,
    pods: BTreeMap<Arc<str>, KeptPod>,
    /// Constraints of everything that is no listed pod.
    of_node: Constraints,
    constraints: Arc<Constraints>,
    traffic: Option<Arc<TrafficPlan>>,
    terway: Option<Arc<TerwayFiles>>,
    net_classes: Vec<Constraint>,
    network_refused: Vec<Refused>,
    minors: PodMinors,
    cookies: CookieBook,
}

#[derive(Debug)]
struct KeptPod {
    pod: Arc<Pod>,
    /// The pod as it was when all its annotations could be read.
    good: Option<Arc<Pod>>,
    found: PodConstraints,
}

/// What hooks want now.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Files of cgroups; the same object as before when nothing changed.
    pub constraints: Arc<Constraints>,
    /// Switches that are set first. When one was set, rules are computed again and the pods reconciled again at once.
    pub switches: Vec<Switch>,
    pub oom_scores: Vec<OomScore>,
    /// Groups of pods that need one.
    pub groups: Vec<ResctrlGroup>,
    /// The names of these groups: others of pods are removed when they are old enough.
    pub needed_groups: BTreeSet<String>,
    pub cookies: Vec<CookieChange>,
    /// Why cookies and switches of core scheduling wait.
    pub core_sched_waits: Option<String>,
    /// What is on the network card; `None` takes everything of ours away.
    pub traffic: Option<Arc<TrafficPlan>>,
    /// The files of Terway; `None` removes them.
    pub terway: Option<Arc<TerwayFiles>>,
    /// Settings that are not used.
    pub refused: Vec<Refused>,
    /// Pods whose sandbox is not known.
    pub unknown_sandboxes: Vec<SandboxError>,
}

impl Reconciler {
    /// What hooks want of these pods. `cookie` gives the core-scheduling cookie of a process; `None` of one that has ended.
    pub fn reconcile(
        &mut self,
        pods: &[Arc<Pod>],
        rules: &Arc<Rules>,
        kernel: &dyn Kernel,
        cookie: &dyn Fn(u32) -> Option<u64>,
    ) -> Outcome {
        let is_new_rules = !self.rules.as_ref().is_some_and(|known| Arc::ptr_eq(known, rules));
        self.rules = Some(Arc::clone(rules));
        let mut outcome = Outcome { refused: rules.refused.clone(), ..Outcome::default() };
        let is_new_pods = self.reconcile_pods(pods, rules, kernel, is_new_rules);
        if is_new_rules || is_new_pods.lists {
            self.reconcile_network(pods, rules, kernel);
        }
        let listed = pods.iter().map(|pod| &pod.cgroup).collect();
        let of_node = node_constraints(rules, &listed, kernel, &mut outcome.refused);
        if is_new_rules || is_new_pods.constraints || is_new_pods.lists || of_node != self.of_node {
            self.of_node = of_node;
            self.collect(pods);
        }
        for found in pods.iter().filter_map(|pod| self.pods.get(&pod.uid)).map(|kept| &kept.found) {
            outcome.refused.extend(found.refused.iter().cloned());
            outcome.unknown_sandboxes.extend(found.sandbox_error.clone());
        }
        outcome.refused.extend(self.network_refused.iter().cloned());
        outcome.constraints = Arc::clone(&self.constraints);
        outcome.traffic.clone_from(&self.traffic);
        outcome.terway.clone_from(&self.terway);
        outcome.switches = rules.group_identity.as_ref().map(|rule| rule.switches.clone()).unwrap_or_default();
        let active: Vec<&Arc<Pod>> = pods.iter().filter(|pod| pod.is_active()).collect();
        self.processes(&active, rules, kernel, &mut outcome);
        self.core_sched(&active, rules, kernel, cookie, &mut outcome);
        outcome
    }

    /// How many pods something is kept of.
    pub fn pods(&self) -> usize {
        self.pods.len()
    }

    fn reconcile_pods(&mut self, pods: &[Arc<Pod>], rules: &Rules, kernel: &dyn Kernel, is_new_rules: bool) -> Changes {
        let mut changes = Changes::default();
        let mut before = std::mem::take(&mut self.pods);
        for pod in pods {
            let kept = before.remove(&pod.uid);
            let is_same = kept.as_ref().is_some_and(|kept| Arc::ptr_eq(&kept.pod, pod));
            changes.lists |= !is_same;
            let kept = match kept {
                Some(kept) if is_same && !is_new_rules && kept.found.is_settled => kept,
                kept => {
                    let last_good = kept.as_ref().and_then(|kept| kept.good.clone());
                    let found = pod_constraints(pod, last_good.as_deref(), rules, kernel);
                    changes.constraints |= kept.is_none_or(|kept| kept.found.constraints != found.constraints);
                    let is_good = found.refused.is_empty() && is_readable(pod);
                    let good = if is_good { Some(Arc::clone(pod)) } else { last_good };
                    KeptPod { pod: Arc::clone(pod), good, found }
                }
            };
            self.pods.insert(Arc::clone(&pod.uid), kept);
        }
        changes.lists |= !before.is_empty();
        changes
    }

    fn reconcile_network(&mut self, pods: &[Arc<Pod>], rules: &Rules, kernel: &dyn Kernel) {
        self.network_refused.clear();
        self.net_classes.clear();
        if rules.traffic.is_none() && rules.terway.is_none() {
            (self.traffic, self.terway) = (None, None);
            return;
        }
        let active: Vec<(&Pod, PodView<'_>)> = pods
            .iter()
            .filter(|pod| pod.is_active())
            .map(|pod| {
                let good = self.pods.get(&pod.uid).and_then(|kept| kept.good.as_deref());
                (&**pod, PodView::of_pod(pod, good))
            })
            .collect();
        let refused = &mut self.network_refused;
        self.terway = rules.terway.as_ref().map(|rule| Arc::new(rule.files(&active, refused)));
        self.traffic = rules.traffic.as_ref().map(|rule| {
            let (plan, classes) = rule.plan(&active, &mut self.minors, refused);
            let mut constraints = Constraints::default();
            for (pod, _) in &active {
                if kernel.supports(&pod.cgroup, Resource::NetClassId) {
                    let values = Values { net_class: classes.get(&pod.uid).cloned(), ..Values::default() };
                    values.constrain(&pod.cgroup, &mut constraints);
                }
            }
            self.net_classes = constraints.0;
            Arc::new(plan)
        });
    }

    fn collect(&mut self, pods: &[Arc<Pod>]) {
        let mut all = self.of_node.0.clone();
        for kept in pods.iter().filter_map(|pod| self.pods.get(&pod.uid)) {
            all.extend(kept.found.constraints.iter().cloned());
        }
        all.extend(self.net_classes.iter().cloned());
        if all != self.constraints.0 {
            self.constraints = Arc::new(Constraints(all));
        }
    }

    /// OOM scores and resctrl groups, whose processes come and go while the pod stays the same.
    fn processes(&self, pods: &[&Arc<Pod>], rules: &Rules, kernel: &dyn Kernel, outcome: &mut Outcome) {
        let adjusts_scores = rules.options.hooks.contains(Hook::OomScoreAdj);
        for pod in pods {
            let has = |key: &str| pod.annotations.contains_key(key);
            let kept = self.pods.get(&pod.uid);
            let view = PodView::of_pod(pod, kept.and_then(|kept| kept.good.as_deref()));
            if adjusts_scores && (has(OOM_SCORE_ADJ.name()) || has(OOM_SCORE_ADJ_SPEC.name())) {
                for container in &pod.containers {
                    let Some(cgroup) = &container.cgroup else { continue };
                    let Some((score, reason)) = score(&view, &container.name, &mut outcome.refused) else { continue };
                    let processes = ids(kernel, cgroup, Resource::Processes);
                    if !processes.is_empty() {
                        outcome.oom_scores.push(OomScore {
                            pod_namespace: Arc::clone(&pod.namespace),
                            pod_name: Arc::clone(&pod.name),
                            pod_uid: Arc::clone(&pod.uid),
                            container: Arc::clone(&container.name),
                            processes,
                            score,
                            reason,
                        });
                    }
                }
            }
            let Some(machine) = rules.resctrl.as_ref().filter(|_| has(RESCTRL.name())) else { continue };
            let Some(group) = group_name(&pod.uid) else { continue };
            let Some((schemata, _)) = machine.schemata(&view, &mut outcome.refused) else { continue };
            let cgroups = cgroups(pod, kept);
            let mut tasks: Vec<u32> = if rules.options.moves_tasks {
                cgroups.flat_map(|cgroup| ids(kernel, cgroup, Resource::Threads)).collect()
            } else {
                Vec::new()
            };
            tasks.sort_unstable();
            tasks.dedup();
            outcome.needed_groups.insert(group.clone());
            outcome.groups.push(ResctrlGroup::new(group, schemata, tasks));
        }
    }

    fn core_sched(
        &mut self,
        pods: &[&Arc<Pod>],
        rules: &Rules,
        kernel: &dyn Kernel,
        cookie: &dyn Fn(u32) -> Option<u64>,
        outcome: &mut Outcome,
    ) {
        let Some(rule) = &rules.core_sched else { return };
        if !rule.is_active && self.cookies.is_empty() {
            return;
        }
        if rule.is_active {
            // Pods and containers are below the folders of classes, host applications elsewhere.
            let constrained = outcome.constraints.0.iter().filter_map(|constraint| constraint.target.cgroup()).cloned();
            let identity = |cgroup: &CgroupPath| kernel.value(cgroup, Resource::GroupIdentity).ok();
            let left =
                rule.has_group_identity().then(|| kernel.subtree(&rules.layout.kubepods(), 3)).and_then(|pods| {
                    let cgroups: BTreeSet<CgroupPath> = constrained.chain(pods).collect();
                    cgroups.into_iter().find(|cgroup| identity(cgroup).is_some_and(|value| value != Value::Amount(0)))
                });
            if let Some(cgroup) = left {
                // A kernel with both locks up.
                outcome.core_sched_waits = Some(format!("cpu.bvt_warp_ns of {cgroup} is not 0 yet"));
                return;
            }
            let switches = rule.switches();
            if !switches.is_empty() {
                outcome.switches.extend(switches);
                return;
            }
        }
        let mut oldest_first = pods.to_vec();
        oldest_first.sort_by(|one, other| (one.created, &one.uid).cmp(&(other.created, &other.uid)));
        let mut members = Vec::new();
        for pod in oldest_first {
            let kept = self.pods.get(&pod.uid);
            let view = PodView::of_pod(pod, None);
            let group = rule.group(&view);
            for cgroup in cgroups(pod, kept) {
                let processes = ids(kernel, cgroup, Resource::Processes);
                let group = group.clone();
                members.push(Member {
                    pod_uid: Arc::clone(&pod.uid),
                    cgroup: cgroup.as_str().into(),
                    group,
                    processes,
                });
            }
        }
        outcome.cookies = self.cookies.plan(&members, cookie);
    }
}

/// What is not the same as in the round before.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// Pods came, went or changed.
    lists: bool,
    /// The constraints of a pod that is the same.
    constraints: bool,
}

/// Whether the annotations that are read for effects can be.
fn is_readable(pod: &Pod) -> bool {
    OOM_SCORE_ADJ.get(&pod.annotations).is_ok()
        && OOM_SCORE_ADJ_SPEC.get(&pod.annotations).is_ok()
        && RESCTRL.get(&pod.annotations).is_ok()
        && NETWORK_QOS.get(&pod.annotations).is_ok()
}

/// The cgroups of a pod's containers and of its sandbox.
fn cgroups<'a>(pod: &'a Pod, kept: Option<&'a KeptPod>) -> impl Iterator<Item = &'a CgroupPath> {
    let containers = pod.containers.iter().filter_map(|container| container.cgroup.as_ref());
    containers.chain(kept.and_then(|kept| kept.found.sandbox.as_ref()))
}

/// The ids in a file of a cgroup; none of one that is gone.
fn ids(kernel: &dyn Kernel, cgroup: &CgroupPath, resource: Resource) -> Vec<u32> {
    let text = kernel.text(cgroup, resource).unwrap_or_default();
    parse_ids(resource.name(), text.as_bytes()).filter_map(Result::ok).filter(|id| *id != 0).collect()
}
