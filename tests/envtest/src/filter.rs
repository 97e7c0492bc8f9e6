//! Which objects of a kind a list, watch or deletecollection is about.

use koord_scheduling::{FieldRequirement, FieldSelector, Selector};

use crate::{
    options::ListOptions,
    registry::ResourceDef,
    request::Target,
    selector,
    status::ApiError,
    store::{Change, Record},
};

/// Selectors of one request, checked against the kind.
#[derive(Clone, Debug)]
pub struct Filter {
    labels: Selector,
    fields: FieldSelector,
    /// What keys start with.
    pub prefix: String,
    /// For every term of the field selector: where its value stands.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Name,
    Namespace,
    Selectable(usize),
}

// === impl Filter ===

impl Filter {
    /// Reads the selectors of a request.
    pub fn new(definition: &ResourceDef, target: &Target, options: &ListOptions) -> Result<Self, ApiError> {
        let labels = Selector::parse(&options.label_selector).map_err(ApiError::bad_request)?;
        let mut fields = FieldSelector::parse(&options.field_selector).map_err(ApiError::bad_request)?;
        if !target.name.is_empty() {
            fields.requirements.push(FieldRequirement {
                field: "metadata.name".to_owned(),
                value: target.name.clone(),
                equal: true,
            });
        }
        let places = fields.requirements.iter().map(|term| place(definition, &term.field)).collect::<Result<_, _>>()?;
        let mut prefix = definition.key_prefix(&target.namespace);
        if let Some(name) = fields.exact("metadata.name")
            && (!definition.namespaced || !target.namespace.is_empty())
        {
            // One object: the range of keys is that key and the few that it is a prefix of.
            prefix.push_str(name);
        }
        Ok(Self { labels, fields, prefix, places })
    }

    /// Whether nothing but the namespace narrows the selection.
    pub fn is_plain(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// A selectable field that must have one value, by its place in a record: what watchers are found by.
    pub(crate) fn exact_field(&self) -> Option<(usize, &str)> {
        self.fields.requirements.iter().zip(&self.places).find_map(|(term, place)| match place {
            Place::Selectable(index) if term.equal => Some((*index, term.value.as_str())),
            _ => None,
        })
    }

    /// Whether a watch of these objects reports the change.
    pub(crate) fn concerns(&self, change: &Change) -> bool {
        change.key.starts_with(&self.prefix)
            && (self.matches(&change.key, &change.new)
                || change.old.as_ref().is_some_and(|old| self.matches(&change.key, old)))
    }

    /// Whether the object is meant; its key must start with the prefix.
    pub fn matches(&self, key: &str, record: &Record) -> bool {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        self.fields.requirements.iter().zip(&self.places).all(|(term, place)| {
            let value = match place {
                Place::Name => name,
                Place::Namespace => namespace,
                Place::Selectable(index) => record.fields.get(*index).map_or("", AsRef::as_ref),
            };
            (value == term.value) == term.equal
        }) && selector::selects_record(&self.labels, record)
    }
}

fn place(definition: &ResourceDef, field: &str) -> Result<Place, ApiError> {
    match field {
        "metadata.name" => return Ok(Place::Name),
        "metadata.namespace" if definition.namespaced || !definition.strategy.has_own_field_labels() => {
            return Ok(Place::Namespace);
        }
        _ => {}
    }
    if let Some(index) = definition.selectable_fields.iter().position(|known| known.name == field) {
        return Ok(Place::Selectable(index));
    }
    if definition.group == "resource.k8s.io" && definition.strategy.has_own_field_labels() {
        // This group alone names the kind.
        let (version, kind) = (definition.api_version(), &definition.kind);
        return Err(ApiError::bad_request(format!("field label not supported for {version}, Kind={kind}: {field}")));
    }
    if definition.custom || definition.strategy.has_own_field_labels() {
        return Err(ApiError::bad_request(format!("field label not supported: {field}")));
    }
    Err(ApiError::bad_request(format!(
        r#""{field}" is not a known field selector: only "metadata.name", "metadata.namespace""#
    )))
}
