//! Checks of `in_versions(…)`: its keywords together with those that the same versions have beside them.

use super::rules::contradictions;
use crate::{
    change::{Change, ChangeKind, Versions, rank},
    marker::{Keyword, Markers},
    model::Field,
    report::Report,
    shape::Shape,
    versions::in_order,
};

/// Notes contradictions between the rules of both profiles that some version has, each once.
pub(super) fn check_together(markers: &Markers, shape: &Shape<'_>, report: &Report) {
    let mut noted: Vec<String> = Vec::new();
    for versions in stretches(markers) {
        for (span, message) in contradictions(&markers.of_each(&versions), shape) {
            if !noted.contains(&message) {
                report.at(span, message.as_str());
                noted.push(message);
            }
        }
    }
}

/// The versions from each border of some `in_versions(…)` to the next one, oldest first.
///
/// Whether there are versions before the first border is known only from an `until` without `since`.
fn stretches(markers: &Markers) -> Vec<Versions> {
    let limits = || markers.in_versions.iter().map(|limited| &limited.versions);
    let borders = limits().flat_map(|versions| versions.since.iter().chain(&versions.until));
    let mut starts: Vec<Option<&str>> = in_order(borders.map(String::as_str)).into_iter().map(Some).collect();
    if starts.is_empty() || limits().any(|versions| versions.since.is_none()) {
        starts.insert(0, None);
    }
    let ends = starts.iter().skip(1).copied().chain([None]);
    let owned = |version: Option<&str>| version.map(str::to_owned);
    starts.iter().zip(ends).map(|(start, end)| Versions { since: owned(*start), until: owned(end) }).collect()
}

/// Whether some of these versions know the items of the list by keys.
pub(super) fn have_keys(markers: &Markers, versions: &Versions) -> bool {
    let limited = markers.in_versions.iter().filter(|other| other.versions.meet(versions));
    let mut rules = markers.schema.iter().chain(&markers.hardened).chain(limited.flat_map(|other| &other.rules));
    rules.any(|marker| matches!(marker.keyword, Keyword::ListMapKey(_)))
}

/// Notes keywords of versions in which the field is not there, or has a type with rules of its own.
pub(super) fn check_effect(field: &Field<'_>, report: &Report) {
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

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use super::*;
    use crate::{check::check_markers, entry, shape::peel, words::Place};

    /// The mistakes in these words on a field of a type.
    fn mistakes(words: &str, type_: &str) -> String {
        let report = Report::default();
        let markers = Markers::parse(&entry::entries(words.parse().unwrap()).unwrap(), Place::Field, &report);
        let type_: syn::Type = syn::parse_str(type_).unwrap();
        check_markers(&markers, Some(&peel(&type_).shape), &report);
        report.finish(TokenStream::new(), |_| TokenStream::new()).to_string()
    }

    #[test]
    fn what_each_version_has_may_stand_partly_outside() {
        for (words, type_) in [
            (
                r#"list_type = "map", in_versions(until = "v1", list_map_key = "id"), in_versions(since = "v1", list_map_key = "name")"#,
                "Vec<Port>",
            ),
            (
                r#"list_type = "map", in_versions(since = "v1beta1", until = "v1", list_map_key = "id"),
                    in_versions(since = "v1", list_map_key = "name")"#,
                "Vec<Port>",
            ),
            (
                r#"exclusive_maximum, in_versions(until = "v1", maximum = 9), in_versions(since = "v1", maximum = 5)"#,
                "i32",
            ),
            (
                r#"in_versions(until = "v1", list_type = "map", list_map_key = "name", items(immutable)),
                    in_versions(since = "v1", list_type = "atomic")"#,
                "Vec<Port>",
            ),
            (
                r#"in_versions(until = "v1", list_type = "map", list_map_key = "name"), in_versions(until = "v1beta1", items(immutable))"#,
                "Vec<Port>",
            ),
        ] {
            assert_eq!(mistakes(words, type_), "", "{words}");
        }
    }

    #[test]
    fn what_one_version_lacks_or_contradicts_is_said() {
        for (words, type_, expected) in [
            (r#"exclusive_maximum, in_versions(until = "v1", maximum = 9)"#, "i32", "`exclusive_maximum` needs"),
            (
                r#"list_type = "map", in_versions(until = "v1", list_map_key = "id")"#,
                "Vec<Port>",
                "needs `list_map_key",
            ),
            (
                r#"minimum = 6, in_versions(until = "v1", maximum = 9), in_versions(since = "v1", maximum = 5)"#,
                "i32",
                "`minimum` is above `maximum`",
            ),
            (r#"default = 7, in_versions(since = "v1", maximum = 5)"#, "i32", "the default breaks `maximum`"),
            (
                r#"in_versions(until = "v1", list_type = "map", list_map_key = "name"), in_versions(since = "v1", items(immutable))"#,
                "Vec<Port>",
                "by which an old item is found",
            ),
            (r#"in_versions(since = "v1", items(exclusive_minimum))"#, "Vec<i32>", "`exclusive_minimum` needs"),
        ] {
            let found = mistakes(words, type_);
            assert!(found.contains(expected), "{words}: {found}");
        }
    }
}
