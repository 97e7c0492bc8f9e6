//! Shares of the L3 cache and of memory bandwidth for the classes LSR, LS and BE. A class that is disabled has all of both.

use std::{borrow::Cow, collections::BTreeSet};

use koord_koordlet_framework::{NodeSlo, Pod, Reason};
use koord_koordlet_system::{CgroupPath, Resource, Runtime, parse_ids};
use koord_types::{node_slo::ResctrlQosCfg, pod_annotations::RESCTRL, qos::QosClass};

use crate::{
    feature::Feature,
    input::{Generations, Input, Resctrl},
    outcome::{Note, Outcome, ResctrlGroup},
};

/// The strategy of feature `RdtResctrl`.
#[derive(Debug, Default)]
pub struct ResctrlReconcile {
    seen: Option<(Generations, Option<Resctrl>)>,
}

/// The groups, in the order in which they are written, with their classes and settings.
const GROUPS: [(&str, QosClass, &str); 3] = [
    ("LSR", QosClass::Lsr, "NodeSLO resourceQOSStrategy.lsrClass.resctrlQOS"),
    ("LS", QosClass::Ls, "NodeSLO resourceQOSStrategy.lsClass.resctrlQOS"),
    ("BE", QosClass::Be, "NodeSLO resourceQOSStrategy.beClass.resctrlQOS"),
];

impl ResctrlReconcile {
    /// Names what the groups shall have when something has changed, and the tasks that they lack.
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        if !input.features.is_on(Feature::RdtResctrl) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        let seen = (input.generations, input.resctrl.copied());
        let is_new = self.seen != Some(seen);
        let Some(resctrl) = input.resctrl else {
            self.seen = Some(seen);
            let notes = is_new.then(|| if is_used(slo) { vec![unsupported()] } else { Vec::new() });
            return Outcome { groups: is_new.then(Vec::new), notes, ..Outcome::default() };
        };
        self.seen = Some(seen);
        let mut notes = Vec::new();
        let groups: Vec<ResctrlGroup> =
            GROUPS.into_iter().filter_map(|group| self::group(input, slo, resctrl, group, &mut notes)).collect();
        let has_tasks = groups.iter().any(|group| !group.tasks.is_empty());
        Outcome {
            groups: (is_new || has_tasks).then_some(groups),
            notes: is_new.then_some(notes),
            ..Outcome::default()
        }
    }
}

fn group(
    input: &Input<'_>,
    slo: &NodeSlo,
    resctrl: &Resctrl,
    (name, class, setting): (&'static str, QosClass, &'static str),
    notes: &mut Vec<Note>,
) -> Option<ResctrlGroup> {
    let config = slo.class(&class)?.resctrl_qos.as_ref()?;
    let l3 = match (resctrl.cache, config.cat_range_start_percent, config.cat_range_end_percent) {
        (Some(cache), Some(start), Some(end)) => match cache.range(start, end) {
            Ok(bits) => Some(bits),
            Err(error) => {
                notes.push(Note::invalid(
                    format!("{name}: {error}"),
                    "correct catRangeStartPercent and catRangeEndPercent",
                ));
                None
            }
        },
        (None, ..) => {
            notes.push(Note::degraded(
                format!("{name}: the ways of the L3 cache are not known, or its mask has gaps"),
                "look at info/L3/cbm_mask below the mount point of resctrl",
            ));
            None
        }
        _ => None,
    };
    let bandwidth = config.mba_percent.and_then(|percent| {
        let bandwidth = resctrl.vendor.bandwidth(percent);
        if bandwidth.is_none() {
            notes.push(Note::invalid(
                format!("{name}: mbaPercent {percent} is not from 1 to 100"),
                "correct mbaPercent",
            ));
        }
        bandwidth
    });
    let tasks = if config.enable == Some(true) { tasks(input, name, &class) } else { Vec::new() };
    Some(ResctrlGroup {
        name: Cow::Borrowed(name),
        l3,
        bandwidth,
        tasks,
        reason: Reason::new(setting, formula(config)),
    })
}

fn formula(config: &ResctrlQosCfg) -> String {
    let number = |number: Option<i64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    format!(
        "cache ways from {} % to {} %, bandwidth {} %",
        number(config.cat_range_start_percent),
        number(config.cat_range_end_percent),
        number(config.mba_percent)
    )
}

/// Tasks of pods of a class that are not in its group yet. Pods with a group of their own are left out.
fn tasks(input: &Input<'_>, group: &str, class: &QosClass) -> Vec<u32> {
    let file = input.roots.sys_fs.join("resctrl").join(group).join("tasks");
    let text = input.files.read(&file).unwrap_or_default();
    let known: BTreeSet<u32> = parse_ids("tasks", &text).flatten().collect();
    let mut missing = BTreeSet::new();
    let is_of_class = |pod: &Pod| match pod.qos() {
        Some(QosClass::Lse | QosClass::Lsr) => *class == QosClass::Lsr,
        other => other.as_ref() == Some(class),
    };
    let pods = input.pods.iter().filter(|pod| pod.is_active() && !RESCTRL.is_present(&pod.annotations));
    for pod in pods.filter(|pod| is_of_class(pod)) {
        let containers = pod.regular_containers().filter_map(|container| container.cgroup.clone());
        for cgroup in containers.chain(sandbox(input, pod)) {
            // A cgroup that is gone has no tasks.
            let text = input.kernel.text(&cgroup, Resource::Threads).unwrap_or_default();
            missing.extend(parse_ids("tasks", text.as_bytes()).flatten().filter(|id| !known.contains(id)));
        }
    }
    missing.into_iter().collect()
}

/// The cgroup of a pod's sandbox: the only one that is none of its containers.
fn sandbox(input: &Input<'_>, pod: &Pod) -> Option<CgroupPath> {
    let is_crio = pod.containers.iter().find_map(|container| container.id.as_ref())?.runtime == Runtime::Crio;
    let is_container =
        |cgroup: &CgroupPath| pod.containers.iter().any(|container| container.cgroup.as_ref() == Some(cgroup));
    let is_other_of_crio =
        |name: &str| is_crio && name.strip_prefix("crio-").is_some_and(|rest| rest.strip_suffix(".scope").is_some());
    let mut others = (input.kernel.children(&pod.cgroup).into_iter())
        .filter(|cgroup| !is_container(cgroup) && !is_other_of_crio(cgroup.name()));
    let sandbox = others.next()?;
    others.next().is_none().then_some(sandbox)
}

/// Whether some class is enabled.
fn is_used(slo: &NodeSlo) -> bool {
    GROUPS.iter().any(|(_, class, _)| {
        let config = slo.class(class).and_then(|class| class.resctrl_qos.as_ref());
        config.is_some_and(|config| config.enable == Some(true))
    })
}

fn unsupported() -> Note {
    Note::degraded(
        "resctrlQOS is enabled, but this machine cannot share out caches and bandwidth",
        "use CPUs of Intel or AMD with cat_l3 and mba, mount resctrl, and restart koordlet",
    )
}

#[cfg(test)]
mod tests;
