//! The pods that the arguments of a strategy choose.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_config::descheduler::Namespaces;
use koord_descheduler_framework::{NamespaceSelection, PodSelection};

use crate::ArgsError;

/// The namespaces of `namespaces` or `evictableNamespaces`.
pub(crate) fn namespaces(namespaces: Option<&Namespaces>) -> NamespaceSelection {
    namespaces.map_or_else(NamespaceSelection::default, |named| NamespaceSelection::new(&named.include, &named.exclude))
}

/// The pods of `namespaces` and `labelSelector`.
pub(crate) fn pods(named: Option<&Namespaces>, labels: Option<&LabelSelector>) -> Result<PodSelection, ArgsError> {
    PodSelection::new(namespaces(named), labels)
        .map_err(|error| ArgsError::Selector { field: "labelSelector", error: error.to_string() })
}
