//! Schemas of the types of the standard library, of JSON itself and of our exact types.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    rc::Rc,
    sync::Arc,
};

use koord_schema::{ListType, Schema as Node, SchemaType};
use serde_json::{Number, Value, value::RawValue};

use super::{Emit, Members, Schema, Shape, anything, array, int_or_string, map, object, text, typed};
use crate::{Duration, IntOrString, Quantity, ResourceList, Time};

/// What the API server accepts as a quantity; the rule is Kubernetes' own.
const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

fn number(type_: SchemaType, format: &str) -> Node {
    Node { format: Some(format.to_owned()), ..typed(type_, "") }
}

macro_rules! integers {
    ($($type:ty: $format:literal $(, minimum $minimum:expr)? $(, maximum $maximum:expr)?;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Schema for $type {
            const SHAPE: Shape = Shape::Integer;
            fn schema(_: Emit) -> Node {
                Node {
                    $(minimum: Some(Number::from($minimum)),)?
                    $(maximum: Some(Number::from($maximum)),)?
                    ..number(SchemaType::Integer, $format)
                }
            }
        }
    )*};
}

// What a narrower type cannot hold is refused by the schema as well.
integers! {
    i8: "int32", minimum i8::MIN, maximum i8::MAX;
    i16: "int32", minimum i16::MIN, maximum i16::MAX;
    i32: "int32";
    i64: "int64";
    isize: "int64";
    u8: "int32", minimum 0, maximum u8::MAX;
    u16: "int32", minimum 0, maximum u16::MAX;
    u32: "int64", minimum 0, maximum u32::MAX;
    u64: "int64", minimum 0;
    usize: "int64", minimum 0;
}

macro_rules! plain {
    ($($type:ty, $shape:ident => $schema:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Schema for $type {
            const SHAPE: Shape = Shape::$shape;
            fn schema(_: Emit) -> Node {
                $schema
            }
        }
    )*};
}

plain! {
    bool, Boolean => typed(SchemaType::Boolean, "");
    f32, Number => number(SchemaType::Number, "float");
    f64, Number => number(SchemaType::Number, "double");
    String, String => text("");
    str, String => text("");
    char, String => Node { min_length: Some(1), max_length: Some(1), ..text("") };
    Value, Anything => anything();
    RawValue, Anything => anything();
    serde_json::Map<String, Value>, Object => Node { preserve_unknown_fields: Some(true), ..object("") };
    IntOrString, IntOrString => int_or_string();
    Quantity, IntOrString => quantity();
    ResourceList, Object => map(quantity());
    Duration, String => text("");
    Time, String => date_time();
}

pub(super) fn date_time() -> Node {
    Node { format: Some("date-time".to_owned()), ..text("") }
}

pub(super) fn quantity() -> Node {
    Node { pattern: Some(QUANTITY_PATTERN.to_owned()), ..int_or_string() }
}

macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: Schema + ?Sized> Schema for $type {
            const SHAPE: Shape = T::SHAPE;
            const MEMBERS: Members = T::MEMBERS;
            const INSIDE: &'static [Members] = T::INSIDE;
            fn schema(cx: Emit) -> Node {
                T::schema(cx)
            }
        }
    )*};
}

transparent!(Box<T>, Arc<T>, Rc<T>, &T);

impl<T: Schema> Schema for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const MEMBERS: Members = T::MEMBERS;
    const INSIDE: &'static [Members] = T::INSIDE;
    fn schema(cx: Emit) -> Node {
        T::schema(cx)
    }
}

impl<T: Schema + ToOwned + ?Sized> Schema for Cow<'_, T> {
    const SHAPE: Shape = T::SHAPE;
    const MEMBERS: Members = T::MEMBERS;
    const INSIDE: &'static [Members] = T::INSIDE;
    fn schema(cx: Emit) -> Node {
        T::schema(cx)
    }
}

macro_rules! lists {
    ($($type:ty),*) => {$(
        impl<T: Schema> Schema for $type {
            const SHAPE: Shape = Shape::Array;
            fn schema(cx: Emit) -> Node {
                array(T::schema(cx))
            }
        }
    )*};
}

lists!(Vec<T>, VecDeque<T>, [T]);

impl<T: Schema, const N: usize> Schema for [T; N] {
    const SHAPE: Shape = Shape::Array;
    fn schema(cx: Emit) -> Node {
        Node { min_items: Some(N as u64), max_items: Some(N as u64), ..array(T::schema(cx)) }
    }
}

impl<T: Schema> Schema for BTreeSet<T> {
    const SHAPE: Shape = Shape::Array;
    fn schema(cx: Emit) -> Node {
        Node { list_type: Some(ListType::Set), ..array(T::schema(cx)) }
    }
}

impl<T: Schema, S> Schema for HashSet<T, S> {
    const SHAPE: Shape = Shape::Array;
    fn schema(cx: Emit) -> Node {
        Node { list_type: Some(ListType::Set), ..array(T::schema(cx)) }
    }
}

impl<K, V: Schema> Schema for BTreeMap<K, V> {
    const SHAPE: Shape = Shape::Object;
    fn schema(cx: Emit) -> Node {
        map(V::schema(cx))
    }
}

impl<K, V: Schema, S> Schema for HashMap<K, V, S> {
    const SHAPE: Shape = Shape::Object;
    fn schema(cx: Emit) -> Node {
        map(V::schema(cx))
    }
}
