//! What `#[koord(…)]` on the root of a kind says.

use proc_macro2::Span;
use syn::LitStr;

use super::served::{Older, Serving};
use crate::{
    change::{Versions, version},
    entry::{Entry, Value, is_domain},
    model::Item,
    rbac::Permissions,
    report::Report,
    words::{
        self,
        change::VERSIONS,
        root::{COLUMN, ROOT, SCALE},
    },
};

/// What `#[koord(…)]` on the root says about the kind.
#[derive(Default)]
pub(crate) struct Root {
    pub(super) group: Option<LitStr>,
    pub(super) version: Option<LitStr>,
    pub(super) kind: Option<LitStr>,
    pub(super) plural: Option<LitStr>,
    pub(super) singular: Option<LitStr>,
    pub(super) list_kind: Option<LitStr>,
    pub(super) namespaced: Option<bool>,
    pub(super) status: Option<Versions>,
    pub(super) scales: Vec<Scale>,
    pub(super) short_names: Vec<LitStr>,
    pub(super) categories: Vec<LitStr>,
    pub(super) columns: Vec<Column>,
    pub(super) selectable: Vec<Selectable>,
    pub(super) annotations: Vec<(LitStr, LitStr)>,
    pub(super) labels: Vec<(LitStr, LitStr)>,
    pub(super) serving: Serving,
    pub(super) older: Vec<Older>,
    /// Whether a test of the definition is made.
    pub(super) is_tested: bool,
    /// Permissions that come with the kind, for whoever works with it.
    pub(super) rbac: Vec<Permissions>,
    /// What stands in `hardened(…)`.
    pub(super) extras: Extras,
}

/// A path that the root gives.
pub(crate) struct GivenPath<'r> {
    pub(crate) path: &'r LitStr,
    pub(crate) versions: &'r Versions,
    pub(crate) is_selectable: bool,
}

/// Presentation that only the profile `Hardened` has.
#[derive(Default)]
pub(super) struct Extras {
    pub(super) short_names: Vec<LitStr>,
    pub(super) categories: Vec<LitStr>,
    pub(super) columns: Vec<Column>,
    pub(super) selectable: Vec<Selectable>,
}

/// One `scale(…)`.
pub(super) struct Scale {
    pub(super) span: Span,
    pub(super) spec: LitStr,
    pub(super) status: LitStr,
    pub(super) selector: Option<LitStr>,
    pub(super) versions: Versions,
}

/// One field that selectors may use.
pub(super) struct Selectable {
    pub(super) path: LitStr,
    pub(super) versions: Versions,
}

/// One `column(…)`.
pub(super) struct Column {
    pub(super) name: LitStr,
    pub(super) type_: LitStr,
    pub(super) path: LitStr,
    pub(super) description: String,
    pub(super) format: String,
    pub(super) priority: i32,
    pub(super) versions: Versions,
}

impl Root {
    /// The paths of columns, scales and selectable fields.
    pub(crate) fn paths(&self) -> Vec<GivenPath<'_>> {
        let columns = self.columns.iter().chain(&self.extras.columns);
        let columns = columns.map(|Column { path, versions, .. }| GivenPath { path, versions, is_selectable: false });
        let scales = self.scales.iter().flat_map(|Scale { spec, status, selector, versions, .. }| {
            let paths = [spec, status].into_iter().chain(selector);
            paths.map(move |path| GivenPath { path, versions, is_selectable: false })
        });
        let selectable = self.selectable.iter().chain(&self.extras.selectable);
        let selectable =
            selectable.map(|Selectable { path, versions }| GivenPath { path, versions, is_selectable: true });
        columns.chain(scales).chain(selectable).collect()
    }

    pub(crate) fn parse(item: &Item<'_>, report: &Report) -> Self {
        let mut root = Root::default();
        for entry in item.entries.iter().filter(|entry| ROOT.has(&entry.name())) {
            if let Err(error) = root.take(entry) {
                report.add(error);
            }
        }
        for entry in item.entries.iter().filter(|entry| entry.name() == "hardened") {
            // Whatever else stands there are rules, which the markers' reader has seen.
            for inner in entry.list().unwrap_or_default() {
                if let Err(error) = root.extras.take(&inner) {
                    report.add(error);
                }
            }
        }
        root
    }

    fn take(&mut self, entry: &Entry) -> syn::Result<()> {
        match entry.name().as_str() {
            "group" => once(&mut self.group, entry, group(entry))?,
            "version" => once(&mut self.version, entry, version(entry).and_then(|_| entry.string()))?,
            "kind" => once(&mut self.kind, entry, entry.string())?,
            "plural" => once(&mut self.plural, entry, lower_case(entry))?,
            "singular" => once(&mut self.singular, entry, lower_case(entry))?,
            "list_kind" => once(&mut self.list_kind, entry, entry.string())?,
            "scope" => once(&mut self.namespaced, entry, scope(entry))?,
            "status" => self.status = status(entry)?,
            "scale" => self.scales.push(Scale::parse(entry)?),
            "short_name" => self.short_names.extend(entry.strings()?),
            "category" => self.categories.extend(entry.strings()?),
            "column" => self.columns.push(Column::parse(entry)?),
            "selectable" => self.selectable.extend(selectable(entry)?),
            "annotation" => self.annotations.push(pair(entry)?),
            "label" => self.labels.push(pair(entry)?),
            "older" => self.older.push(Older::parse(entry)?),
            "test" => self.is_tested = entry.flag()?,
            "rbac" => self.rbac.push(Permissions::parse(entry)?),
            _ => self.serving.take(entry)?,
        }
        Ok(())
    }
}

impl Extras {
    fn take(&mut self, entry: &Entry) -> syn::Result<()> {
        match entry.name().as_str() {
            "short_name" => self.short_names.extend(entry.strings()?),
            "category" => self.categories.extend(entry.strings()?),
            "column" => self.columns.push(Column::parse(entry)?),
            "selectable" => self.selectable.extend(selectable(entry)?),
            _ => {}
        }
        Ok(())
    }
}

/// `status`, or `status(since = "v1beta1")`.
fn status(entry: &Entry) -> syn::Result<Option<Versions>> {
    if !matches!(entry.value, Value::List(_)) {
        return Ok(entry.flag()?.then(Versions::default));
    }
    let parts = entry.list()?;
    words::only(&parts, &[&VERSIONS])?;
    Versions::parse(&parts).map(Some)
}

/// `selectable(".spec.host", ".spec.port")`, or `selectable(".spec.host", since = "v1")`.
fn selectable(entry: &Entry) -> syn::Result<Vec<Selectable>> {
    let (paths, parts) = entry.strings_and_parts()?;
    words::only(&parts, &[&VERSIONS])?;
    let versions = Versions::parse(&parts)?;
    if paths.is_empty() {
        return Err(entry.wrong("`selectable` needs a JSON path, as in `selectable(\".spec.host\")`"));
    }
    paths.into_iter().map(|path| Ok(Selectable { path: json_path(path)?, versions: versions.clone() })).collect()
}

/// Fills a slot that is empty.
pub(super) fn once<T>(slot: &mut Option<T>, entry: &Entry, value: syn::Result<T>) -> syn::Result<()> {
    if slot.is_some() {
        return Err(entry.wrong(&format!("`{}` is given twice", entry.word)));
    }
    *slot = Some(value?);
    Ok(())
}

/// A domain in lower case; empty for the core group.
fn group(entry: &Entry) -> syn::Result<LitStr> {
    let literal = entry.string()?;
    if literal.value().is_empty() || is_domain(&literal.value()) {
        Ok(literal)
    } else {
        Err(syn::Error::new(literal.span(), "a group is a domain in lower case, as in `group = \"example.com\"`"))
    }
}

fn lower_case(entry: &Entry) -> syn::Result<LitStr> {
    let literal = entry.string()?;
    let valid = !literal.value().is_empty()
        && literal
            .value()
            .bytes()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-');
    if valid {
        Ok(literal)
    } else {
        Err(syn::Error::new(literal.span(), format!("`{}` is a lower-case name", entry.word)))
    }
}

fn scope(entry: &Entry) -> syn::Result<bool> {
    let literal = entry.string()?;
    match literal.value().as_str() {
        "Namespaced" => Ok(true),
        "Cluster" => Ok(false),
        _ => Err(syn::Error::new(literal.span(), "`scope` is \"Cluster\" or \"Namespaced\"")),
    }
}

fn json_path(literal: LitStr) -> syn::Result<LitStr> {
    let text = literal.value();
    if text.starts_with('.') && text.len() > 1 {
        Ok(literal)
    } else {
        Err(syn::Error::new(literal.span(), "a JSON path starts at the root with a dot, such as \".spec.replicas\""))
    }
}

fn pair(entry: &Entry) -> syn::Result<(LitStr, LitStr)> {
    match <[LitStr; 2]>::try_from(entry.strings()?) {
        Ok([key, value]) => Ok((key, value)),
        Err(_) => Err(entry
            .wrong(&format!("`{}` takes a key and a value, as in `{}(\"key\", \"value\")`", entry.word, entry.word))),
    }
}

impl Scale {
    fn parse(entry: &Entry) -> syn::Result<Self> {
        let parts = entry.list()?;
        words::only(&parts, &[&SCALE, &VERSIONS])?;
        let part = |name: &str| {
            let part = parts.iter().find(|part| part.name() == name);
            part.map(|part| part.string().and_then(json_path)).transpose()
        };
        let missing = |name: &str| entry.wrong(&format!("`scale` needs `{name} = \".path\"`"));
        Ok(Scale {
            span: entry.span(),
            versions: Versions::parse(&parts)?,
            spec: part("spec")?.ok_or_else(|| missing("spec"))?,
            status: part("status")?.ok_or_else(|| missing("status"))?,
            selector: part("selector")?,
        })
    }
}

impl Column {
    fn parse(entry: &Entry) -> syn::Result<Self> {
        let parts = entry.list()?;
        words::only(&parts, &[&COLUMN, &VERSIONS])?;
        let part = |name: &str| parts.iter().find(|part| part.name() == name);
        let text = |name: &str| part(name).map(Entry::string).transpose();
        let needed = |name: &str| text(name)?.ok_or_else(|| entry.wrong(&format!("`column` needs `{name} = \"…\"`")));
        let type_ = needed("type")?;
        let allowed = ["string", "integer", "number", "boolean", "date"];
        if !allowed.contains(&type_.value().as_str()) {
            return Err(syn::Error::new(
                type_.span(),
                "the type of a column is string, integer, number, boolean or date",
            ));
        }
        let priority = part("priority").map(Entry::signed).transpose()?.unwrap_or_default();
        Ok(Column {
            versions: Versions::parse(&parts)?,
            name: needed("name")?,
            type_,
            path: json_path(needed("path")?)?,
            description: text("description")?.map(|text| text.value()).unwrap_or_default(),
            format: text("format")?.map(|text| text.value()).unwrap_or_default(),
            priority: i32::try_from(priority).map_err(|_| entry.wrong("`priority` is too large"))?,
        })
    }
}
