//! How a Rust type says which JSON it is: the trait [`Schema`], and the small functions that derived code calls.

mod count_rule;
mod fits;
mod kubernetes;
mod members;
mod moved;
mod primitive;
#[cfg(feature = "schemars")]
mod schemars;
mod union;

use koord_schema::{AdditionalProperties, Schema as Node, SchemaType};
use serde_json::json;

use crate::version::version_rank;

pub use count_rule::count_rule;
pub(crate) use count_rule::escaped;
pub use fits::{needs_array, needs_int_or_string, needs_length, needs_number, needs_object, needs_text};
pub(crate) use members::is_same;
pub use members::{
    Member, Members, needs_key, needs_member, needs_member_of_any_version, needs_path, needs_selectable,
};
pub(crate) use moved::{at_moved, by_newest_name};
pub use moved::{moved, moved_member};
#[cfg(feature = "schemars")]
pub use schemars::from_schemars;
pub use union::{one_of_properties, tagged, tagged_beside, untagged};

use crate::Versions;

/// A type with a structural schema.
///
/// `#[derive(Schema)]` implements it for structs, newtypes and enums. By hand it is implemented for the types of the
/// standard library and of Kubernetes that stand in CRDs, and for whatever else writes JSON of its own:
///
/// ```
/// use koord_resource::{Schema, declare::{Emit, Shape, text}, schema};
///
/// /// A point in time as `HH:MM`.
/// struct TimeOfDay;
///
/// impl Schema for TimeOfDay {
///     const SHAPE: Shape = Shape::String;
///     fn schema(_: Emit) -> schema::Schema {
///         schema::Schema { pattern: Some("^[0-2][0-9]:[0-5][0-9]$".to_owned()), ..text("A time of day.") }
///     }
/// }
/// assert_eq!(TimeOfDay::schema(Emit::default()).pattern.as_deref(), Some("^[0-2][0-9]:[0-5][0-9]$"));
/// ```
#[diagnostic::on_unimplemented(
    message = "no structural schema is known for `{Self}`",
    label = "not a type that `Schema` is implemented for",
    note = "a struct or an enum of yours derives it: `#[derive(Schema)]`",
    note = "of a type with `schemars::JsonSchema`, the field says `#[koord(schemars)]`, with the feature `schemars`",
    note = "of any other type, the field says `#[koord(schemaless, preserve_unknown_fields)]`"
)]
pub trait Schema {
    /// What kind of JSON it is, known while compiling, so that a marker on a named type can be checked.
    const SHAPE: Shape;

    /// The members of the object that it is, known while compiling, so that keys of lists and paths of a root can be
    /// checked. An implementation by hand may leave it out.
    const MEMBERS: Members = Members::Unknown;

    /// The members of the members, in the order of [`MEMBERS`](Self::MEMBERS), so that paths can be followed one step further.
    const INSIDE: &'static [Members] = &[];

    /// The schema, as the document in `cx` wants it.
    fn schema(cx: Emit) -> Node;
}

/// The kind of JSON that a type becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any number.
    Number,
    /// A text.
    String,
    /// An array.
    Array,
    /// An object or map.
    Object,
    /// An integer or a text.
    IntOrString,
    /// Any JSON.
    Anything,
}

/// Which of the two emission profiles a document follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Exactly the structure that existing clusters know.
    #[default]
    Compatible,
    /// The same with what `hardened(…)` markers add.
    Hardened,
}

/// For which document a schema is built.
#[derive(Clone, Copy, Debug, Default)]
pub struct Emit {
    profile: Profile,
    version: Option<&'static str>,
    admission: bool,
    depth: u8,
}

/// Deeper nesting than this is a type that contains itself by way of another; the schema ends there.
const DEPTH_MAX: u8 = 48;

impl Emit {
    /// A document of one profile and the newest version.
    pub fn new(profile: Profile) -> Self {
        Emit { profile, ..Emit::default() }
    }

    /// The same for an older version of the kind: fields look as they did there.
    #[must_use]
    pub fn at_version(self, version: &'static str) -> Self {
        Emit { version: Some(version), ..self }
    }

    /// The same with the rules that otherwise admission alone enforces, as far as a schema can hold them.
    #[must_use]
    pub fn with_admission(self) -> Self {
        Emit { admission: true, ..self }
    }

    /// Whether rules of admission count.
    pub fn has_admission(self) -> bool {
        self.admission
    }

    /// Whether `hardened(…)` markers count.
    pub fn is_hardened(self) -> bool {
        self.profile == Profile::Hardened
    }

    /// Whether the version that is built has what came with version `since`.
    pub fn has(self, since: &str) -> bool {
        self.version.is_none_or(|version| version_rank(version) >= version_rank(since))
    }

    /// Whether the version that is built is among some.
    pub fn is_among(self, versions: Versions) -> bool {
        versions.since.is_none_or(|since| self.has(since)) && !versions.until.is_some_and(|until| self.has(until))
    }

    /// One level further in; none when it cannot go on.
    #[must_use]
    pub fn deeper(self) -> Option<Self> {
        (self.depth < DEPTH_MAX).then_some(Emit { depth: self.depth + 1, ..self })
    }
}

// === building blocks ===

fn typed(type_: SchemaType, description: &str) -> Node {
    Node {
        type_: Some(type_),
        description: (!description.is_empty()).then(|| description.to_owned()),
        ..Node::default()
    }
}

/// An object without properties.
pub fn object(description: &str) -> Node {
    typed(SchemaType::Object, description)
}

/// A text.
pub fn text(description: &str) -> Node {
    typed(SchemaType::String, description)
}

/// A text out of a fixed list.
pub fn choice(description: &str, allowed: &[&str]) -> Node {
    Node { enum_: allowed.iter().map(|word| json!(word)).collect(), ..text(description) }
}

/// An array.
pub fn array(items: Node) -> Node {
    Node { items: Some(Box::new(items)), ..typed(SchemaType::Array, "") }
}

/// An object whose values all look alike.
pub fn map(values: Node) -> Node {
    Node { additional_properties: Some(AdditionalProperties::Schema(Box::new(values))), ..object("") }
}

/// Any JSON, kept as it is.
pub fn anything() -> Node {
    Node { preserve_unknown_fields: Some(true), ..Node::default() }
}

/// An integer or a text.
pub fn int_or_string() -> Node {
    let mut schema = Node::default();
    make_int_or_string(&mut schema);
    schema
}

/// Adds a property to an object.
pub fn property(object: &mut Node, name: &str, required: bool, schema: Node) {
    object.properties.insert(name.to_owned(), schema);
    if required {
        object.required.push(name.to_owned());
    }
}

/// Notes what the newest version calls a property of an older one, by which paths of columns and scale find it.
pub fn renamed(object: &mut Node, name: &str, newest: &str) {
    if let Some(property) = object.properties.get_mut(name) {
        property.newest_name = Some(newest.to_owned());
    }
}

/// Puts the fields of one object into another, as `#[serde(flatten)]` does.
///
/// A flattened map cannot be said in a structural schema, so that unknown fields are kept instead.
pub fn flatten(object: &mut Node, inner: Node, optional: bool) {
    object.properties.extend(inner.properties);
    if !optional {
        object.required.extend(inner.required);
        if object.one_of.is_empty() {
            object.one_of = inner.one_of;
        } else if !inner.one_of.is_empty() {
            object.all_of.push(Node { one_of: inner.one_of, ..Node::default() });
        }
        object.any_of.extend(inner.any_of);
        object.all_of.extend(inner.all_of);
    }
    object.validations.extend(inner.validations);
    if inner.additional_properties.is_some() || inner.preserve_unknown_fields == Some(true) {
        object.preserve_unknown_fields = Some(true);
    }
}

/// Changes the schema of the items of an array.
pub fn items(array: &mut Node, change: impl FnOnce(&mut Node)) {
    if let Some(items) = array.items.as_deref_mut() {
        change(items);
    }
}

/// Says that a text, an array or an object is not empty.
pub fn make_not_empty(schema: &mut Node) {
    let least = |bound: &mut Option<u64>| *bound = Some(bound.unwrap_or_default().max(1));
    match schema.type_ {
        Some(SchemaType::String) => least(&mut schema.min_length),
        Some(SchemaType::Array) => least(&mut schema.min_items),
        Some(SchemaType::Object) => least(&mut schema.min_properties),
        _ => {}
    }
}

/// Says that the JSON is of one type, whatever the Rust type is.
pub fn make_type(schema: &mut Node, type_: SchemaType) {
    if schema.type_ != Some(type_) {
        *schema = Node { description: schema.description.take(), ..typed(type_, "") };
    }
}

/// Says that the JSON is an integer or a text, whatever the Rust type is.
pub fn make_int_or_string(schema: &mut Node) {
    *schema = Node {
        description: schema.description.take(),
        any_of: vec![typed(SchemaType::Integer, ""), typed(SchemaType::String, "")],
        int_or_string: true,
        pattern: schema.pattern.take(),
        ..Node::default()
    };
}
