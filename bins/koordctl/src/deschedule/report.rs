//! A plan as an HTML page: the nodes before and after, and the moves between them.

use std::{collections::BTreeMap, fmt::Write as _};

use koord_descheduler_framework::{Cluster, Eviction, Means, Step};
use koord_scheduling::{ResourceId, ResourceVector};

use super::pass::{Planned, destination, errors};
use crate::html::{LOOKS, escaped, figure, page as html_page, section, table};

/// More nodes are not shown one by one.
const NODES_MAX: usize = 200;
/// The height of a node's bars and the length of a full one, in units of the picture.
const ROW: f64 = 34.0;
const FULL: f64 = 420.0;
const LEFT: f64 = 190.0;

/// A node, with what its pods request before and after.
struct Changed {
    name: String,
    allocatable: ResourceVector,
    before: ResourceVector,
    after: ResourceVector,
    leave: usize,
    come: usize,
}

pub(super) fn page(planned: &Planned) -> String {
    let Planned { plan, now, .. } = planned;
    let evictions: Vec<&Eviction> = plan.steps.iter().filter_map(Step::eviction).collect();
    let title = format!("Descheduling plan: {} evictions", evictions.len());
    let mut about = format!("A pass at {}.", now.strftime("%Y-%m-%d %H:%M:%S UTC"));
    if let Some(skipped) = &plan.skipped {
        let _ = write!(about, " Nothing is descheduled: {}.", escaped(&skipped.to_string()));
    }
    for error in errors(planned) {
        let _ = write!(about, " {}.", escaped(&error));
    }
    let sections = [nodes(planned, &evictions), moves(plan.steps.as_slice()), spared(&plan.spared)];
    html_page(&title, &about, &sections.concat())
}

/// The nodes that pods leave or come to, by name.
fn changed(cluster: &Cluster, evictions: &[&Eviction]) -> Vec<Changed> {
    let mut changed = BTreeMap::<String, Changed>::new();
    let mut change = |name: &str, requests: &ResourceVector, leaves: bool| {
        let Some(id) = cluster.node_id(name) else { return };
        let node = changed.entry(name.to_owned()).or_insert_with(|| Changed {
            name: name.to_owned(),
            allocatable: cluster.allocatable(id).clone(),
            before: cluster.requested(id).clone(),
            after: cluster.requested(id).clone(),
            leave: 0,
            come: 0,
        });
        if leaves {
            node.after.subtract(requests);
            node.leave += 1;
        } else {
            node.after.add(requests);
            node.come += 1;
        }
    };
    for eviction in evictions.iter().filter(|eviction| eviction.means != Means::DryRun) {
        let Some(pod) = cluster.pod_id(eviction.pod.key.as_str()) else { continue };
        let requests = cluster.requests(pod);
        if let Some(from) = &eviction.pod.node {
            change(from, requests, true);
        }
        if let Some(to) = eviction.outlook.successor.as_ref().and_then(|successor| successor.node()) {
            change(to, requests, false);
        }
    }
    changed.into_values().collect()
}

fn nodes(Planned { cluster, .. }: &Planned, evictions: &[&Eviction]) -> String {
    let changed = changed(cluster, evictions);
    let words = "What the pods of each node request of what it offers: the upper bar before the plan, the lower bar after it. \
                 The usage that koordlet measures is not shown.";
    if changed.is_empty() {
        return section("Nodes before and after", "No node changes.", "");
    }
    let charts: String = [("cpu", ResourceId::CPU), ("memory", ResourceId::MEMORY)]
        .iter()
        .map(|(name, id)| bars(name, *id, &changed))
        .collect();
    section("Nodes before and after", words, &charts)
}

fn share(vector: &ResourceVector, of: &ResourceVector, id: ResourceId) -> f64 {
    let all = of.get(id);
    if all <= 0 { 0.0 } else { vector.get(id) as f64 / all as f64 }
}

fn bars(resource: &str, id: ResourceId, nodes: &[Changed]) -> String {
    let shown = &nodes[..nodes.len().min(NODES_MAX)];
    let mut content = String::new();
    let mut rows = vec![["Node", "Before", "After", "Pods leave", "Pods come"].map(str::to_owned).to_vec()];
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    for (index, node) in shown.iter().enumerate() {
        let y = index as f64 * ROW;
        let [before, after] = [&node.before, &node.after].map(|vector| share(vector, &node.allocatable, id));
        let mut bar = |at: f64, share: f64, look: usize| {
            let (look, width) = (look % LOOKS, share.clamp(0.0, 1.2) * FULL);
            let _ = writeln!(
                content,
                "<rect class=\"c{look}\" x=\"{LEFT}\" y=\"{at}\" width=\"{width:.1}\" height=\"11\"/>"
            );
            let x = LEFT + width + 6.0;
            let _ = writeln!(content, "<text x=\"{x:.1}\" y=\"{}\">{}</text>", at + 10.0, percent(share));
        };
        bar(y + 3.0, before, 0);
        bar(y + 16.0, after, 1);
        let _ = writeln!(
            content,
            "<text class=\"end\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT - 8.0,
            y + 19.0,
            escaped(&node.name)
        );
        rows.push(vec![
            node.name.clone(),
            percent(before),
            percent(after),
            node.leave.to_string(),
            node.come.to_string(),
        ]);
    }
    let title = format!("{resource} requested");
    let mut description =
        format!("{resource} that is requested of {} nodes, before and after; the numbers follow.", shown.len());
    if shown.len() < nodes.len() {
        let _ = write!(description, " {} more nodes change.", nodes.len() - shown.len());
    }
    let size = (LEFT + FULL * 1.2 + 60.0, shown.len() as f64 * ROW + 4.0);
    figure(&title, &description, size, &content, &["before", "after"], &table(&title, &rows))
}

fn moves(steps: &[Step]) -> String {
    let head = ["Step", "Pod", "From", "To", "Strategy", "Why", "Not worth it because"].map(str::to_owned).to_vec();
    let row = |(index, step): (usize, &Step)| {
        let eviction = step.eviction()?;
        let objection = eviction.outlook.objection.as_ref().map(ToString::to_string).unwrap_or_default();
        Some(vec![
            (index + 1).to_string(),
            eviction.pod.key.to_string(),
            eviction.pod.node.as_deref().unwrap_or("-").to_owned(),
            destination(eviction.outlook.successor.as_ref()),
            eviction.plugin.to_owned(),
            eviction.reason.text.clone(),
            objection,
        ])
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(steps.iter().enumerate().filter_map(row)).collect();
    let words = "Each eviction was followed through the scheduler, after those before it. A pod that would be pending has no node that takes it.";
    section("Evictions", words, &table("In the order in which they are carried out", &rows))
}

fn spared(spared: &[Eviction]) -> String {
    if spared.is_empty() {
        return String::new();
    }
    let head =
        ["Pod", "Node", "Strategy", "Why it would be evicted", "Not worth it because"].map(str::to_owned).to_vec();
    let row = |eviction: &Eviction| {
        vec![
            eviction.pod.key.to_string(),
            eviction.pod.node.as_deref().unwrap_or("-").to_owned(),
            eviction.plugin.to_owned(),
            eviction.reason.text.clone(),
            eviction.outlook.objection.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(spared.iter().map(row)).collect();
    section("Pods that stay", "", &table("Evictions that are not worth it", &rows))
}
