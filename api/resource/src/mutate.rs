//! Defaulting and normalisation of typed objects.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::walk::{list_types, map_types, plain_types};

/// A type that can be brought into its full and normal form; `#[derive(Mutate)]` implements it.
///
/// The order is: constant defaults, computed defaults, the fields' own types, normalisation of fields, normalisation of
/// the whole. Doing it twice changes nothing more, as long as the user's functions behave so.
#[diagnostic::on_unimplemented(
    message = "no defaults are known for `{Self}`",
    label = "not a type that `Mutate` is implemented for",
    note = "a struct or an enum of yours derives it: `#[derive(Mutate)]`; without defaults it costs nothing",
    note = "of a type of another crate, the field says `#[koord(schemars)]` or `#[koord(schemaless, preserve_unknown_fields)]`"
)]
pub trait Mutate {
    /// Fills in what is absent and normalises what is there.
    fn mutate(&mut self) {}
}

/// Fills in a constant default where the field is `absent`: where serde leaves it out. A literal that is no value of the
/// type, which tests show, changes nothing.
pub fn default<T: DeserializeOwned>(field: &mut Option<T>, absent: impl Fn(&Option<T>) -> bool, literal: Value) {
    if absent(field) {
        *field = serde_json::from_value(literal).ok();
    }
}

macro_rules! nothing_to_do {
    ($($type:ty),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl Mutate for $type {}
    )*};
}

plain_types!(nothing_to_do);
nothing_to_do!(k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition);

impl<T: Mutate + ?Sized> Mutate for Box<T> {
    fn mutate(&mut self) {
        (**self).mutate();
    }
}

impl<T: Mutate> Mutate for Option<T> {
    fn mutate(&mut self) {
        if let Some(value) = self {
            value.mutate();
        }
    }
}

macro_rules! item_by_item {
    ($($type:ty $(, $size:ident)?;)*) => {$(
        impl<T: Mutate $(, const $size: usize)?> Mutate for $type {
            fn mutate(&mut self) {
                self.iter_mut().for_each(Mutate::mutate);
            }
        }
    )*};
}

list_types!(item_by_item);

macro_rules! entry_by_entry {
    ($($type:ty $(, $state:ident)?;)*) => {$(
        impl<K, V: Mutate $(, $state)?> Mutate for $type {
            fn mutate(&mut self) {
                self.values_mut().for_each(Mutate::mutate);
            }
        }
    )*};
}

map_types!(entry_by_entry);
