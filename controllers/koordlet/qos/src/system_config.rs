//! System parameters of the node. Those that are not set are left alone.

use std::{collections::BTreeSet, ops::RangeInclusive, path::PathBuf};

use koord_koordlet_framework::{Bound, Constraint, Constraints, Node, NodeSlo, Precedence, Reason, Target};
use koord_koordlet_system::{Roots, Value};

use crate::{
    feature::Feature,
    input::{Generations, Input},
    outcome::{Note, Outcome, SystemWrite},
};

/// The strategy of feature `SystemConfig`.
#[derive(Debug, Default)]
pub struct SystemConfig {
    seen: Option<Generations>,
    /// Features of the scheduler that were written since the settings changed.
    written: BTreeSet<String>,
}

/// A system file with one number.
struct Parameter {
    setting: &'static str,
    path: PathBuf,
    value: i64,
    range: RangeInclusive<i64>,
    formula: String,
}

const SCHED_FEATURES: &str = "NodeSLO systemStrategy.schedFeatures";

impl SystemConfig {
    /// Names the parameters when NodeSLO or node have changed, and features of the scheduler whose state is another one.
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        if !input.features.is_on(Feature::SystemConfig) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        let Some(node) = input.node.filter(|node| node.capacity_bytes() > 0) else {
            return Outcome::skipped("the memory capacity of the node is not known");
        };
        let relevant =
            Generations { node: input.generations.node, slo: input.generations.slo, ..Generations::default() };
        let is_new = self.seen != Some(relevant);
        let (mut constraints, mut notes) = (None, None);
        if is_new {
            self.seen = Some(relevant);
            self.written.clear();
            let (named, missing) = named(input, node, slo);
            constraints = Some(named);
            notes = Some(missing);
        }
        let writes = self.sched_features(input, slo, is_new, &mut notes);
        Outcome { constraints, writes, notes, ..Outcome::default() }
    }

    /// Features whose state is another one are written; those that the kernel does not list are tried once.
    fn sched_features(
        &mut self,
        input: &Input<'_>,
        slo: &NodeSlo,
        is_new: bool,
        notes: &mut Option<Vec<Note>>,
    ) -> Vec<SystemWrite> {
        if slo.system.sched_features.is_empty() {
            return Vec::new();
        }
        let path = input.roots.sys.join("kernel/debug/sched_features");
        let Ok(text) = input.files.read(&path) else {
            if let (true, Some(notes)) = (is_new, notes) {
                notes.push(Note::degraded(format!("{} cannot be read", path.display()), "mount debugfs"));
            }
            return Vec::new();
        };
        let text = String::from_utf8_lossy(&text);
        let state = |feature: &str| {
            text.split_whitespace().find_map(|token| match token.strip_prefix("NO_") {
                Some(name) if name == feature => Some(false),
                None if token == feature => Some(true),
                _ => None,
            })
        };
        let mut writes = Vec::new();
        for (feature, is_on) in &slo.system.sched_features {
            let needs_write = match state(feature) {
                Some(now) => now != *is_on,
                None => !self.written.contains(feature),
            };
            if needs_write {
                self.written.insert(feature.clone());
                let text = if *is_on { feature.clone() } else { format!("NO_{feature}") };
                let reason = Reason::new(SCHED_FEATURES, format!("{feature} is {}", if *is_on { "on" } else { "off" }));
                writes.push(SystemWrite { path: path.clone(), text, reason });
            }
        }
        writes
    }
}

/// The parameters that are set, in range, and there.
fn named(input: &Input<'_>, node: &Node, slo: &NodeSlo) -> (Constraints, Vec<Note>) {
    let (mut constraints, mut notes) = (Constraints::default(), Vec::new());
    for Parameter { setting, path, value, range, formula } in parameters(input.roots, node, slo) {
        if !range.contains(&value) {
            let (min, max) = range.into_inner();
            notes.push(Note::invalid(
                format!("{setting}: {value} is out of the range {min} to {max} of {}", path.display()),
                "correct the setting",
            ));
        } else if input.files.read(&path).is_err() {
            notes.push(Note::degraded(
                format!("{setting}: this kernel has no {}", path.display()),
                "leave the field unset",
            ));
        } else {
            constraints.0.push(Constraint {
                target: Target::System(path),
                bound: Bound::Exactly,
                value: Value::Amount(value),
                precedence: Precedence::Specified,
                reason: Reason::new(setting, formula),
            });
        }
    }
    (constraints, notes)
}

fn parameters(roots: &Roots, node: &Node, slo: &NodeSlo) -> Vec<Parameter> {
    let (proc, sys) = (&roots.proc, &roots.sys);
    let system = &slo.system;
    let kilobytes = node.capacity_bytes() / 1024;
    let parameter = |setting, path: PathBuf, value: Option<i64>, range, formula: String| {
        value.map(|value| Parameter { setting, path, value, range, formula })
    };
    let factor = system.min_free_kbytes_factor;
    let as_set = || "as configured".to_owned();
    [
        parameter(
            "NodeSLO systemStrategy.minFreeKbytesFactor",
            proc.join("sys/vm/min_free_kbytes"),
            factor.map(|factor| kilobytes.saturating_mul(factor) / 10_000),
            10 * 1024..=10 * 1024 * 1024,
            format!("{kilobytes} kB of the node × {} / 10000", factor.unwrap_or_default()),
        ),
        parameter(
            "NodeSLO systemStrategy.watermarkScaleFactor",
            proc.join("sys/vm/watermark_scale_factor"),
            system.watermark_scale_factor,
            10..=400,
            as_set(),
        ),
        parameter(
            "NodeSLO systemStrategy.memcgReapBackGround",
            sys.join("kernel/mm/memcg_reaper/reap_background"),
            system.memcg_reap_background,
            0..=1,
            as_set(),
        ),
        parameter(
            "NodeSLO systemStrategy.schedGroupIdentityEnabled",
            proc.join("sys/kernel/sched_group_identity_enabled"),
            system.sched_group_identity_enabled,
            0..=1,
            as_set(),
        ),
        parameter(
            "NodeSLO systemStrategy.schedIdleSaverWmark",
            proc.join("sys/kernel/sched_idle_saver_wmark"),
            system.sched_idle_saver_wmark,
            0..=i64::MAX,
            as_set(),
        ),
        parameter(
            "NodeSLO systemStrategy.pageCacheLimitEnabled",
            sys.join("kernel/mm/pagecache_limit/enabled"),
            system.page_cache_limit_enabled,
            0..=1,
            as_set(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
