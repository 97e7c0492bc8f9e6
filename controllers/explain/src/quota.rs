//! What a quota may have, what it has, and which changes of it would be refused.
//!
//! Amounts are read from the objects; what would be refused is asked of the webhook's own handlers.

mod bounds;
mod tree;
mod what_if;

use std::fmt::Write as _;

use anyhow::Result;
use koord_program::{
    output::{Answer, OutputFormat},
    screen::Screen,
    table, units,
};
use koord_resource::{ResourceList, admission::Denial};
use koord_types::quota::{ALLOCATED, CHILD_REQUEST, GUARANTEED, REQUEST, RUNTIME};
use serde_json::{Value, json};

use self::{bounds::Bounds, what_if::Step};
pub use self::{
    bounds::contradiction,
    tree::{Quota, Tree},
};
use crate::QuotaOptions;

/// What a quota may have, what it has, and what becomes of proposed changes.
pub async fn explain(options: &QuotaOptions<'_>, screen: Screen) -> Result<Answer> {
    let mut tree = Tree::gather(options).await?;
    let steps = what_if::play(&mut tree, options)?;
    let explained = match tree.named(options.name, options.namespace) {
        Ok(quota) => Some(Explained::of(&tree, quota)),
        // A quota that was only proposed, and refused, is explained by the refusal.
        Err(_) if !steps.is_empty() => None,
        Err(error) => return Err(error),
    };
    let admitted = steps.iter().all(|step| step.refusal.is_none());
    let text = match options.output {
        OutputFormat::Json | OutputFormat::Yaml => {
            let mut json = json!({"quota": explained.as_ref().map(Explained::to_json)});
            if !options.what_if.is_empty() {
                json["whatIf"] = steps.iter().map(Step::to_json).collect();
            }
            options.output.document(&json)?
        }
        OutputFormat::Table => {
            let mut text: String = steps.iter().map(|step| step.to_text(screen)).collect();
            if let Some(explained) = &explained {
                if !text.is_empty() {
                    text.push_str(if admitted { "\nThen:\n\n" } else { "\nWith what is admitted:\n\n" });
                }
                text.push_str(&explained.to_text(screen));
            }
            text
        }
    };
    Ok(if admitted { Answer::success(text) } else { Answer::failure(text) })
}

/// A quota with what surrounds it.
struct Explained<'t> {
    quota: &'t Quota,
    /// From the quota above to the top of the tree.
    above: Vec<&'t Quota>,
    /// The name that the highest of them gives as its parent, when no such quota is there.
    missing: Option<String>,
    below: Vec<&'t Quota>,
    brothers: Vec<&'t Quota>,
    pods: usize,
    /// What it may use now, computed here.
    runtime: Option<ResourceList>,
    bounds: Result<Bounds, Denial>,
}

/// The amounts of one resource.
const AMOUNTS: [&str; 8] = ["min", "max", "used", "requested", "allocated", "runtime", "guaranteed", "weight"];

impl<'t> Explained<'t> {
    fn of(tree: &'t Tree, quota: &'t Quota) -> Self {
        let (above, missing) = tree.above(quota);
        let brothers = match above.first() {
            Some(parent) => tree.below(parent).filter(|other| other.name() != quota.name()).collect(),
            None => Vec::new(),
        };
        Self {
            above,
            missing,
            below: tree.below(quota).collect(),
            brothers,
            pods: tree.pods_of(quota),
            runtime: tree.runtime(quota),
            bounds: Bounds::of(tree, quota),
            quota,
        }
    }

    /// The amounts in the order of [`AMOUNTS`].
    fn amounts(&self) -> [ResourceList; 8] {
        let typed = &self.quota.typed;
        let annotated = |key: &koord_types::protocol::Key<ResourceList>| {
            let annotations = typed.metadata.annotations.as_ref();
            annotations.and_then(|annotations| key.get(annotations).ok().flatten()).unwrap_or_default()
        };
        let requested = annotated(&REQUEST);
        let requested = if requested.is_empty() { annotated(&CHILD_REQUEST) } else { requested };
        [
            typed.spec.min.clone(),
            typed.spec.max.clone(),
            typed.status.used.clone(),
            requested,
            annotated(&ALLOCATED),
            annotated(&RUNTIME),
            annotated(&GUARANTEED),
            self.quota.place.weights().clone(),
        ]
    }

    /// What of the parent's promise no quota below it has taken; none for a quota below the root.
    fn left_above(&self) -> Option<ResourceList> {
        let parent = self.above.first()?;
        let mut taken = min_sum(&self.brothers);
        taken.add(&self.quota.typed.spec.min);
        Some(parent.typed.spec.min.minus(&taken))
    }

    fn to_json(&self) -> Value {
        let names = |quotas: &[&Quota]| -> Vec<String> { quotas.iter().map(|quota| quota.key()).collect() };
        let mut json = json!({
            "name": self.quota.name(),
            "namespace": self.quota.namespace(),
            "treeID": self.quota.place.tree_id,
            "isParent": self.quota.place.is_parent,
            "lends": self.quota.place.lends,
            "namespaces": self.quota.place.namespaces,
            "pods": self.pods,
            "above": names(&self.above),
            "below": names(&self.below),
            "brothers": names(&self.brothers),
            "minOfBelow": min_sum(&self.below),
        });
        for (name, amounts) in AMOUNTS.iter().zip(self.amounts()) {
            json[name] = json!(amounts);
        }
        if let Some(runtime) = &self.runtime {
            json["computedRuntime"] = json!(runtime);
        }
        if let Some(left) = self.left_above() {
            json["leftOfParentsMin"] = json!(left);
        }
        if let Some(missing) = &self.missing {
            json["missingParent"] = missing.as_str().into();
        }
        match &self.bounds {
            Ok(bounds) => json["changes"] = bounds.to_json(),
            Err(denial) => json["inconsistent"] = refusal_json(denial),
        }
        json
    }

    fn to_text(&self, screen: Screen) -> String {
        let quota = self.quota;
        let mut text = format!("ElasticQuota {}", quota.key());
        let tree = quota.place.tree_id.as_str();
        let _ = match tree {
            "" => writeln!(text, ", outside of all quota trees"),
            tree => writeln!(text, ", in tree {tree}"),
        };
        let chain: Vec<String> = self.above.iter().rev().map(|above| above.key()).collect();
        let top = self.missing.as_ref().map_or_else(|| "root".to_owned(), |missing| format!("{missing} (not there)"));
        let mut facts = vec![
            ("above", std::iter::once(top).chain(chain).collect::<Vec<_>>().join(" › ")),
            ("below", if quota.place.is_parent { list(&self.below) } else { "a leaf: pods, no quotas".to_owned() }),
            ("lends", if quota.place.lends { "what it does not use" } else { "nothing" }.to_owned()),
            ("pods", self.pods.to_string()),
        ];
        let namespaces = &quota.place.namespaces;
        if !namespaces.is_empty() {
            facts.push(("namespaces", namespaces.join(", ")));
        }
        let facts: Vec<Vec<String>> = facts.into_iter().map(|(name, fact)| vec![format!("  {name}"), fact]).collect();
        text.push_str(&table::lines(&facts, screen));
        text.push('\n');
        text.push_str(&table::lines(&self.rows(), screen));
        text.push('\n');
        match &self.bounds {
            Ok(bounds) => text.push_str(&bounds.to_text(screen)),
            Err(denial) => {
                text.push_str("As it is stored it breaks a rule; every change that does not fix it is refused:\n");
                text.push_str(&refusal_text(denial, screen));
            }
        }
        text
    }

    /// One row per resource.
    fn rows(&self) -> Vec<Vec<String>> {
        let mut columns: Vec<(&str, ResourceList)> = AMOUNTS.into_iter().zip(self.amounts()).collect();
        columns.retain(|(name, amounts)| !amounts.is_empty() || matches!(*name, "min" | "max" | "used"));
        if let Some(runtime) = &self.runtime {
            columns.push(("runtime (computed)", runtime.clone()));
        }
        if !self.below.is_empty() {
            columns.push(("min below", min_sum(&self.below)));
        }
        if let (Some(parent), Some(left)) = (self.above.first(), self.left_above()) {
            columns.push(("parent's min", parent.typed.spec.min.clone()));
            columns.push(("min of brothers", min_sum(&self.brothers)));
            columns.push(("left", left));
        }
        let mut resources: Vec<&str> = columns.iter().flat_map(|(_, amounts)| amounts.names()).collect();
        resources.sort_unstable();
        resources.dedup();
        let head = std::iter::once("resource".to_owned()).chain(columns.iter().map(|(name, _)| (*name).to_owned()));
        let mut rows = vec![head.collect()];
        for resource in resources {
            let amount = |amounts: &ResourceList| match amounts.get(resource) {
                Some(amount) => units::amount(resource, amount),
                None => "-".to_owned(),
            };
            let row = std::iter::once(resource.to_owned()).chain(columns.iter().map(|(_, amounts)| amount(amounts)));
            rows.push(row.collect());
        }
        rows
    }
}

fn min_sum(quotas: &[&Quota]) -> ResourceList {
    let mut sum = ResourceList::default();
    for quota in quotas {
        sum.add(&quota.typed.spec.min);
    }
    sum
}

fn list(quotas: &[&Quota]) -> String {
    const SHOWN_MAX: usize = 5;
    if quotas.is_empty() {
        return "no quota yet".to_owned();
    }
    let names: Vec<String> = quotas.iter().take(SHOWN_MAX).map(|quota| quota.name().to_owned()).collect();
    match quotas.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", names.join(", ")),
        None => names.join(", "),
    }
}

fn refusal_json(denial: &Denial) -> Value {
    let mut json = json!({"message": denial.message, "code": denial.code});
    if let Some(advice) = &denial.advice {
        json["field"] = advice.field.to_string().into();
        json["remedy"] = advice.remedy.into();
    }
    json
}

fn refusal_text(denial: &Denial, screen: Screen) -> String {
    let mut text = screen.wrapped(&denial.message, "    ", "    ") + "\n";
    if let Some(advice) = &denial.advice {
        let remedy = screen.wrapped(advice.remedy, "    remedy  ", "            ");
        let _ = writeln!(text, "    field   {}\n{remedy}", advice.field);
    }
    text
}
