//! What an agent wants of files, beside what the kernel shows.

use std::collections::BTreeMap;

use koord_koordlet_state::{Comparison, FileState, NodeFiles, NodePod, Reason};

use crate::{screen::Screen, table};

/// Why a file differs whose value the kernel does not refuse.
const CHANGED: &str = "it was changed since koordlet last looked at it";

/// Whether the kernel shows something else than is wanted.
pub(super) fn differs(files: &NodeFiles) -> bool {
    files.files.iter().any(|file| file.comparison.is_wrong())
}

/// The values of a pod, its containers and the cgroups above, with their reasons.
pub(super) fn explained(files: &NodeFiles, pod: &NodePod, screen: Screen) -> String {
    let qos = pod.qos.as_ref().map(|qos| format!(", class {qos}")).unwrap_or_default();
    let head = format!("{} on {}{qos}\n", pod.key(), files.node) + observes(files);
    let of_pod = section(files, "pod", &pod.cgroup, screen);
    let containers = pod.containers.iter().map(|container| match &container.cgroup {
        Some(cgroup) => section(files, &format!("container {}", container.name), cgroup, screen),
        None => format!("\ncontainer {}: the runtime has not made it yet\n", container.name),
    });
    let above = pod.cgroups_above().filter(|cgroup| files.of_cgroup(cgroup).next().is_some());
    let above = above.map(|cgroup| section(files, "above:", cgroup, screen));
    [head, of_pod].into_iter().chain(containers).chain(above).collect()
}

/// The files of a cgroup with their reasons.
fn section(files: &NodeFiles, title: &str, cgroup: &str, screen: Screen) -> String {
    let mut rows: Vec<Vec<String>> = files.of_cgroup(cgroup).flat_map(reasons).collect();
    let shown = shown_cgroup(cgroup);
    if rows.is_empty() {
        return format!("\n{title} {shown}: koordlet wants nothing of it\n");
    }
    rows.insert(0, ["FILE", "WANTED", "ACTUAL", "STRATEGY", "OBJECT", "WHY"].map(str::to_owned).to_vec());
    format!("\n{title} {shown}\n{}", table::lines(&rows, screen))
}

/// Rows of a file: the value with the strategy that decides it, then the constraints that do not.
fn reasons(file: &FileState) -> Vec<Vec<String>> {
    let (reason, wanted) = match (&file.decision, file.constraints.first()) {
        (Some(decision), _) => (Some(&decision.reason), decision.value.clone()),
        (None, Some(constraint)) => (Some(&constraint.reason), constraint.wanted.clone()),
        (None, None) => (None, String::new()),
    };
    let actual = match (file.comparison, &file.actual) {
        (Comparison::Agrees, Some(actual)) if *actual == wanted => "the same".to_owned(),
        _ => actual(file),
    };
    let mut rows = vec![row([&file.file, &wanted, &actual], reason, file.why.as_deref())];
    if let Some(bound) = file.decision.as_ref().and_then(|decision| decision.bounded_by.as_ref()) {
        rows.push(row(["", "bounded by", ""], Some(bound), None));
    }
    let others = file.constraints.iter().filter(|constraint| {
        let decision = file.decision.as_ref();
        let decides = |reason: &Reason| *reason == constraint.reason;
        decision
            .is_some_and(|decision| !decides(&decision.reason) && !decision.bounded_by.as_ref().is_some_and(decides))
    });
    rows.extend(others.map(|other| row(["", &format!("not {}", other.wanted), ""], Some(&other.reason), None)));
    rows
}

fn row([file, wanted, actual]: [&str; 3], reason: Option<&Reason>, why: Option<&str>) -> Vec<String> {
    let mut cells = [file, wanted, actual].map(str::to_owned).to_vec();
    let (strategy, object, mut words) = reason.map_or_else(Default::default, |reason| {
        let words = format!("{}: {}", setting(reason), reason.formula);
        (reason.strategy.clone(), reason.object.clone(), words)
    });
    if let Some(why) = why {
        words = format!("{words} ({why})");
    }
    cells.extend([strategy, object, words]);
    cells
}

/// The setting without the kind of its object, which is in a column of its own.
fn setting(reason: &Reason) -> &str {
    let kind = reason.object.split('/').next().unwrap_or_default();
    reason.setting.strip_prefix(kind).map_or(reason.setting.as_str(), str::trim_start)
}

/// The files that differ, and how many there are of each kind.
pub(super) fn audited(files: &NodeFiles, screen: Screen) -> String {
    let mut counts = BTreeMap::<Comparison, usize>::new();
    for file in &files.files {
        *counts.entry(file.comparison).or_default() += 1;
    }
    let counted: Vec<String> =
        counts.iter().map(|(comparison, count)| format!("{count} {}", counted(*comparison))).collect();
    let counted = if counted.is_empty() { "koordlet wants nothing of any file".to_owned() } else { counted.join(", ") };
    let head = format!("{}: {counted}\n", files.node) + observes(files);
    let wrong: Vec<&FileState> = files.files.iter().filter(|file| file.comparison.is_wrong()).collect();
    if wrong.is_empty() {
        return head;
    }
    let unknown = if files.observe_only { "koordlet only observes" } else { CHANGED };
    let mut rows: Vec<Vec<String>> = wrong.into_iter().map(|file| difference(file, &files.pods, unknown)).collect();
    rows.insert(0, ["OF", "FILE", "WANTED", "ACTUAL", "STRATEGY", "WHY"].map(str::to_owned).to_vec());
    format!("{head}\n{}", table::lines(&rows, screen))
}

/// A file that differs; `unknown` where the agent does not say why.
fn difference(file: &FileState, pods: &[NodePod], unknown: &str) -> Vec<String> {
    let decision = file.decision.as_ref();
    vec![
        owner(file, pods),
        file.file.clone(),
        decision.map(|decision| decision.value.clone()).unwrap_or_default(),
        actual(file),
        decision.map(|decision| decision.reason.strategy.clone()).unwrap_or_default(),
        file.why.clone().unwrap_or_else(|| unknown.to_owned()),
    ]
}

const fn counted(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Agrees => "files agree",
        Comparison::Differs => "differ",
        Comparison::Unreadable => "cannot be read",
        Comparison::Unsupported => "that the kernel does not have",
        Comparison::Gone => "of cgroups that are not there",
    }
}

fn observes(files: &NodeFiles) -> &'static str {
    if files.observe_only { "koordlet only observes here: it writes none of this\n" } else { "" }
}

/// The pod and container of a file, or its cgroup.
fn owner(file: &FileState, pods: &[NodePod]) -> String {
    let Some(cgroup) = file.cgroup.as_deref() else { return String::new() };
    for pod in pods {
        if pod.cgroup == cgroup {
            return pod.key();
        }
        if let Some(container) = pod.containers.iter().find(|container| container.cgroup.as_deref() == Some(cgroup)) {
            return format!("{} {}", pod.key(), container.name);
        }
    }
    shown_cgroup(cgroup).to_owned()
}

fn actual(file: &FileState) -> String {
    file.actual.clone().unwrap_or_else(|| file.comparison.to_string())
}

const fn shown_cgroup(cgroup: &str) -> &str {
    if cgroup.is_empty() { "/" } else { cgroup }
}
