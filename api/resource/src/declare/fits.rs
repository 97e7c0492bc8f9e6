//! Whether a marker fits a named type, found out while compiling: derived code calls these in constants, so that a failed
//! assertion is a compiler error at the marker.
#![expect(clippy::missing_panics_doc, reason = "evaluated while compiling, never at run time")]

use super::{Schema, Shape};

/// Fails to compile where the type is no number.
pub const fn needs_number<T: Schema>() {
    assert!(
        matches!(T::SHAPE, Shape::Integer | Shape::Number | Shape::IntOrString | Shape::Anything),
        "this marker needs a number"
    );
}

/// Fails to compile where the type is no text.
pub const fn needs_text<T: Schema>() {
    assert!(matches!(T::SHAPE, Shape::String | Shape::IntOrString | Shape::Anything), "this marker needs a text");
}

/// Fails to compile where the type is no array.
pub const fn needs_array<T: Schema>() {
    assert!(matches!(T::SHAPE, Shape::Array | Shape::Anything), "this marker needs an array");
}

/// Fails to compile where the type is no object.
pub const fn needs_object<T: Schema>() {
    assert!(matches!(T::SHAPE, Shape::Object | Shape::Anything), "this marker needs an object");
}

/// Fails to compile where the type has no length.
pub const fn needs_length<T: Schema>() {
    assert!(
        matches!(T::SHAPE, Shape::String | Shape::Array | Shape::Object | Shape::Anything),
        "this marker needs a text, an array or a map"
    );
}

/// Fails to compile where the type is not an integer or a text.
pub const fn needs_int_or_string<T: Schema>() {
    assert!(
        matches!(T::SHAPE, Shape::IntOrString | Shape::String | Shape::Integer | Shape::Anything),
        "this marker needs a type that is an integer or a text"
    );
}
