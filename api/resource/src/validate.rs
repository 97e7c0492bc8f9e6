//! Validation of typed objects, in three parts: what the schema says, what only admission says, and what may change.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt::Display,
    hash::{BuildHasher, Hash},
    rc::Rc,
    sync::Arc,
};

use serde::Serialize;
use serde_json::Value;

use koord_schema::field::{Errors, Path};

use crate::{
    rule,
    walk::{list_types, map_types, plain_types},
};

/// A type that knows what its values may be; `#[derive(Validate)]` implements it.
///
/// The API server enforces the rules of the schema before a webhook is called, so a webhook asks only for
/// [`admission`](Self::validate_admission) and [`update`](Self::validate_update). Tests, linters and readers of
/// ConfigMaps ask for all with [`validate`](Self::validate).
#[diagnostic::on_unimplemented(
    message = "no rules are known for `{Self}`",
    label = "not a type that `Validate` is implemented for",
    note = "a struct or an enum of yours derives it: `#[derive(Validate)]`; without rules it costs nothing",
    note = "of a type of another crate, the field says `#[koord(schemars)]` or `#[koord(schemaless, preserve_unknown_fields)]`"
)]
pub trait Validate {
    /// Whether there are rules about what may become of an old value, known while compiling.
    const CHANGES: Changes = Changes::Free;

    /// The rules that the CRD states as well.
    fn validate_schema(&self, at: &Path<'_>, errors: &mut Errors) {
        let _ = (at, errors);
    }

    /// The rules that no schema states.
    fn validate_admission(&self, at: &Path<'_>, errors: &mut Errors) {
        let _ = (at, errors);
    }

    /// The rules about what may become of an old value.
    fn validate_update(&self, old: &Self, at: &Path<'_>, errors: &mut Errors) {
        let _ = (old, at, errors);
    }

    /// All rules of a whole object by itself.
    fn validate(&self) -> Errors {
        let mut errors = Errors::new();
        self.validate_schema(&Path::root(""), &mut errors);
        self.validate_admission(&Path::root(""), &mut errors);
        errors
    }
}

/// What a type says about changes of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Any value may become any other.
    Free,
    /// There are rules, and each old value is found.
    Ruled,
    /// There are rules about items of a list that has no keys, by which an old item could be found.
    Lost,
}

impl Changes {
    /// What is said about changes where these stand together.
    pub const fn of(parts: &[Changes]) -> Changes {
        match parts {
            [] => Changes::Free,
            [first, rest @ ..] => match (*first, Changes::of(rest)) {
                (Changes::Lost, _) | (_, Changes::Lost) => Changes::Lost,
                (Changes::Ruled, _) | (_, Changes::Ruled) => Changes::Ruled,
                (Changes::Free, Changes::Free) => Changes::Free,
            },
        }
    }

    /// The same about items of a list without keys.
    const fn without_keys(self) -> Changes {
        match self {
            Changes::Free => Changes::Free,
            Changes::Ruled | Changes::Lost => Changes::Lost,
        }
    }
}

/// Fails to compile where a type has rules about changes inside of a list whose items have no identity.
///
/// ```compile_fail,E0080
/// # use koord_resource::{Validate, validate::{Changes, needs_identity}};
/// struct Disk;
/// impl Validate for Disk {
///     const CHANGES: Changes = Changes::Ruled;
/// }
/// const _: () = needs_identity::<Vec<Disk>>();
/// # fn main() {}
/// ```
#[expect(clippy::missing_panics_doc, reason = "evaluated while compiling, never at run time")]
pub const fn needs_identity<T: Validate + ?Sized>() {
    assert!(
        !matches!(T::CHANGES, Changes::Lost),
        "rules about changes inside of a list need `list_type = \"map\"` and `list_map_key`, by which an old item is found"
    );
}

/// Looks at each item of a list with the old item of the same keys; `keys` are JSON names.
pub fn items_by_key<'a, T: Serialize + 'a>(
    new: impl IntoIterator<Item = &'a T>,
    old: impl IntoIterator<Item = &'a T>,
    keys: &[&str],
    at: &Path<'_>,
    errors: &mut Errors,
    mut rules: impl FnMut(&T, &T, &Path<'_>, &mut Errors),
) {
    let key = |item: &T| {
        let item = rule::json(item);
        keys.iter().map(|name| item[*name].clone()).collect::<Vec<Value>>()
    };
    let old: Vec<(Vec<Value>, &T)> = old.into_iter().map(|item| (key(item), item)).collect();
    for (index, new) in new.into_iter().enumerate() {
        let is = key(new);
        if let Some((_, old)) = old.iter().find(|(key, _)| *key == is) {
            rules(new, old, &at.index(index), errors);
        }
    }
}

macro_rules! no_rules {
    ($($type:ty),* $(,)?) => {$(
        #[diagnostic::do_not_recommend]
        impl Validate for $type {}
    )*};
}

plain_types!(no_rules);
no_rules!(serde_json::value::RawValue);

/// The rules that every condition has.
impl Validate for k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition {
    fn validate_schema(&self, at: &Path<'_>, errors: &mut Errors) {
        let schema = <Self as crate::Schema>::schema(crate::declare::Emit::default());
        let text = |name: &str, value: &str, errors: &mut Errors| {
            let (Some(rules), at) = (schema.properties.get(name), at.child(name)) else { return };
            if let Some(length) = rules.min_length {
                crate::rule::min_length(value, length, &at, errors);
            }
            if let Some(length) = rules.max_length {
                crate::rule::max_length(value, length, &at, errors);
            }
            if let Some(pattern) = &rules.pattern {
                crate::rule::pattern(value, pattern, &at, errors);
            }
            if !rules.enum_.is_empty() {
                crate::rule::enumeration(value, &rules.enum_, &at, errors);
            }
        };
        text("message", &self.message, errors);
        text("reason", &self.reason, errors);
        text("status", &self.status, errors);
        text("type", &self.type_, errors);
        if let Some(generation) = &self.observed_generation {
            crate::rule::minimum(generation, 0, false, &at.child("observedGeneration"), errors);
        }
    }
}

macro_rules! transparent {
    ($($type:ty),*) => {$(
        impl<T: Validate + ?Sized> Validate for $type {
            const CHANGES: Changes = T::CHANGES;
            fn validate_schema(&self, at: &Path<'_>, errors: &mut Errors) {
                (**self).validate_schema(at, errors);
            }
            fn validate_admission(&self, at: &Path<'_>, errors: &mut Errors) {
                (**self).validate_admission(at, errors);
            }
            fn validate_update(&self, old: &Self, at: &Path<'_>, errors: &mut Errors) {
                (**self).validate_update(old, at, errors);
            }
        }
    )*};
}

transparent!(Box<T>, Arc<T>, Rc<T>);

impl<T: ToOwned + ?Sized> Validate for Cow<'_, T> {}

impl<T: Validate> Validate for Option<T> {
    const CHANGES: Changes = T::CHANGES;

    fn validate_schema(&self, at: &Path<'_>, errors: &mut Errors) {
        if let Some(value) = self {
            value.validate_schema(at, errors);
        }
    }

    fn validate_admission(&self, at: &Path<'_>, errors: &mut Errors) {
        if let Some(value) = self {
            value.validate_admission(at, errors);
        }
    }

    fn validate_update(&self, old: &Self, at: &Path<'_>, errors: &mut Errors) {
        if let (Some(new), Some(old)) = (self, old) {
            new.validate_update(old, at, errors);
        }
    }
}

macro_rules! item_by_item {
    ($($type:ty $(, $size:ident)?;)*) => {$(
        // Old items are found by keys alone, which stand on the field: the derive calls [`items_by_key`] there.
        impl<T: Validate $(, const $size: usize)?> Validate for $type {
            const CHANGES: Changes = T::CHANGES.without_keys();
            fn validate_schema(&self, at: &Path<'_>, errors: &mut Errors) {
                for (index, item) in self.iter().enumerate() {
                    item.validate_schema(&at.index(index), errors);
                }
            }
            fn validate_admission(&self, at: &Path<'_>, errors: &mut Errors) {
                for (index, item) in self.iter().enumerate() {
                    item.validate_admission(&at.index(index), errors);
                }
            }
        }
    )*};
}

list_types!(item_by_item);
item_by_item! {
    [T];
    BTreeSet<T>;
}

macro_rules! entry_by_entry {
    ($($type:ty $(, $state:ident)?;)*) => {$(
        // The API server names an entry as it names a field: `labels.app`.
        impl<K: Display + Eq + Hash + Ord, V: Validate $(, $state: BuildHasher)?> Validate for $type {
            const CHANGES: Changes = V::CHANGES;
            fn validate_schema(&self, at: &Path<'_>, errors: &mut Errors) {
                for (key, value) in self {
                    value.validate_schema(&at.child(&key.to_string()), errors);
                }
            }
            fn validate_admission(&self, at: &Path<'_>, errors: &mut Errors) {
                for (key, value) in self {
                    value.validate_admission(&at.child(&key.to_string()), errors);
                }
            }
            fn validate_update(&self, old: &Self, at: &Path<'_>, errors: &mut Errors) {
                for (key, value) in self {
                    if let Some(old) = old.get(key) {
                        value.validate_update(old, &at.child(&key.to_string()), errors);
                    }
                }
            }
        }
    )*};
}

map_types!(entry_by_entry);
