//! The pods that the arguments of a strategy choose.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_config::descheduler::Namespaces;
use koord_descheduler_framework::{NamespaceSelection, Pass, Pod, PodId, PodSelection, ReasonCode, Refusal};

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

/// Whether a strategy for pods that have not ended looks at a pod.
pub(crate) fn check_active(selection: &PodSelection, pod: &Pod) -> Result<(), Refusal> {
    selection.check(pod)?;
    if pod.is_active() {
        Ok(())
    } else {
        Err(Refusal::new(ReasonCode::NotInState).with("phase", pod.state.phase.as_str()))
    }
}

/// Whether filters and limits let a candidate be evicted. What takes longest is asked last.
pub(crate) fn may_be_evicted(pass: &mut Pass<'_>, id: PodId) -> bool {
    pass.filter(id) && pass.within_limits(id) && pass.pre_eviction_filter(id)
}
