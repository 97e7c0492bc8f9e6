//! By what a pod finds its quota (`spec/scheduler.md` 3D.1).

use std::{borrow::Cow, sync::Arc};

use koord_resource::ResourceList;
use koord_scheduler_framework::pod::Template;
use koord_types::quota;

use super::QuotaSettings;

/// What pods of one quota have in common: pods with equal claims belong to the same quota, whichever it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The quota that the label names; empty where there is none.
    pub label: Arc<str>,
    pub namespace: Arc<str>,
}

impl Claim {
    /// The claim of the pods of a template.
    pub fn of(template: &Template) -> Self {
        let label = template.labels.get(quota::NAME).unwrap_or_default();
        Self { label: label.into(), namespace: Arc::clone(&template.namespace) }
    }
}

/// What a pod of the template requests of its quota.
pub(super) fn requests<'t>(template: &'t Template, settings: &QuotaSettings) -> Cow<'t, ResourceList> {
    if settings.counts_overhead || template.overhead.is_empty() {
        return Cow::Borrowed(&template.requests);
    }
    let without = template.requests.minus(&template.overhead);
    Cow::Owned(without.filtered(|_, amount| !amount.is_zero()))
}

/// Whether pods of the template give way to others of their quota.
pub fn is_preemptible(template: &Template) -> bool {
    template.labels.get(quota::PREEMPTIBLE.name()) != Some("false")
}
