//! A strip of all nodes: the fuller, the darker.

use koord_scheduler_simulator::outcome::NodeState;

use super::{Run, percent};
use crate::html::{escaped, figure};

/// More cells are not told apart: nodes that follow each other share one.
const CELLS_MAX: usize = 1600;
const CELL: f64 = 14.0;
const COLUMNS: usize = 45;

pub(super) fn section(runs: &[Run]) -> String {
    let words = "Each cell is a node, by name from left to right and from top to bottom. Its shade is the largest share of its cpu, \
                 memory and GPUs that is requested: empty ones are light.";
    crate::html::section("Nodes at the end", words, &(scale() + &runs.iter().map(strip).collect::<String>()))
}

/// What the shades mean.
fn scale() -> String {
    let step = |step: u32| {
        let share = f64::from(step) / 4.0;
        let key = "<svg class=\"shade\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">";
        format!(
            "<li>{key}<rect class=\"cell\" width=\"12\" height=\"12\" fill-opacity=\"{:.2}\"/></svg>{} %</li>",
            shade(share),
            25 * step
        )
    };
    format!("<ul class=\"legend\">{}</ul>\n", (0..=4).map(step).collect::<String>())
}

/// How dark the cell of a share is.
fn shade(share: f64) -> f64 {
    0.06 + 0.94 * share.clamp(0.0, 1.0)
}

fn strip(run: &Run) -> String {
    let nodes = &run.outcome.nodes;
    let together = nodes.len().div_ceil(CELLS_MAX).max(1);
    let cells: Vec<&[NodeState]> = nodes.chunks(together).collect();
    let rows = cells.len().div_ceil(COLUMNS).max(1);
    let cell = |(at, nodes): (usize, &&[NodeState])| {
        let (x, y) = ((at % COLUMNS) as f64 * CELL, (at / COLUMNS) as f64 * CELL);
        let share = nodes.iter().map(fullness).sum::<f64>() / nodes.len().max(1) as f64;
        format!(
            "<rect class=\"cell\" x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill-opacity=\"{:.2}\"><title>{}</title></rect>\n",
            shade(share),
            escaped(&words(nodes, share)),
        )
    };
    let content: String = cells.iter().enumerate().map(cell).collect();
    let full = nodes.iter().filter(|node| fullness(node) > 0.9).count();
    let empty = nodes.iter().filter(|node| fullness(node) <= 0.0).count();
    let description = format!(
        "Of {} nodes {full} are used for more than nine tenths of a resource, and {empty} for nothing.",
        nodes.len()
    );
    let size = (COLUMNS as f64 * CELL, rows as f64 * CELL);
    let picture = figure(&run.config, &description, size, &content, &[], "");
    format!("{picture}<p>{description}</p>\n")
}

fn fullness(node: &NodeState) -> f64 {
    let shares = ["cpu", "memory", "gpus"].into_iter().filter_map(|name| node.requested.get(name));
    shares.copied().fold(0.0, f64::max)
}

fn words(nodes: &[NodeState], share: f64) -> String {
    match nodes {
        [node] => {
            let shares: Vec<String> =
                node.requested.iter().map(|(name, share)| format!("{name} {}", percent(*share))).collect();
            format!("{}: {} pods, {}", node.name, node.pods, shares.join(", "))
        }
        [first, .., last] => format!("{} to {}: {} on average", first.name, last.name, percent(share)),
        [] => String::new(),
    }
}
