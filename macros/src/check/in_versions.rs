//! Checks of `in_versions(…)`: its keywords together with those that the same versions have beside them.

use super::{
    check_object_rules,
    rules::{check_changes, check_each, check_schemars, contradictions},
};
use crate::{
    change::{Change, ChangeKind, rank},
    marker::{Marker, Markers},
    model::Field,
    report::Report,
    shape::Shape,
};

/// Checks what stands on a field of this shape.
pub(super) fn check_field(field: &Field<'_>, shape: &Shape<'_>, report: &Report) {
    let markers = &field.markers;
    check_effect(field, report);
    if markers.is_of_schemars() {
        for limited in &markers.in_versions {
            check_schemars(&limited.rules, report);
        }
    } else {
        check(markers, Some(shape), report);
    }
}

/// Checks what stands on something of this shape, or on an object with fields of its own.
pub(super) fn check(markers: &Markers, shape: Option<&Shape<'_>>, report: &Report) {
    for limited in &markers.in_versions {
        check_changes(&limited.rules, !markers.list_map_keys().is_empty(), report);
        match shape {
            Some(shape) => check_each(&limited.rules, shape, report),
            None => check_object_rules(&limited.rules, report),
        }
    }
    if let Some(shape) = shape {
        check_together(markers, shape, report);
    }
}

/// Notes contradictions that some version has, each once; those of all versions are noted elsewhere.
fn check_together(markers: &Markers, shape: &Shape<'_>, report: &Report) {
    let plain: Vec<&Marker> = markers.schema.iter().collect();
    let mut noted: Vec<String> = contradictions(&plain, shape).into_iter().map(|(_, message)| message).collect();
    for limited in &markers.in_versions {
        for (span, message) in contradictions(&markers.of_each(&limited.versions), shape) {
            if !noted.contains(&message) {
                report.at(span, message.as_str());
                noted.push(message);
            }
        }
    }
}

/// Notes keywords of versions in which the field is not there, or has a type with rules of its own.
fn check_effect(field: &Field<'_>, report: &Report) {
    for limited in &field.markers.in_versions {
        let Some(until) = &limited.versions.until else { continue };
        let is_later = |change: &&Change| rank(until) <= rank(&change.since);
        let cause = field.markers.changes.iter().filter(is_later).find_map(|Change { since, kind }| match kind {
            ChangeKind::Added => Some(format!("`{}` came with {since}", field.name)),
            ChangeKind::Changed { .. } => {
                Some(format!("before {since} `{}` has another type, on which its rules stand", field.name))
            }
            ChangeKind::Renamed { .. } | ChangeKind::Moved => None,
        });
        if let Some(cause) = cause {
            report.at(limited.span, format!("no version before {until} has these keywords: {cause}"));
        }
    }
}
