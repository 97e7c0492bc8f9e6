//! Defaulting and normalisation of typed objects.

use std::collections::{BTreeMap, HashMap};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A type that can be brought into its full and normal form; `#[derive(Mutate)]` implements it.
///
/// The order is: constant defaults, computed defaults, the fields' own types, normalisation of fields, normalisation of
/// the whole. Doing it twice changes nothing more, as long as the user's functions behave so.
pub trait Mutate {
    /// Fills in what is absent and normalises what is there.
    fn mutate(&mut self) {}
}

/// Fills in a constant default. A literal that is no value of the type, which tests show, changes nothing.
pub fn default<T: DeserializeOwned>(field: &mut Option<T>, literal: Value) {
    if field.is_none() {
        *field = serde_json::from_value(literal).ok();
    }
}

macro_rules! nothing_to_do {
    ($($type:ty),* $(,)?) => {$(
        impl Mutate for $type {}
    )*};
}

nothing_to_do!(
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
    Value,
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
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition,
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

impl<T: Mutate> Mutate for Vec<T> {
    fn mutate(&mut self) {
        self.iter_mut().for_each(Mutate::mutate);
    }
}

impl<T: Mutate, const N: usize> Mutate for [T; N] {
    fn mutate(&mut self) {
        self.iter_mut().for_each(Mutate::mutate);
    }
}

impl<K, V: Mutate> Mutate for BTreeMap<K, V> {
    fn mutate(&mut self) {
        self.values_mut().for_each(Mutate::mutate);
    }
}

impl<K, V: Mutate, S> Mutate for HashMap<K, V, S> {
    fn mutate(&mut self) {
        self.values_mut().for_each(Mutate::mutate);
    }
}
