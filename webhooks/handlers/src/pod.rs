//! Pods: what handlers read of them, borrowed from the request, and the handlers that change and check them.

pub(crate) mod charge;
pub mod mutate;
mod quota_of;
mod requests;
pub mod validate;
pub mod validate_binding;
mod view;
mod warnings;

use koord_profile::{NamespaceLabels, Profile};
use koord_runtime::store::Store;
pub(crate) use requests::request_of;
pub(crate) use view::{Container, Parts, Pod};

use crate::{
    priority_class::PriorityClassValue,
    quota::{CachedQuota, QuotaProfile},
    settings::ObjectName,
    switches::Switches,
};

/// The caches and switches of decisions about pods.
#[derive(Clone, Copy)]
pub struct PodView<'c> {
    pub(crate) profiles: &'c Store<Profile>,
    pub(crate) namespaces: &'c Store<NamespaceLabels>,
    pub(crate) priority_classes: &'c Store<PriorityClassValue>,
    pub(crate) quotas: &'c Store<CachedQuota>,
    pub(crate) quota_profiles: &'c Store<QuotaProfile>,
    pub(crate) required_labels: &'c Store<validate::RequiredLabels>,
    /// The ConfigMap with the labels that pods must have.
    pub(crate) required_labels_name: &'c ObjectName,
    pub(crate) switches: &'c Switches,
    /// Whether users are warned about what has no effect.
    pub(crate) warns: bool,
}
