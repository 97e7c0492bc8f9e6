//! The versions of a definition: their names, what each says, and what all of them say alike.
//!
//! Where all versions agree on one part, the API server moves it into the definition itself and speaks of it there.
//!
//! QUIRK: it moves the schema and the selectable fields independently, and refuses fields without a schema beside them
//! (kubernetes/kubernetes#140689, `selectable_fields_need_their_schema_beside_them` in the tests of this crate).

use serde::Serialize;
use serde_json::Value;

use super::{items, paths, schema, selectable, text};
use crate::{
    field::{Errors, FieldError, Mistake, Path},
    go_text,
    names::dns1035_label,
};

const DEPRECATION_WARNING_BYTES_MAX: usize = 256;

/// The parts of a version that may be the same for all.
const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

/// A part that is not there.
static NOTHING: Value = Value::Null;

/// All versions of a definition.
pub(super) struct Versions<'v> {
    /// The list, as it was written.
    list: &'v Value,
    all: &'v [Value],
    /// The parts on which all versions agree.
    shared: Vec<&'static str>,
}

impl<'v> Versions<'v> {
    pub(super) fn read(spec: &'v Value) -> Self {
        let all = items(spec, "versions");
        let shared = PARTS.into_iter().filter(|name| is_shared(all, name)).collect();
        Versions { list: &spec["versions"], all, shared }
    }

    /// A schema for every version; one that all share must not be empty.
    pub(super) fn check_schemas_are_given(&self, at: &Path<'_>, errors: &mut Errors) {
        if self.common().is_some_and(|common| common.document().is_some()) {
            return;
        }
        let list = at.child("versions");
        for (index, version) in self.all.iter().enumerate() {
            if self.own(version).document().is_none() {
                let here = list.index(index);
                errors.required(&here.child("schema").child("openAPIV3Schema"), "");
            }
        }
    }

    /// Whether a schema has a default.
    pub(super) fn have_defaults(&self) -> bool {
        self.all.iter().any(|version| schema::has_default(&version["schema"]["openAPIV3Schema"]))
    }

    /// What each version says by itself.
    pub(super) fn check_each(&self, at: &Path<'_>, errors: &mut Errors) {
        let list = at.child("versions");
        for (index, version) in self.all.iter().enumerate() {
            let here = list.index(index);
            let name = text(version, "name");
            let wrong = dns1035_label(name);
            if !wrong.is_empty() {
                errors.invalid(&here.child("name"), name, wrong.join(","));
            }
            check_deprecation(version, &here.child("deprecationWarning"), errors);
            let no_schema = "may only be set when `version.schema.openAPIV3Schema` is not included";
            self.own(version).check("schema", no_schema, &here, errors);
        }
    }

    /// Names and storage of all versions; the first one is also the one of a field that older clients know.
    pub(super) fn check_together(&self, at: &Path<'_>, errors: &mut Errors) {
        let list = at.child("versions");
        let names: Vec<&str> = self.all.iter().map(|version| text(version, "name")).collect();
        if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
            self.refuse(&list, "must contain unique version names", errors);
        }
        if self.all.iter().filter(|version| version["storage"] == true).count() != 1 {
            self.refuse(&list, "must have exactly one version marked as storage version", errors);
        }
        if let Some(first) = names.first().filter(|first| !first.is_empty()) {
            let wrong = dns1035_label(first);
            if !wrong.is_empty() {
                errors.invalid(&at.child("version"), first, wrong.join(","));
            }
        }
    }

    /// What all versions say alike.
    pub(super) fn check_common(&self, at: &Path<'_>, errors: &mut Errors) {
        if let Some(common) = self.common() {
            common.check("validation", "may only be set when validations.schema is included", at, errors);
        }
    }

    /// The versions in which objects are stored, or were.
    pub(super) fn check_stored(&self, stored: &Value, errors: &mut Errors) {
        let status = Path::root("status");
        let at = status.child("storedVersions");
        let names = stored.as_array().map(Vec::as_slice).unwrap_or_default();
        if names.is_empty() {
            errors.invalid(&at, Value::Null, "must have at least one stored version");
            return;
        }
        let mut left = names.to_vec();
        for version in self.all {
            let name = &version["name"];
            if version["storage"] == true && !left.contains(name) {
                errors.invalid(&at, stored, format!("must have the storage version {}", text(version, "name")));
            }
            left.retain(|known| known != name);
        }
        for (index, name) in names.iter().enumerate().filter(|(_, name)| left.contains(name)) {
            let version = name.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            errors.invalid(&at.index(index), name, detail);
        }
    }

    fn own(&self, version: &'v Value) -> Parts<'v> {
        let part = |name: &'static str| if self.shared.contains(&name) { &NOTHING } else { &version[name] };
        Parts::read(part, has_status(version))
    }

    /// What all say alike; none where there is no version.
    fn common(&self) -> Option<Parts<'v>> {
        let first = self.all.first()?;
        let part = |name: &'static str| if self.shared.contains(&name) { &first[name] } else { &NOTHING };
        Some(Parts::read(part, self.all.iter().any(has_status)))
    }

    /// An error about all versions, which are shown.
    fn refuse(&self, list: &Path<'_>, why: &str, errors: &mut Errors) {
        // Text, because a JSON value would sort the fields. Writing these types does not fail.
        let value = if self.list.is_null() { None } else { serde_json::to_string(&self.printed()).ok() };
        let value = value.unwrap_or_else(|| "null".to_owned());
        errors.add(FieldError { mistake: Mistake::Invalid, field: list.to_string(), value, detail: why.to_owned() });
    }

    /// All versions, without what they share.
    fn printed(&self) -> Vec<Printed<'v>> {
        let one = |version: &'v Value| {
            let own = self.own(version);
            Printed {
                name: &version["name"],
                served: version["served"] == true,
                storage: version["storage"] == true,
                deprecated: version["deprecated"] == true,
                deprecation_warning: &version["deprecationWarning"],
                schema: own.schema,
                subresources: own.subresources,
                additional_printer_columns: own.columns,
                selectable_fields: own.selectable,
            }
        };
        self.all.iter().map(one).collect()
    }
}

/// Whether every version says the same about `part`, so that it is spoken of once.
fn is_shared(versions: &[Value], part: &str) -> bool {
    let says = |version: &Value| {
        let value = version.get(part).filter(|value| !value.is_null())?;
        value.as_array().is_none_or(|list| !list.is_empty()).then(|| value.clone())
    };
    let mut all = versions.iter().map(says);
    let first = all.next().flatten();
    first.is_some() && all.all(|other| other == first)
}

fn has_status(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

fn check_deprecation(version: &Value, at: &Path<'_>, errors: &mut Errors) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    if version["deprecated"] != true {
        errors.invalid(at, warning, "can only be set for deprecated versions");
        return;
    }
    if warning.len() > DEPRECATION_WARNING_BYTES_MAX {
        errors.invalid(at, warning, format!("must be <= {DEPRECATION_WARNING_BYTES_MAX} characters long"));
    }
    if warning.is_empty() {
        errors.invalid(at, warning, "must not be an empty string");
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, character)| !go_text::is_printable(*character)) {
        let why =
            format!("must only contain printable UTF-8 characters; non-printable character found at index {index}");
        errors.invalid(at, warning, why);
    }
}

/// What is said at one place: in one version, or of all of them.
struct Parts<'v> {
    schema: &'v Value,
    subresources: &'v Value,
    columns: &'v Value,
    selectable: &'v Value,
    has_status: bool,
}

impl<'v> Parts<'v> {
    fn read(part: impl Fn(&'static str) -> &'v Value, has_status: bool) -> Self {
        let [schema, subresources, columns, selectable] = PARTS.map(part);
        Parts { schema, subresources, columns, selectable, has_status }
    }

    fn document(&self) -> Option<&'v Value> {
        self.schema.get("openAPIV3Schema").filter(|document| !document.is_null())
    }

    /// Checks what is said. `schema_name` is what the place calls its schema, `no_schema` what it says where selectable
    /// fields have none.
    fn check(&self, schema_name: &str, no_schema: &str, at: &Path<'_>, errors: &mut Errors) {
        let document = self.document();
        if let Some(document) = document {
            let here = at.child(schema_name);
            schema::check(document, self.has_status, &here.child("openAPIV3Schema"), errors);
        }
        let subresources = at.child("subresources");
        paths::check_scale(&self.subresources["scale"], &subresources.child("scale"), errors);
        let columns = at.child("additionalPrinterColumns");
        for (index, column) in self.columns.as_array().into_iter().flatten().enumerate() {
            paths::check_column(column, &columns.index(index), errors);
        }
        let fields = self.selectable.as_array().map(Vec::as_slice).unwrap_or_default();
        let here = at.child("selectableFields");
        match document {
            _ if fields.is_empty() => {}
            Some(document) => selectable::check(fields, document, &here, errors),
            None => errors.invalid(&here, "", no_schema),
        }
    }
}

/// A version as Go prints it inside an error: its own field names, in its own order.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Printed<'v> {
    name: &'v Value,
    served: bool,
    storage: bool,
    deprecated: bool,
    deprecation_warning: &'v Value,
    schema: &'v Value,
    subresources: &'v Value,
    additional_printer_columns: &'v Value,
    selectable_fields: &'v Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_shown_in_the_order_of_gos_fields() {
        let spec =
            json!({"versions": [{"name": "v1", "served": true}, {"name": "v2", "subresources": {"status": {}}}]});
        assert_eq!(
            serde_json::to_string(&Versions::read(&spec).printed()).unwrap(),
            r#"[{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v2","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":{"status":{}},"AdditionalPrinterColumns":null,"SelectableFields":null}]"#
        );
    }
}
