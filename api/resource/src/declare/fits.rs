//! Whether a marker fits a named type, found out while compiling: derived code calls these in constants, so that a failed
//! assertion is a compiler error at the marker.
#![expect(clippy::missing_panics_doc, reason = "evaluated while compiling, never at run time")]

use super::{Schema, Shape};

/// Fails to compile where the type is no number.
///
/// ```
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Count(i64);
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(minimum = 1)]
///     field: Count,
/// }
/// # fn main() {}
/// ```
///
/// ```compile_fail,E0080
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Count(String);
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(minimum = 1)]
///     field: Count,
/// }
/// # fn main() {}
/// ```
pub const fn needs_number<T: Schema>() {
    assert!(
        matches!(T::SHAPE, Shape::Integer | Shape::Number | Shape::IntOrString | Shape::Anything),
        "this marker needs a number"
    );
}

/// Fails to compile where the type is no text.
///
/// ```
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Name(String);
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(max_length = 1)]
///     field: Name,
/// }
/// # fn main() {}
/// ```
///
/// ```compile_fail,E0080
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Name { text: String }
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(max_length = 1)]
///     field: Name,
/// }
/// # fn main() {}
/// ```
pub const fn needs_text<T: Schema>() {
    assert!(matches!(T::SHAPE, Shape::String | Shape::IntOrString | Shape::Anything), "this marker needs a text");
}

/// Fails to compile where the type is no array.
///
/// ```
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Names(Vec<String>);
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(max_items = 1)]
///     field: Names,
/// }
/// # fn main() {}
/// ```
///
/// ```compile_fail,E0080
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// enum Names { One }
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(max_items = 1)]
///     field: Names,
/// }
/// # fn main() {}
/// ```
pub const fn needs_array<T: Schema>() {
    assert!(matches!(T::SHAPE, Shape::Array | Shape::Anything), "this marker needs an array");
}

/// Fails to compile where the type is no object.
///
/// ```
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Parts { one: i32 }
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(max_properties = 1)]
///     field: Parts,
/// }
/// # fn main() {}
/// ```
///
/// ```compile_fail,E0080
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Parts(i64);
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(max_properties = 1)]
///     field: Parts,
/// }
/// # fn main() {}
/// ```
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
