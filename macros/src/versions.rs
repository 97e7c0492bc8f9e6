//! How fields look in older versions of the kind, and the rules that name them.

use std::iter;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Type;

use crate::{
    change::{Change, ChangeKind, rank},
    json_path::first_field,
    marker::{Keyword, Markers, Rule},
    model::{Field, Item},
    report::Report,
};

/// How a field looks in the versions before one of its changes, or in the newest.
pub(crate) struct Form<'f> {
    /// The JSON name.
    pub(crate) name: &'f str,
    /// The type, where it is not the declared one.
    pub(crate) type_: Option<&'f Type>,
    pub(crate) present: bool,
}

/// The forms of a field, oldest first: one before each change, and the newest.
pub(crate) fn forms<'f>(field: &'f Field<'_>) -> Vec<Form<'f>> {
    let mut forms = vec![Form { name: &field.name, type_: None, present: true }];
    for change in field.markers.changes.iter().rev() {
        let Some(newer) = forms.last() else { break };
        let mut older = Form { ..*newer };
        match &change.kind {
            ChangeKind::Added | ChangeKind::Moved => older.present = false,
            ChangeKind::Renamed { from } => older.name = from,
            ChangeKind::Changed { from, .. } => older.type_ = Some(from),
        }
        forms.push(older);
    }
    forms.reverse();
    forms
}

/// The versions in which fields changed, oldest first.
fn steps<'f>(fields: &[&'f Field<'_>]) -> Vec<&'f str> {
    in_order(fields.iter().flat_map(|field| &field.markers.changes).map(|change| change.since.as_str()))
}

/// Versions by their order, each once.
pub(crate) fn in_order<'v>(versions: impl Iterator<Item = &'v str>) -> Vec<&'v str> {
    let mut versions: Vec<&str> = versions.collect();
    versions.sort_by_key(|version| rank(version));
    versions.dedup();
    versions
}

/// All versions that a type and its fields name, oldest first.
pub(crate) fn named<'v>(item: &'v Item<'_>) -> Vec<&'v str> {
    let fields = item.all_fields();
    let of_markers = |markers: &'v Markers| {
        let rules = markers.lists().flatten().filter_map(|marker| match &marker.keyword {
            Keyword::Validate(rule) => Some(&rule.versions),
            _ => None,
        });
        let limits = markers.in_versions.iter().map(|limited| &limited.versions).chain(rules);
        let limits = limits.flat_map(|versions| versions.since.iter().chain(&versions.until)).map(String::as_str);
        let changes = markers.changes.iter().map(|change| change.since.as_str());
        let moves = markers.moves.iter().map(|moved| moved.since.as_str());
        let removed = markers
            .removed
            .iter()
            .flat_map(|removed| iter::once(removed.since.as_str()).chain(removed.added.as_deref()));
        limits.chain(changes).chain(moves).chain(removed).collect::<Vec<_>>()
    };
    let all = iter::once(&item.markers).chain(fields.into_iter().map(|field| &field.markers));
    in_order(all.flat_map(of_markers))
}

/// What a field looked like just before a version.
pub(crate) fn form_before<'f>(field: &'f Field<'_>, version: &str) -> Option<Form<'f>> {
    let changes = field.markers.changes.iter();
    let done = changes.take_while(|change| rank(&change.since) < rank(version)).count();
    forms(field).into_iter().nth(done).filter(|form| form.present)
}

/// What has a name in the JSON of some version.
struct Called<'f> {
    name: &'f str,
    /// For messages.
    what: String,
    /// The name of the field in the newest version, if it is one there.
    newest: Option<&'f str>,
    span: Span,
}

/// All that stands in the struct's own object just before a version.
fn called_before<'f>(item: &'f Item<'_>, fields: &[&'f Field<'_>], version: &str) -> Vec<Called<'f>> {
    let named = fields.iter().filter_map(|field| {
        let name = form_before(field, version)?.name;
        Some(Called { name, what: format!("`{}`", field.name), newest: Some(&field.name), span: field.span })
    });
    let removed = item.markers.removed.iter().filter(|removed| removed.is_before(version)).map(|removed| Called {
        name: &removed.name,
        what: format!("the removed `{}`", removed.name),
        newest: None,
        span: removed.span,
    });
    let moves = fields.iter().flat_map(|field| field.markers.moves.iter().map(move |moved| (field, moved)));
    let moved = moves.filter(|(_, moved)| moved.parent.is_none() && rank(version) <= rank(&moved.since));
    let moved = moved.map(|(field, moved)| Called {
        name: &moved.name,
        what: format!("`{}.{}`", field.name, moved.member.as_deref().unwrap_or_default()),
        newest: None,
        span: moved.span,
    });
    named.chain(removed).chain(moved).collect()
}

/// Notes fields that have one name in some version, and rules that name fields which are not there.
pub(crate) fn check(item: &Item<'_>, report: &Report) {
    let fields: Vec<&Field<'_>> = item.fields().iter().filter(|field| !field.serde.flatten).collect();
    let moves = fields.iter().flat_map(|field| &field.markers.moves).map(|moved| moved.since.as_str());
    let removed = item.markers.removed.iter().map(|removed| removed.since.as_str());
    for version in in_order(steps(&fields).into_iter().chain(moves).chain(removed)) {
        let called = called_before(item, &fields, version);
        for (index, one) in called.iter().enumerate() {
            // Where two fields are called so in every version, the check of one version has said it.
            let same =
                |other: &&Called<'_>| other.name == one.name && (one.newest.is_none() || other.newest != one.newest);
            for other in called[..index].iter().filter(same) {
                report.at(
                    one.span,
                    format!(
                        "before {version}, {} and {} are both called `{}` in JSON; one of them needs another name, or was `added`",
                        other.what, one.what, one.name
                    ),
                );
            }
        }
    }
    for marker in item.markers.schema.iter().chain(&item.markers.hardened) {
        let Keyword::Validate(rule) = &marker.keyword else { continue };
        for name in named_in(rule) {
            if let Some(problem) = problem(rule, name, &fields).or_else(|| removed_problem(rule, name, item)) {
                report.at(marker.word.span(), problem);
            }
        }
    }
}

/// Why a rule cannot name a field in all versions that have the rule.
fn problem(rule: &Rule, name: &str, fields: &[&Field<'_>]) -> Option<String> {
    if let Some(until) = &rule.versions.until {
        let is_there = fields.iter().any(|field| form_before(field, until).is_some_and(|form| form.name == name));
        let is_newer = fields.iter().any(|field| field.name == name);
        return (is_newer && !is_there).then(|| format!("before {until} there is no field `{name}` in JSON"));
    }
    let field = fields.iter().find(|field| field.name == name)?;
    // A field path leads to a field of whatever type.
    let is_read = read_by(rule).any(|read| read == name);
    let matters = |change: &&Change| is_read || !matches!(change.kind, ChangeKind::Changed { .. });
    let change = field.markers.changes.iter().rfind(matters)?;
    let has_it = rule.versions.since.as_ref().is_some_and(|since| rank(since) >= rank(&change.since));
    (!has_it).then(|| {
        format!(
            "the rule names `{name}`, which is another field or none before {0}; add `since = \"{0}\"` to it, and write one with `until = \"{0}\"` for the versions before",
            change.since
        )
    })
}

/// Why a rule cannot name a field that was removed.
fn removed_problem(rule: &Rule, name: &str, item: &Item<'_>) -> Option<String> {
    let removed = item.markers.removed.iter().find(|removed| removed.name == name)?;
    let is_newer = item.fields().iter().any(|field| field.name == name);
    let ends = rule.versions.until.as_ref().is_some_and(|until| rank(until) <= rank(&removed.since));
    (!is_newer && !ends)
        .then(|| format!("the rule names `{name}`, which {0} came without; add `until = \"{0}\"` to it", removed.since))
}

/// The fields that a rule names, each once: its expressions read them, or its field path begins with one.
fn named_in(rule: &Rule) -> Vec<&str> {
    let begins = rule.field_path.as_deref().and_then(first_field).map(|(name, _)| name);
    let mut names = Vec::new();
    for name in read_by(rule).chain(begins) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The fields that the expressions of a rule read.
fn read_by(rule: &Rule) -> impl Iterator<Item = &str> {
    let expressions = iter::once(&rule.expression).chain(&rule.message_expression);
    expressions.flat_map(|expression| named_by(expression))
}

/// The fields that a CEL expression reads of `self` and `oldSelf`.
fn named_by(expression: &str) -> impl Iterator<Item = &str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    ["self.", "oldSelf."].into_iter().flat_map(move |root| {
        expression.match_indices(root).filter_map(move |(at, _)| {
            let before = expression[..at].chars().next_back();
            if before.is_some_and(|letter| is_name(letter) || letter == '.') {
                return None;
            }
            let rest = expression[at + root.len()..].trim_start_matches('?');
            let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            (end > 0).then(|| &rest[..end])
        })
    })
}

/// Code that differs between versions because fields have other names in them: one piece for the names of each.
pub(crate) fn by_names(item: &Item<'_>, names: &[String], code: impl Fn(&[&str]) -> TokenStream) -> TokenStream {
    let fields: Vec<&Field<'_>> = item.fields().iter().filter(|field| names.contains(&field.name)).collect();
    let newest: Vec<&str> = names.iter().map(String::as_str).collect();
    let in_order = |version: &str| -> Vec<&str> {
        let field = |name: &String| fields.iter().find(|field| field.name == *name);
        names.iter().filter_map(|name| Some(form_before(field(name)?, version)?.name)).collect()
    };
    let (mut newer, mut oldest) = (TokenStream::new(), code(&newest));
    for version in steps(&fields).into_iter().rev() {
        newer = quote!(#newer if cx.has(#version) { #oldest } else);
        oldest = code(&in_order(version));
    }
    if newer.is_empty() { oldest } else { quote!(#newer { #oldest }) }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use super::{check, named_in};
    use crate::{expansions, marker::Rule};

    #[test]
    fn a_rule_names_the_fields_of_its_expressions_and_of_its_path() {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        for (expression, message_expression, field_path, expected) in [
            ("self.size > 0 && self.size < oldSelf.limit", "", "", "size limit"),
            ("true", "'not ' + self.?name.orValue('')", "", "name"),
            ("self.size > 0", "self.name", ".name.first", "size name"),
            ("true", "", ".zones['a']", "zones"),
            ("true", "", "['zones'].first", "zones"),
            ("self == oldSelf", "", "", ""),
        ] {
            let rule = Rule {
                expression: expression.to_owned(),
                message_expression: some(message_expression),
                field_path: some(field_path),
                ..Rule::default()
            };
            assert_eq!(named_in(&rule).join(" "), expected, "{expression} {message_expression} {field_path}");
        }
    }

    #[test]
    fn a_field_path_leads_to_a_field_whatever_its_type_was() {
        for (change, rule, is_wrong) in [
            ("changed", r#"rule = "true", field_path = ".size""#, false),
            ("changed", r#"rule = "self.size > 0", field_path = ".size""#, true),
            ("changed", r#"rule = "self.size > 0", since = "v1", field_path = ".size""#, false),
            ("renamed", r#"rule = "true", field_path = ".size""#, true),
        ] {
            let change = match change {
                "changed" => r#"changed(since = "v1", from = String, up = parse, down = print)"#,
                _ => r#"renamed(since = "v1", from = "count")"#,
            };
            let source = format!("#[koord(validate({rule}))] struct Spec {{ #[koord({change})] size: i32 }}");
            let mistakes = expansions::item(&source, |item, report| {
                check(item, report);
                TokenStream::new()
            });
            let mistakes = mistakes.to_string();
            assert_eq!(mistakes.contains("the rule names `size`"), is_wrong, "{source}: {mistakes}");
        }
    }
}
