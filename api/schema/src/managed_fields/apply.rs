//! Server-side apply: a configuration is merged in, fields that it no longer names go, and fields of others conflict.

use serde_json::Value;

use super::{
    NEVER_OWNED, UPDATE_MANAGERS_MAX, Writer,
    entries::{self, Entries, Identity, Ownership},
    record,
};
use crate::{
    fieldset::{FieldSet, TypeMismatch, check, compare, fields_of, merge, path_text, remove, same, with_named_fields},
    go_text,
    typed::TypeNode,
};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The configuration carries managedFields (HTTP 400).
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The configuration is not of the kind's type (HTTP 500, as the API server answers).
    #[error("{}", mismatch_text(.0))]
    Mismatch(Vec<TypeMismatch>),
    /// Others own fields to which the configuration gives other values (HTTP 409).
    #[error("{}", conflict_text(.0))]
    Conflicts(Vec<Conflict>),
}

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager as messages name it: `"kubectl" using v1`.
    pub manager: String,
    /// The field, such as `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// The message of the Status cause (its reason is `FieldManagerConflict`).
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// Applies a configuration for the writer's manager and gives the new object, its managedFields included.
///
/// `live` is the stored object, or an empty one when the configuration creates it; `ignored` as in [`super::update`].
/// With `force`, fields of others are taken over.
pub fn apply<N: TypeNode>(
    live: &Value,
    applied: &Value,
    writer: &Writer<'_>,
    node: &N,
    ignored: &FieldSet,
    force: bool,
) -> Result<Value, ApplyError> {
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::ManagedFields);
    }
    let mut entries = entries::of(live).unwrap_or_default();
    let mut live = live.clone();
    entries::take(&mut live);
    if entries.is_empty() {
        let before = Writer { manager: "before-first-apply", ..*writer };
        record(&mut entries, &node.zero(), &live, &before, node, ignored);
    }
    let mismatches = check(applied, node);
    if !mismatches.is_empty() {
        return Err(ApplyError::Mismatch(mismatches));
    }

    let identity = Identity::of_apply(writer);
    let last = entries.remove(&identity);
    let set = fields_of(applied, node).difference_below(ignored);
    let mut owners: Vec<FieldSet> = entries.iter().map(|(_, ownership)| ownership.set.clone()).collect();
    owners.push(set.clone());
    let mut merged = merge(&live, applied, node);
    if let Some(last) = &last {
        merged = prune(&merged, &last.set, &owners, node);
    }

    let difference = compare(&live, &merged, node).without(ignored);
    let changed = difference.changed();
    let conflicts = conflicts(&entries, &changed);
    if !conflicts.is_empty() && !force && !was_applied_by_client(&live, &conflicts, writer, node) {
        return Err(ApplyError::Conflicts(conflicts.into_iter().map(|(_, conflict)| conflict).collect()));
    }
    entries.take_from_all(&changed.union(&difference.removed));

    let is_change = !same(&live, &merged);
    let time = if is_change { Some(writer.time.to_owned()) } else { last.and_then(|last| last.time) };
    let api_version = writer.api_version.to_owned();
    entries.insert(identity, Ownership { set: set.difference(&NEVER_OWNED), api_version, time });
    entries.cap_updaters(UPDATE_MANAGERS_MAX);
    entries.write_to(&mut merged);
    Ok(merged)
}

/// Removes what the manager applied last time and neither it nor anybody else names now.
fn prune<N: TypeNode>(merged: &Value, last: &FieldSet, owners: &[FieldSet], node: &N) -> Value {
    if last.is_empty() {
        return merged.clone();
    }
    let named = |set: &FieldSet| with_named_fields(set, node);
    let last = named(last);
    let owned = named(&owners.iter().fold(FieldSet::new(), FieldSet::union));
    let all = named(&fields_of(merged, node));
    let without_last = remove(merged, &last, node);
    let left = named(&fields_of(&without_last, node));
    // What others own, or the configuration still names, comes back.
    let pruned = remove(merged, &all.difference(&left.union(&owned)), node);
    // What was never applied by this manager, but hung below what was, comes back as well.
    let left = named(&fields_of(&pruned, node));
    remove(merged, &all.difference(&left).intersection(&last), node)
}

fn conflicts(entries: &Entries, changed: &FieldSet) -> Vec<(FieldSet, Conflict)> {
    let mut found = Vec::new();
    for (identity, ownership) in entries.iter() {
        for path in ownership.set.intersection(changed).paths() {
            let mut set = FieldSet::new();
            set.insert(&path);
            found.push((set, Conflict { manager: shown(identity), field: path_text(&path) }));
        }
    }
    found
}

/// kubectl moves from client-side to server-side apply without conflicts about what it applied itself.
fn was_applied_by_client<N: TypeNode>(
    live: &Value,
    conflicts: &[(FieldSet, Conflict)],
    writer: &Writer<'_>,
    node: &N,
) -> bool {
    let annotations = live.pointer("/metadata/annotations");
    let Some(text) = annotations.and_then(|annotations| annotations.get(LAST_APPLIED)).and_then(Value::as_str) else {
        return false;
    };
    let Ok(last_applied) = serde_json::from_str::<Value>(text) else { return false };
    let known = fields_of(&last_applied, node);
    writer.manager == "kubectl" && conflicts.iter().all(|(set, _)| set.difference(&known).is_empty())
}

fn shown(identity: &Identity) -> String {
    let mut text = go_text::quote(&identity.manager);
    if !identity.subresource.is_empty() {
        text = format!("{text} with subresource {}", go_text::quote(&identity.subresource));
    }
    if identity.applies { text } else { format!("{text} using {}", identity.api_version) }
}

fn conflict_text(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: {}: {}", only.message(), only.field);
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut last_manager = None;
    let mut lines = Vec::new();
    // The conflicts of one manager follow each other.
    for conflict in conflicts {
        if last_manager != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last_manager = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.field));
    }
    text.push_str(&lines.join("\n"));
    text
}

fn mismatch_text(mismatches: &[TypeMismatch]) -> String {
    match mismatches {
        [only] => only.to_string(),
        several => {
            let lines: Vec<String> = several.iter().map(|mismatch| format!("  {mismatch}")).collect();
            format!("errors:\n{}", lines.join("\n"))
        }
    }
}
