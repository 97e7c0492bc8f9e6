//! Which quota a pod belongs to.

use koord_resource::admission::Request;
use koord_runtime::cache::Cache;
use koord_types::quota::{DEFAULT_QUOTA, NAME};

use super::{Parts, PodView};
use crate::quota::CachedQuota;

/// The pod's quota: named by its label, else with the name of the namespace and in it, else bound to the namespace, else
/// the default. Empty where only the label counts and there is none.
pub(super) fn quota_of(
    pod: &Parts<'_>,
    request: &Request<'_>,
    view: PodView<'_>,
    quotas: &Cache<CachedQuota>,
) -> String {
    let namespace = if pod.metadata.namespace.is_empty() { &request.namespace } else { &pod.metadata.namespace };
    let label = pod.metadata.labels.get(NAME).filter(|name| !name.is_empty());
    match label {
        Some(name) => name.to_owned(),
        None if view.switches.disable_default_quota => String::new(),
        None if quotas.get(&format!("{namespace}/{namespace}")).is_some() => namespace.clone().into_owned(),
        None => quotas.index().bound_to(namespace).map_or(DEFAULT_QUOTA, |key| key.name()).to_owned(),
    }
}
