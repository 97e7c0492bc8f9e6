//! The only nodes that are filtered, by name.

use std::collections::{BTreeMap, BTreeSet};

use super::{Operands, Reason, ReasonCode, Refusal, Registration, Request, Verdict};
use crate::{PluginSet, cluster::Cluster, columns::Row};

impl Refusal {
    /// The node is not among those that plugins have named.
    const OUTSIDE: u16 = u16::MAX - 1;
    /// No node is named by all plugins that name some.
    const NONE_LEFT: u16 = u16::MAX - 2;
}

/// The nodes that some plugins leave over, before any filter runs: those that every plugin has named which names some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeSubset(BTreeMap<u8, BTreeSet<Box<str>>>);

impl NodeSubset {
    /// Only nodes of these names, and of those that others have named.
    pub(crate) fn limit(&mut self, plugin: u8, names: BTreeSet<Box<str>>) {
        self.0.insert(plugin, names);
    }

    /// Whether no plugin has named any.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether these are the nodes that a plugin has named.
    pub(crate) fn is_limited(&self, plugin: u8, names: Option<&BTreeSet<Box<str>>>) -> bool {
        self.0.get(&plugin) == names
    }

    /// Why no node is left over, by the plugins up to the one that leaves none, in this order; none where there
    /// may be one.
    pub(crate) fn none_left(&self, order: &[u8]) -> Option<Verdict> {
        let first = self.0.values().next()?;
        let is_left = |name: &str| self.0.values().all(|names| names.contains(name));
        if first.iter().any(|name| is_left(name)) {
            return None;
        }
        let mut named: Vec<(&u8, &BTreeSet<Box<str>>)> = self.0.iter().collect();
        named.sort_by_key(|(plugin, _)| order.iter().position(|known| known == *plugin).unwrap_or(order.len()));
        let (_, first) = named.first()?;
        let (mut left, mut limiting) = (BTreeSet::clone(first), PluginSet::default());
        for (plugin, names) in named {
            limiting = limiting.with(*plugin);
            left.retain(|name| names.contains(name));
            if left.is_empty() {
                let refusal = Refusal { reason: Refusal::NONE_LEFT, resolvable: false, operand: limiting.bits() };
                return Some(Verdict { plugin: *plugin, refusal });
            }
        }
        None
    }

    /// Why this node is not among them; none where it is.
    #[inline]
    pub(crate) fn leaves_out(&self, cluster: &Cluster, row: Row) -> Option<Verdict> {
        if self.0.is_empty() { None } else { self.leaves_out_of_named(cluster, row) }
    }

    fn leaves_out_of_named(&self, cluster: &Cluster, row: Row) -> Option<Verdict> {
        let name = cluster.node(row).map_or("", |node| &*node.name);
        let (plugin, _) = self.0.iter().find(|(_, names)| !names.contains(name))?;
        let plugins = self.0.keys().fold(PluginSet::default(), |plugins, plugin| plugins.with(*plugin));
        let refusal = Refusal { reason: Refusal::OUTSIDE, resolvable: false, operand: plugins.bits() };
        Some(Verdict { plugin: *plugin, refusal })
    }
}

impl Verdict {
    /// Whether the node was left out before any filter ran for it.
    pub(crate) fn is_outside(&self) -> bool {
        self.refusal.reason == Refusal::OUTSIDE
    }

    /// Who refused: one plugin, or all those that named nodes.
    pub fn plugins(&self) -> PluginSet {
        let is_of_names = matches!(self.refusal.reason, Refusal::OUTSIDE | Refusal::NONE_LEFT);
        if is_of_names { PluginSet::of_bits(self.refusal.operand) } else { PluginSet::of(self.plugin) }
    }

    /// The reasons, as events and conditions show them.
    pub fn reasons(&self, plugins: &[Registration], cluster: &Cluster) -> Vec<Reason> {
        let plugin = |index: u8| plugins.get(usize::from(index));
        let names = || {
            let mut names: Vec<&str> = self.plugins().iter().filter_map(plugin).map(Registration::name).collect();
            names.sort_unstable();
            names
        };
        let filter = || plugin(self.plugin)?.filter.as_ref();
        let code = || filter().map_or(ReasonCode::NodeNameMismatch, |filter| filter.unnamed_node_code());
        match self.refusal.reason {
            Refusal::OUTSIDE => {
                code().reason(format!("node(s) didn't satisfy plugin(s) [{}]", names().join(" "))).into()
            }
            Refusal::NONE_LEFT => {
                let text = match *names() {
                    [only] => format!("node(s) didn't satisfy plugin {only}"),
                    ref several => format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", several.join(" ")),
                };
                code().reason(text).into()
            }
            _ if self.refusal == Refusal::UNPLANNED => {
                let finds = plugin(self.plugin).and_then(|plugin| plugin.find_one_node.as_ref());
                finds.map(|finds| finds.reasons()).unwrap_or_default()
            }
            _ => filter().map(|filter| filter.reasons(&self.refusal, cluster)).unwrap_or_default(),
        }
    }

    /// What is known of the refusal of this node beside the reasons.
    pub fn details(&self, request: &Request<'_>, cluster: &Cluster, row: Row) -> Operands {
        if matches!(self.refusal.reason, Refusal::OUTSIDE | Refusal::NONE_LEFT) {
            return Operands::new();
        }
        let filter = request.plugins.get(usize::from(self.plugin)).and_then(|plugin| plugin.filter.as_ref());
        filter.map(|filter| filter.details(&self.refusal, request, cluster, row)).unwrap_or_default()
    }
}
