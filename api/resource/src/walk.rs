//! Which types have nothing inside, and which hold others: one table for validation, defaulting and conversion, so that
//! a container that one of them enters is entered by all.
//!
//! Each macro calls the macro that it is given with the table's rows.

pub(crate) mod kubernetes;

/// Types that are the same in all versions, have nothing to fill in, and whose rules a schema states.
///
/// Types of Kubernetes are validated by the API server, or nested where a schema states their rules.
macro_rules! plain_types {
    ($callback:ident) => {
        $callback! {
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
            $crate::Duration,
            $crate::IntOrString,
            $crate::Quantity,
            $crate::ResourceList,
            $crate::Time,
            k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSON,
            k8s_openapi::apimachinery::pkg::api::resource::Quantity,
            k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime,
            k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
            k8s_openapi::apimachinery::pkg::runtime::RawExtension,
            k8s_openapi::apimachinery::pkg::util::intstr::IntOrString,
        }
        $crate::walk::kubernetes::kubernetes_types! { [$crate::walk::kubernetes::kubernetes_paths] [$callback] }
    };
}

/// Lists whose items can be reached one by one, for reading and for writing.
macro_rules! list_types {
    ($callback:ident) => {
        $callback! {
            Vec<T>;
            std::collections::VecDeque<T>;
            [T; N], N;
        }
    };
}

/// Maps from names to values.
macro_rules! map_types {
    ($callback:ident) => {
        $callback! {
            std::collections::BTreeMap<K, V>;
            std::collections::HashMap<K, V, S>, S;
        }
    };
}

pub(crate) use {list_types, map_types, plain_types};
