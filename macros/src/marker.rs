//! Markers: the checked words on fields, types and items.

mod in_versions;

use in_versions::InVersions;
use proc_macro2::Span;
use syn::{Ident, Path};

use crate::{
    change::{Change, ChangeKind, Move, Removed, Versions},
    entry::Entry,
    json::{Json, Number},
    report::Report,
    words::{
        self, Place,
        change::VERSIONS,
        root::ROOT,
        schema::{CRATE, EXTERNAL_DOCS, RULE},
    },
};

/// One keyword of a schema with the place where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    pub(crate) word: Ident,
    pub(crate) keyword: Keyword,
}

#[derive(Clone, Debug)]
pub(crate) enum Keyword {
    Minimum(Number),
    Maximum(Number),
    ExclusiveMinimum,
    ExclusiveMaximum,
    MultipleOf(Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(String),
    Format(String),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    MinProperties(u64),
    MaxProperties(u64),
    Enumeration(Vec<Json>),
    PreserveUnknownFields(bool),
    EmbeddedResource,
    IntOrString,
    Type(&'static str),
    Title(String),
    Example(Json),
    ExternalDocs {
        description: Option<String>,
        url: String,
    },
    ListType(&'static str),
    ListMapKey(Vec<String>),
    /// `map_type` and `struct_type`.
    MapType(&'static str),
    Items(Vec<Marker>),
    Validate(Rule),
    Immutable,
    OneOf(Count, Vec<String>),
    NotEmpty,
    Default(Json),
    Nullable,
    Schemaless,
    Schemars,
}

/// A CEL rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    pub(crate) expression: String,
    pub(crate) message: Option<String>,
    pub(crate) message_expression: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: Option<String>,
    pub(crate) optional_old_self: Option<bool>,
    /// The versions that have the rule.
    pub(crate) versions: Versions,
}

/// How many of some fields may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Exactly,
    AtMost,
    AtLeast,
}

/// All markers of one field or type.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    /// Rules of both profiles.
    pub(crate) schema: Vec<Marker>,
    /// Rules of both profiles in some versions alone.
    pub(crate) in_versions: Vec<InVersions>,
    /// Rules of the profile `Hardened` alone.
    pub(crate) hardened: Vec<Marker>,
    /// Rules that only the admission handler enforces.
    pub(crate) admission: Vec<Marker>,
    pub(crate) required: Option<Span>,
    pub(crate) optional: Option<Span>,
    pub(crate) open: Option<Span>,
    /// Whether the doc comment stays out of the schema.
    pub(crate) skips_description: bool,
    pub(crate) checks: Vec<Path>,
    pub(crate) update_checks: Vec<Path>,
    pub(crate) default_fn: Option<Path>,
    pub(crate) normalize: Vec<Path>,
    pub(crate) changes: Vec<Change>,
    /// Where the field, or fields of it, stood before.
    pub(crate) moves: Vec<Move>,
    /// Fields that the struct had before.
    pub(crate) removed: Vec<Removed>,
}

impl Markers {
    /// Reads the markers among the entries; words of the root are left to the root's own reader.
    pub(crate) fn parse(entries: &[Entry], place: Place, report: &Report) -> Self {
        let mut markers = Markers::default();
        for entry in entries {
            if let Err(error) = place.check(entry).and_then(|()| markers.take(entry, place, report)) {
                report.add(error);
            }
        }
        for rules in [&markers.schema, &markers.hardened, &markers.admission] {
            refuse_repetition(rules, report);
        }
        in_versions::refuse_repetition(&markers.in_versions, &markers.schema, report);
        markers
    }

    fn take(&mut self, entry: &Entry, place: Place, report: &Report) -> syn::Result<()> {
        match entry.name().as_str() {
            "required" if entry.flag()? => self.required = Some(entry.span()),
            "optional" if entry.flag()? => self.optional = Some(entry.span()),
            "open" if entry.flag()? => self.open = Some(entry.span()),
            "skip_description" => self.skips_description = entry.flag()?,
            "check" => self.checks.push(entry.path()?),
            "check_update" => self.update_checks.push(entry.path()?),
            "default_fn" => self.default_fn = Some(entry.path()?),
            "normalize" => self.normalize.push(entry.path()?),
            "added" | "renamed" | "changed" => self.changes.push(Change::parse(entry)?),
            "moved" => {
                let moved = Move::parse(entry)?;
                if moved.member.is_none() {
                    self.changes.push(Change { since: moved.since.clone(), kind: ChangeKind::Moved });
                }
                self.moves.push(moved);
            }
            "removed" => self.removed.push(Removed::parse(entry)?),
            "in_versions" => self.in_versions.push(InVersions::parse(entry, report)?),
            "hardened" => {
                let place = if place == Place::Type { Place::Hardened } else { Place::Rules };
                self.hardened.extend(rules(&entry.list()?, place, report));
            }
            // On a type, `admission(validate(…))` and `admission(mutate(…))` describe handlers.
            "admission" if place == Place::Type => {}
            "admission" => self.admission.extend(rules(&entry.list()?, Place::Rules, report)),
            // Enforced by admission alone: a schema cannot say it in one word.
            "not_empty" => self.admission.extend(keyword(entry, report)?),
            word if ROOT.has(word) || CRATE.has(word) => {}
            _ => self.schema.extend(keyword(entry, report)?),
        }
        Ok(())
    }

    /// The lists of rules: of all versions, of the profile `Hardened`, of admission, and of each `in_versions(…)`.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &[Marker]> {
        let limited = self.in_versions.iter().map(|limited| &limited.rules);
        [&self.schema, &self.hardened, &self.admission].into_iter().chain(limited).map(Vec::as_slice)
    }

    /// The rules of both profiles that the newest version has: those that no later version lacks.
    pub(crate) fn of_newest(&self) -> impl Iterator<Item = &Marker> {
        let limited = self.in_versions.iter().filter(|limited| limited.versions.until.is_none());
        self.schema.iter().chain(limited.flat_map(|limited| &limited.rules))
    }

    /// The rules of both profiles that each of some versions has.
    pub(crate) fn of_each(&self, versions: &Versions) -> Vec<&Marker> {
        let limited = self.in_versions.iter().filter(|limited| limited.versions.contain(versions));
        self.schema.iter().chain(limited.flat_map(|limited| &limited.rules)).collect()
    }

    /// The rules that not all versions have.
    pub(crate) fn of_some(&self) -> impl Iterator<Item = &Marker> {
        self.in_versions.iter().flat_map(|limited| &limited.rules)
    }

    /// Whether the schema may have other members than the Rust type.
    pub(crate) fn may_have_others(&self) -> bool {
        self.schema.iter().chain(self.of_some()).chain(&self.hardened).any(|marker| {
            matches!(
                marker.keyword,
                Keyword::PreserveUnknownFields(true)
                    | Keyword::EmbeddedResource
                    | Keyword::IntOrString
                    | Keyword::Type(_)
                    | Keyword::Schemaless
                    | Keyword::Schemars
            )
        })
    }

    /// The rule that finds `of` among the rules of all versions in both profiles.
    pub(crate) fn find<T>(&self, of: impl Fn(&Keyword) -> Option<T>) -> Option<T> {
        self.schema.iter().find_map(|marker| of(&marker.keyword))
    }

    pub(crate) fn schema_default(&self) -> Option<&Json> {
        self.schema.iter().find_map(|marker| match &marker.keyword {
            Keyword::Default(json) => Some(json),
            _ => None,
        })
    }

    /// The JSON names by which the items of a list are known.
    pub(crate) fn list_map_keys(&self) -> Vec<&str> {
        let keys = self.of_newest().chain(&self.hardened).filter_map(|marker| match &marker.keyword {
            Keyword::ListMapKey(keys) => Some(keys),
            _ => None,
        });
        keys.flatten().map(String::as_str).collect()
    }

    pub(crate) fn is_schemaless(&self) -> bool {
        self.schema.iter().any(|marker| matches!(marker.keyword, Keyword::Schemaless))
    }

    /// Whether schemars describes the field's type.
    pub(crate) fn is_of_schemars(&self) -> bool {
        self.schema.iter().any(|marker| matches!(marker.keyword, Keyword::Schemars))
    }

    /// Whether the field's type implements none of our traits.
    pub(crate) fn is_foreign(&self) -> bool {
        self.is_schemaless() || self.is_of_schemars()
    }

    pub(crate) fn is_nullable(&self) -> bool {
        self.schema.iter().any(|marker| matches!(marker.keyword, Keyword::Nullable))
    }
}

/// The markers inside `items(…)`, `in_versions(…)`, `hardened(…)` and `admission(…)`.
fn rules(entries: &[Entry], place: Place, report: &Report) -> Vec<Marker> {
    let mut markers = Vec::new();
    for entry in entries {
        match place.check(entry).and_then(|()| keyword(entry, report)) {
            Ok(marker) => markers.extend(marker),
            Err(error) => report.add(error),
        }
    }
    markers
}

pub(crate) fn refuse_repetition(markers: &[Marker], report: &Report) {
    for (index, marker) in markers.iter().enumerate() {
        if !is_repeatable(&marker.keyword) && markers[..index].iter().any(|earlier| earlier.word == marker.word) {
            report.at(marker.word.span(), format!("`{}` is given twice", marker.word));
        }
    }
}

/// Whether a word may stand several times.
fn is_repeatable(keyword: &Keyword) -> bool {
    matches!(keyword, Keyword::Validate(_) | Keyword::ListMapKey(_) | Keyword::OneOf(..))
}

/// One word as a keyword; none where the word is switched off (`= false`).
pub(crate) fn keyword(entry: &Entry, report: &Report) -> syn::Result<Option<Marker>> {
    let text = || entry.string().map(|literal| literal.value());
    let keyword = match entry.name().as_str() {
        "minimum" => Keyword::Minimum(number(entry)?),
        "maximum" => Keyword::Maximum(number(entry)?),
        "exclusive_minimum" => return flag(entry, Keyword::ExclusiveMinimum),
        "exclusive_maximum" => return flag(entry, Keyword::ExclusiveMaximum),
        "multiple_of" => Keyword::MultipleOf(number(entry)?),
        "min_length" => Keyword::MinLength(entry.unsigned()?),
        "max_length" => Keyword::MaxLength(entry.unsigned()?),
        "pattern" => Keyword::Pattern(pattern(entry)?),
        "format" => Keyword::Format(text()?),
        "min_items" => Keyword::MinItems(entry.unsigned()?),
        "max_items" => Keyword::MaxItems(entry.unsigned()?),
        "unique_items" => return flag(entry, Keyword::UniqueItems),
        "min_properties" => Keyword::MinProperties(entry.unsigned()?),
        "max_properties" => Keyword::MaxProperties(entry.unsigned()?),
        "enumeration" => Keyword::Enumeration(enumeration(entry)?),
        "preserve_unknown_fields" => Keyword::PreserveUnknownFields(entry.flag()?),
        "embedded_resource" => return flag(entry, Keyword::EmbeddedResource),
        "int_or_string" => return flag(entry, Keyword::IntOrString),
        "type" => Keyword::Type(choice(entry, &["string", "integer", "number", "boolean", "object", "array"])?),
        "title" => Keyword::Title(text()?),
        "example" => Keyword::Example(entry.json()?),
        "external_docs" => external_docs(entry)?,
        "list_type" => Keyword::ListType(choice(entry, &["map", "set", "atomic"])?),
        "list_map_key" => Keyword::ListMapKey(entry.strings()?.iter().map(syn::LitStr::value).collect()),
        "map_type" | "struct_type" => Keyword::MapType(choice(entry, &["granular", "atomic"])?),
        "items" => Keyword::Items(rules(&entry.list()?, Place::Rules, report)),
        "validate" => Keyword::Validate(rule(entry)?),
        "immutable" => return flag(entry, Keyword::Immutable),
        "exactly_one_of" => one_of(Count::Exactly, entry)?,
        "at_most_one_of" => one_of(Count::AtMost, entry)?,
        "at_least_one_of" => one_of(Count::AtLeast, entry)?,
        "not_empty" => return flag(entry, Keyword::NotEmpty),
        "default" => Keyword::Default(entry.json()?),
        "nullable" => return flag(entry, Keyword::Nullable),
        "schemaless" => return flag(entry, Keyword::Schemaless),
        "schemars" => return flag(entry, Keyword::Schemars),
        _ => return Ok(None),
    };
    Ok(Some(Marker { word: entry.word.clone(), keyword }))
}

fn flag(entry: &Entry, keyword: Keyword) -> syn::Result<Option<Marker>> {
    Ok(entry.flag()?.then(|| Marker { word: entry.word.clone(), keyword }))
}

fn number(entry: &Entry) -> syn::Result<Number> {
    match entry.json()? {
        Json::Number(number) => Ok(number),
        other => Err(entry.wrong(&format!("`{}` needs a number, not {}", entry.word, other.kind()))),
    }
}

/// RE2 has neither look-around nor back-references, as the `regex` crate has not: what it cannot read, the API server cannot.
fn pattern(entry: &Entry) -> syn::Result<String> {
    let literal = entry.string()?;
    let pattern = literal.value();
    match regex_syntax::parse(&pattern) {
        Ok(_) => Ok(pattern),
        Err(error) => {
            let reason = match &error {
                regex_syntax::Error::Parse(error) => error.kind().to_string(),
                regex_syntax::Error::Translate(error) => error.kind().to_string(),
                other => other.to_string(),
            };
            Err(syn::Error::new(literal.span(), format!("not an RE2 pattern: {reason}")))
        }
    }
}

fn enumeration(entry: &Entry) -> syn::Result<Vec<Json>> {
    let values = entry.literals()?;
    if values.is_empty() {
        return Err(entry.wrong("`enumeration` needs at least one value"));
    }
    match values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)) {
        Some(_) => Err(entry.wrong("`enumeration` names one value twice")),
        None => Ok(values),
    }
}

fn choice(entry: &Entry, allowed: &[&'static str]) -> syn::Result<&'static str> {
    let literal = entry.string()?;
    let given = literal.value();
    allowed.iter().copied().find(|word| *word == given).ok_or_else(|| {
        let list: Vec<String> = allowed.iter().map(|word| format!("\"{word}\"")).collect();
        syn::Error::new(literal.span(), format!("`{}` is one of {}", entry.word, list.join(", ")))
    })
}

fn external_docs(entry: &Entry) -> syn::Result<Keyword> {
    let parts = entry.list()?;
    words::only(&parts, &[&EXTERNAL_DOCS])?;
    let (mut url, mut description) = (None, None);
    for part in parts {
        let text = part.string()?.value();
        if part.name() == "url" { url = Some(text) } else { description = Some(text) }
    }
    let url = url.ok_or_else(|| entry.wrong("`external_docs` needs `url = \"https://…\"`"))?;
    Ok(Keyword::ExternalDocs { description, url })
}

fn one_of(count: Count, entry: &Entry) -> syn::Result<Keyword> {
    let fields: Vec<String> = entry.strings()?.iter().map(syn::LitStr::value).collect();
    if fields.len() < 2 {
        return Err(entry.wrong(&format!("`{}` needs the JSON names of at least two fields", entry.word)));
    }
    Ok(Keyword::OneOf(count, fields))
}

fn rule(entry: &Entry) -> syn::Result<Rule> {
    let parts = entry.list()?;
    words::only(&parts, &[&RULE, &VERSIONS])?;
    let mut rule = Rule { versions: Versions::parse(&parts)?, ..Rule::default() };
    for part in &parts {
        let text = || part.string().map(|literal| literal.value());
        match part.name().as_str() {
            "rule" => rule.expression = text()?,
            "message" => rule.message = Some(text()?),
            "message_expression" => rule.message_expression = Some(text()?),
            "reason" => {
                let reasons = ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];
                rule.reason = Some(choice(part, &reasons)?.to_owned());
            }
            "field_path" => rule.field_path = Some(text()?),
            "since" | "until" => {}
            _ => rule.optional_old_self = Some(part.flag()?),
        }
    }
    if rule.expression.trim().is_empty() {
        return Err(entry.wrong("`validate` needs `rule = \"a CEL expression\"`"));
    }
    if rule.message.as_ref().is_some_and(|message| message.contains('\n')) {
        return Err(entry.wrong("the `message` of a rule is one line"));
    }
    if rule.expression.contains('\n') && rule.message.is_none() && rule.message_expression.is_none() {
        return Err(entry.wrong("a rule of several lines needs a `message`"));
    }
    Ok(rule)
}
