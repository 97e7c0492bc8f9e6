//! Validation of typed objects, in three parts: what the schema says, what only admission says, and what may change.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    fmt::Display,
    rc::Rc,
    sync::Arc,
};

use koord_schema::field::{Errors, Path};

/// A type that knows what its values may be; `#[derive(Validate)]` implements it.
///
/// The API server enforces the rules of the schema before a webhook is called, so a webhook asks only for
/// [`admission`](Self::validate_admission) and [`update`](Self::validate_update). Tests, linters and readers of
/// ConfigMaps ask for all with [`validate`](Self::validate).
pub trait Validate {
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

macro_rules! no_rules {
    ($($type:ty),* $(,)?) => {$(
        impl Validate for $type {}
    )*};
}

// Types of Kubernetes are validated by the API server, or nested where a schema states their rules.
no_rules!(
    bool,
    i8,
    i16,
    i32,
    i64,
    isize,
    u8,
    u16,
    u32,
    u64,
    usize,
    f32,
    f64,
    char,
    String,
    serde_json::Value,
    serde_json::value::RawValue,
    crate::Duration,
    crate::IntOrString,
    crate::Quantity,
    crate::ResourceList,
    k8s_openapi::api::core::v1::LocalObjectReference,
    k8s_openapi::api::core::v1::NodeSelectorRequirement,
    k8s_openapi::api::core::v1::NodeSelectorTerm,
    k8s_openapi::api::core::v1::ObjectReference,
    k8s_openapi::api::core::v1::PodTemplateSpec,
    k8s_openapi::api::core::v1::ResourceClaim,
    k8s_openapi::api::core::v1::ResourceRequirements,
    k8s_openapi::api::core::v1::SecretKeySelector,
    k8s_openapi::api::core::v1::Taint,
    k8s_openapi::api::core::v1::Toleration,
    k8s_openapi::apimachinery::pkg::api::resource::Quantity,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Preconditions,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
    k8s_openapi::apimachinery::pkg::runtime::RawExtension,
    k8s_openapi::apimachinery::pkg::util::intstr::IntOrString,
);

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

macro_rules! lists {
    ($($type:ty $(, $size:ident)?;)*) => {$(
        // Items of a list have no identity by which an old one could be found, so that changes are not followed here.
        impl<T: Validate $(, const $size: usize)?> Validate for $type {
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

lists! {
    [T];
    Vec<T>;
    VecDeque<T>;
    BTreeSet<T>;
    [T; N], N;
}

macro_rules! maps {
    ($($type:ty $(, $state:ident)?;)*) => {$(
        impl<K: Display, V: Validate $(, $state)?> Validate for $type {
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
        }
    )*};
}

// The API server names an entry as it names a field: `labels.app`.
maps! {
    BTreeMap<K, V>;
    HashMap<K, V, S>, S;
}
