//! The Go types of what profiles patch, as far as it is known which values they hold and how they are written.
//!
//! A merged object is decoded into its Go type and written again. So a value of another type refuses it
//! ([`type_error`]), and of a patch stays what the type has a field for, in the form in which Go writes it
//! ([`typed_patch`]).

mod patch;
mod pod;
mod type_error;

use koord_resource::Quantity;
use serde_json::Value;

pub use self::{
    patch::typed_patch,
    pod::{METADATA, POD, POD_TEMPLATE},
    type_error::type_error,
};

#[derive(Clone, Copy, Debug)]
pub struct GoType {
    /// Its name with the package, such as `v1.PodSpec`.
    pub name: &'static str,
    /// Its fields; none where they are not known, and then what stands in such an object is left as it is.
    pub fields: &'static [GoField],
}

/// A field of a struct.
#[derive(Clone, Copy, Debug)]
pub struct GoField {
    name: &'static str,
    kind: GoKind,
    /// Whether `false`, `""`, `0` and `[]` are written: the field is a pointer, or has no `omitempty`.
    keeps_zero: bool,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum GoKind {
    /// A text, under the name of its type.
    Text(&'static str),
    /// `bool`
    Flag,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// An object of a type.
    Object(GoType),
    /// A list of objects of a type.
    Objects(GoType),
    /// Texts by key.
    Texts,
    /// A list of texts.
    Names,
    /// Quantities by resource.
    Amounts,
    /// A value that its own type decodes, such as a time.
    Opaque,
}

impl GoType {
    /// A type whose fields are not known.
    pub const fn open(name: &'static str) -> Self {
        Self { name, fields: &[] }
    }

    fn field(&self, name: &str) -> Option<&'static GoField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Without the package.
    fn short_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, name)| name)
    }
}

impl GoField {
    /// A field that is not written when its value is zero.
    pub const fn new(name: &'static str, kind: GoKind) -> Self {
        Self { name, kind, keeps_zero: false }
    }

    /// A field that is written whatever its value is.
    pub const fn kept(name: &'static str, kind: GoKind) -> Self {
        Self { name, kind, keeps_zero: true }
    }
}

/// A quantity from JSON; an error has Go's words.
fn quantity(value: &Value) -> Result<Quantity, String> {
    serde_json::from_value(value.clone()).map_err(|error: serde_json::Error| error.to_string())
}
