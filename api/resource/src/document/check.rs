//! What an API server would say about a CustomResourceDefinition, before it is installed.

mod idle;
mod remedy;

use std::{fmt, iter};

use koord_schema::{
    Schema as Node, definition,
    field::{Errors, FieldError, Path},
};
use serde_json::Value;

use super::{Declared, custom_resource_definition};
use crate::{
    Resource,
    declare::{Profile, Schema},
};

/// One thing that is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path, reason and words as an API server has them. What all versions say alike it names `spec.validation`,
    /// `spec.subresources` and so on.
    pub error: FieldError,
    /// The path in the document, such as `spec.versions[*].schema.openAPIV3Schema`.
    pub place: String,
    /// How to repair it.
    pub remedy: &'static str,
    /// Whether an API server refuses the definition for it. It accepts the others, and what they name has no effect.
    pub is_refused: bool,
}

/// All that is wrong with a definition; empty where it can be installed and every part of it works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

/// Checks the definition of a declared kind in all of its versions, as both profiles print it.
///
/// Structure of the schemas, types and cost of CEL rules, keys of lists, defaults, names, versions, printer columns,
/// scale, selectable fields and conversion are checked as an API server checks them, and no server is needed.
///
/// ```
/// use koord_resource::document;
/// let wrong = serde_json::json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
///     "metadata": {"name": "shops.example.com"},
///     "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "shops", "kind": "Shop"},
///         "versions": [{"name": "v1", "served": true, "storage": false,
///             "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
/// let findings = document::check_definition(&wrong);
/// assert!(findings.to_string().contains("must have exactly one version marked as storage version"));
/// ```
pub fn check(versions: &[Declared]) -> Findings {
    let mut findings = Findings::default();
    for profile in [Profile::Compatible, Profile::Hardened] {
        let mut errors = Errors::new();
        for version in versions {
            version.schema(profile).check_structural(&Path::root(version.info.kind), &mut errors);
        }
        if errors.is_empty() {
            findings.join(check_definition(&custom_resource_definition(versions, profile)));
        } else {
            findings.join(Findings::of(&errors, true));
        }
    }
    findings
}

/// Checks the document of a CustomResourceDefinition, whoever wrote it.
pub fn check_definition(document: &Value) -> Findings {
    let mut errors = Errors::new();
    let is_definition =
        document["apiVersion"] == "apiextensions.k8s.io/v1" && document["kind"] == "CustomResourceDefinition";
    if !is_definition {
        let found = format!("{} {}", text(document, "apiVersion"), text(document, "kind"));
        errors.not_supported(&Path::root("kind"), found.trim(), &["apiextensions.k8s.io/v1 CustomResourceDefinition"]);
        return Findings::of(&errors, true);
    }
    let mut new = document.clone();
    definition::set_defaults(&mut new);
    definition::begin_status(&mut new);
    definition::check_new(&new, &mut errors);
    if errors.is_empty() {
        check_decodes(&new, &mut errors);
    }
    let mut findings = Findings::of(&errors, true);
    findings.join(Findings::of(&idle::find(&new), false));
    findings
}

/// Fails unless a kind could be installed and all that it declares works, in the version of its type and in each that
/// `older(…)` of the type names. For the test of a type, which the word `test` on the type makes too; [`check`] takes a
/// table of versions.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use koord_resource::{Resource, Schema, document::assert_legal};
/// use serde::Deserialize;
///
/// #[derive(Clone, Deserialize, Resource, Schema)]
/// #[koord(group = "example.com", version = "v1", scope = "Cluster", older(version = "v1beta1", storage))]
/// struct Shop {
///     metadata: ObjectMeta,
/// }
///
/// assert_legal::<Shop>();
/// ```
///
/// # Panics
///
/// Panics with all findings, each with its place and its remedy.
#[track_caller]
pub fn assert_legal<K: Resource + Schema>() {
    let newest = Declared::of::<K>();
    let older = K::INFO.older.iter().map(|older| newest.older(older.version));
    let findings = check(&iter::once(newest).chain(older).collect::<Vec<_>>());
    assert!(findings.is_empty(), "{} is no kind that works:\n{findings}", K::INFO.kind);
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

/// A server decodes a document before it checks it: keywords must have their types.
fn check_decodes(definition: &Value, errors: &mut Errors) {
    let spec = Path::root("spec");
    let list = spec.child("versions");
    for (index, version) in definition["spec"]["versions"].as_array().into_iter().flatten().enumerate() {
        if let Err(error) = serde_json::from_value::<Node>(version["schema"]["openAPIV3Schema"].clone()) {
            let here = list.index(index);
            errors.invalid(&here.child("schema").child("openAPIV3Schema"), "", error.to_string());
        }
    }
}

// === impl Findings ===

impl Findings {
    /// The findings, in the order of an API server.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(errors: &Errors, is_refused: bool) -> Self {
        let finding = |error: &FieldError| Finding {
            place: remedy::place(&error.field),
            remedy: remedy::of(error),
            error: error.clone(),
            is_refused,
        };
        Findings(errors.iter().map(finding).collect())
    }

    /// Adds what is not known yet.
    fn join(&mut self, others: Findings) {
        for other in others.0 {
            if !self.0.contains(&other) {
                self.0.push(other);
            }
        }
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One finding to two lines: what is wrong, and how to repair it.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{finding}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  {}", self.place, self.error.body(), self.remedy)
    }
}

#[cfg(test)]
mod tests;
