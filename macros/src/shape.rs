//! What JSON a Rust type becomes, as far as follows from its name.

use proc_macro2::Span;
use syn::{Expr, GenericArgument, PathArguments, Type};

/// The JSON of a type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape<'a> {
    Boolean,
    Integer(Range),
    Number,
    String,
    /// Text with a format of its own, such as a time.
    Formatted,
    Array(&'a Type),
    Map(&'a Type),
    IntOrString,
    /// Any JSON at all.
    Anything,
    /// A type whose name says nothing; its own `Schema` knows.
    Named,
}

/// What an integer type can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) min: i128,
    pub(crate) max: i128,
}

/// The type of a field, without the wrappers that JSON does not show.
#[derive(Clone, Debug)]
pub(crate) struct Peeled<'a> {
    /// Whether an `Option` was taken off.
    pub(crate) optional: bool,
    /// What was taken off, from the outside in.
    pub(crate) wrappers: Vec<Wrapper>,
    /// What is left.
    pub(crate) inner: &'a Type,
    pub(crate) shape: Shape<'a>,
}

/// A type around another that JSON does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrapper {
    Option,
    /// `Box`, `Arc`, `Rc` or a reference.
    Pointer,
}

/// The type without parentheses, and without the group in which a `macro_rules!` passes it on.
pub(crate) fn ungrouped(mut type_: &Type) -> &Type {
    loop {
        type_ = match type_ {
            Type::Paren(paren) => &paren.elem,
            Type::Group(group) => &group.elem,
            _ => return type_,
        };
    }
}

/// The expression without the groups in which a `macro_rules!` passes it on.
pub(crate) fn ungrouped_expression(mut expression: &Expr) -> &Expr {
    while let Expr::Group(group) = expression {
        expression = &group.expr;
    }
    expression
}

/// Whether the type is `Arc<str>`, by whatever path.
pub(crate) fn is_shared_text(type_: &Type) -> bool {
    let held = match named(ungrouped(type_)) {
        Some((name, arguments)) if name == "Arc" => arguments.first().copied(),
        _ => None,
    };
    held.and_then(|held| named(ungrouped(held))).is_some_and(|(name, _)| name == "str")
}

/// The `T` of `Option<T>`.
pub(crate) fn of_option(type_: &Type) -> Option<&Type> {
    match named(ungrouped(type_)) {
        Some((name, arguments)) if name == "Option" => arguments.first().copied(),
        _ => None,
    }
}

/// Takes `Option`, `Box`, `Arc` and `Rc` off and classifies what is left.
pub(crate) fn peel(type_: &Type) -> Peeled<'_> {
    let mut wrappers = Vec::new();
    let mut inner = type_;
    loop {
        inner = match ungrouped(inner) {
            Type::Reference(reference) => {
                wrappers.push(Wrapper::Pointer);
                &reference.elem
            }
            bare => {
                let named = named(bare);
                match named.as_ref().map(|(name, arguments)| (name.as_str(), arguments.as_slice())) {
                    Some(("Option", [argument])) => {
                        wrappers.push(Wrapper::Option);
                        argument
                    }
                    Some(("Box" | "Arc" | "Rc", [argument])) => {
                        wrappers.push(Wrapper::Pointer);
                        argument
                    }
                    _ => {
                        let optional = wrappers.contains(&Wrapper::Option);
                        return Peeled { optional, wrappers, inner: bare, shape: classify(bare) };
                    }
                }
            }
        };
    }
}

fn classify(type_: &Type) -> Shape<'_> {
    match type_ {
        Type::Array(array) => return Shape::Array(&array.elem),
        Type::Slice(slice) => return Shape::Array(&slice.elem),
        _ => {}
    }
    let Some((name, arguments)) = named(type_) else { return Shape::Named };
    match (name.as_str(), arguments.as_slice()) {
        ("bool", []) => Shape::Boolean,
        ("i8", []) => integer(i8::MIN, i8::MAX),
        ("i16", []) => integer(i16::MIN, i16::MAX),
        ("i32", []) => integer(i32::MIN, i32::MAX),
        ("i64" | "isize", []) => integer(i64::MIN, i64::MAX),
        ("u8", []) => integer(u8::MIN, u8::MAX),
        ("u16", []) => integer(u16::MIN, u16::MAX),
        ("u32", []) => integer(u32::MIN, u32::MAX),
        ("u64" | "usize", []) => integer(u64::MIN, u64::MAX),
        ("f32" | "f64", []) => Shape::Number,
        ("String" | "str" | "char", []) => Shape::String,
        ("Cow", [inner]) => classify(ungrouped(inner)),
        ("Time" | "MicroTime" | "Timestamp" | "Duration" | "GoDuration", []) => Shape::Formatted,
        ("Quantity" | "IntOrString", []) => Shape::IntOrString,
        ("Value" | "RawValue" | "RawExtension", []) => Shape::Anything,
        ("Vec" | "VecDeque" | "BTreeSet" | "HashSet" | "IndexSet", [item, ..]) => Shape::Array(item),
        ("BTreeMap" | "HashMap" | "IndexMap" | "Map", [_, value, ..]) => Shape::Map(value),
        _ => Shape::Named,
    }
}

fn integer(min: impl Into<i128>, max: impl Into<i128>) -> Shape<'static> {
    Shape::Integer(Range { min: min.into(), max: max.into() })
}

/// The last segment of a path with its type arguments.
fn named(type_: &Type) -> Option<(String, Vec<&Type>)> {
    let Type::Path(path) = type_ else { return None };
    let last = path.path.segments.last()?;
    let arguments = match &last.arguments {
        PathArguments::AngleBracketed(angle) => angle
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(type_) => Some(type_),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    Some((last.ident.to_string(), arguments))
}

impl Shape<'_> {
    /// The word for messages.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Shape::Boolean => "a boolean",
            Shape::Integer(_) => "an integer",
            Shape::Number => "a number",
            Shape::String => "a text",
            Shape::Formatted => "a text with a format of its own",
            Shape::Array(_) => "an array",
            Shape::Map(_) => "a map",
            Shape::IntOrString => "an integer or a text",
            Shape::Anything => "any JSON",
            Shape::Named => "a type of its own",
        }
    }
}

/// Whether values of the type may have rules of their own, which its name alone does not show.
pub(crate) fn may_have_rules(shape: &Shape<'_>) -> bool {
    match shape {
        Shape::Named => true,
        Shape::Array(inner) | Shape::Map(inner) => may_have_rules(&peel(inner).shape),
        _ => false,
    }
}

/// The name that a type is known by, for messages.
pub(crate) fn type_name(type_: &Type) -> String {
    quote::quote!(#type_).to_string().replace(' ', "")
}

/// Whether `name` stands anywhere in the type: as a type, as a parameter, or as a lifetime with its apostrophe.
pub(crate) fn mentions(type_: &Type, name: &str) -> Option<Span> {
    struct Finder<'n> {
        name: &'n str,
        found: Option<Span>,
    }
    impl<'ast> syn::visit::Visit<'ast> for Finder<'_> {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            // `T::Item` has the name `T` in it too.
            let first = path.segments.first().filter(|_| path.leading_colon.is_none());
            if let Some(first) = first.filter(|first| first.ident == self.name) {
                self.found.get_or_insert(first.ident.span());
            }
            syn::visit::visit_path(self, path);
        }
        fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
            if self.name.strip_prefix('\'').is_some_and(|name| lifetime.ident == name) {
                self.found.get_or_insert(lifetime.span());
            }
        }
    }
    let mut finder = Finder { name, found: None };
    syn::visit::Visit::visit_type(&mut finder, type_);
    finder.found
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_name_is_found_wherever_it_stands_in_a_type() {
        for (type_, name, expected) in [
            ("Vec<Option<Node>>", "Node", true),
            ("tree::Node", "Node", false),
            ("::Node", "Node", false),
            ("Vec<T::Item>", "T", true),
            ("<Self as Kind>::Spec", "Self", true),
            ("[u8; N]", "N", true),
            ("Cow<'a, str>", "'a", true),
            ("&'a str", "'a", true),
            ("Cow<'static, a>", "'a", false),
        ] {
            let parsed: syn::Type = syn::parse_str(type_).unwrap();
            assert_eq!(mentions(&parsed, name).is_some(), expected, "{name} in {type_}");
        }
    }
}
