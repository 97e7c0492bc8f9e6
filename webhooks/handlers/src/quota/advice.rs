//! What mends a quota that is refused: the field that breaks the rule, and what to do.

use koord_api::quota;
use koord_resource::admission::{Advice, Place};

const fn field(path: &'static str, remedy: &'static str) -> Advice {
    Advice { field: Place::Field(path), remedy }
}

const fn label(name: &'static str, remedy: &'static str) -> Advice {
    Advice { field: Place::Label(name), remedy }
}

const fn annotation(name: &'static str, remedy: &'static str) -> Advice {
    Advice { field: Place::Annotation(name), remedy }
}

pub(crate) const NAME_TAKEN: &Advice =
    &field("metadata.name", "choose another name: quotas have one name in all namespaces, or change the one there is");
pub(crate) const RESERVED: &Advice = &field("metadata.name", "leave it alone: this quota belongs to the scheduler");
pub(crate) const NAMESPACE_TAKEN: &Advice =
    &annotation(quota::NAMESPACES.name(), "take the namespace out of the other quota's annotation first");
pub(crate) const UNKNOWN: &Advice =
    &field("metadata.name", "wait a moment and try again; if it stays, the webhook's cache lags");
pub(crate) const HAS_CHILDREN: &Advice =
    &label(quota::IS_PARENT.name(), "keep it \"true\", or move or delete the quotas below first");
pub(crate) const HAS_PODS: &Advice =
    &label(quota::IS_PARENT.name(), "leave it \"false\", or let the pods of the quota end first");
pub(crate) const TREE_CHANGED: &Advice = &label(
    quota::TREE_ID,
    "leave the tree id as it is; to move a quota to another tree, delete it and create it there",
);
pub(crate) const TREE_DIFFERS: &Advice =
    &label(quota::TREE_ID, "use one tree id for the whole tree; leave the label out and the parent's is taken");
pub(crate) const NO_PARENT: &Advice = &label(quota::PARENT, "create the parent first, or name one that exists");
pub(crate) const PARENT_IS_LEAF: &Advice =
    &label(quota::PARENT, "set the label is-parent=\"true\" on the parent first, or name another parent");
pub(crate) const PARENT_IS_BELOW: &Advice =
    &label(quota::PARENT, "move the new parent out of this quota's subtree first");
pub(crate) const MAX_RESOURCES: &Advice = &field(
    "spec.max",
    "name the same resources as the quotas above and below; to add or drop one in a tree, switch on ElasticQuotaEnableUpdateResourceKey and begin at the top (at the bottom to drop it)",
);
pub(crate) const MIN_RESOURCES: &Advice = &field(
    "spec.min",
    "promise only resources that the quota above promises too, and keep those that quotas below promise",
);
pub(crate) const MIN_ABOVE: &Advice =
    &field("spec.min", "lower this min or that of a brother, or raise the parent's min first");
pub(crate) const MIN_BELOW: &Advice =
    &field("spec.min", "raise this min to the sum of the quotas below, or lower theirs first");
pub(crate) const NOT_GUARANTEED: &Advice = &field(
    "spec.min",
    "wait until the scheduler guarantees more above, raise the min of the tree's root, or lower this min",
);
pub(crate) const NEGATIVE_MAX: &Advice = &field("spec.max", "no amount may be below 0");
pub(crate) const NEGATIVE_MIN: &Advice = &field("spec.min", "no amount may be below 0");
pub(crate) const WEIGHTS: &Advice = &annotation(
    quota::SHARED_WEIGHT.name(),
    "write a JSON object of amounts from 0, such as {\"cpu\":\"4\"}, or leave the annotation out to share like spec.max",
);
pub(crate) const MIN_WITHOUT_MAX: &Advice = &field("spec.max", "bound every resource that is promised");
pub(crate) const MIN_OVER_MAX: &Advice = &field("spec.min", "promise no more than spec.max");
pub(crate) const STRICT_KEYS: &Advice = &annotation(
    quota::MAX_STRICT_CHECK_RESOURCE_KEYS.name(),
    "write a JSON list of resources such as [\"cpu\"], or leave the annotation out",
);
pub(crate) const MAX_BELOW_USED: &Advice = &field(
    "spec.max",
    "keep max at or above status.used, let pods end first, or take the resource out of the annotation max-strict-check-resource-keys",
);
pub(crate) const CHILDREN_LEFT: &Advice = &field("metadata.name", "delete or move the quotas below first");
pub(crate) const PODS_LEFT: &Advice = &field(
    "metadata.name",
    "let the pods end or give them another quota first (label quota.scheduling.koordinator.sh/name)",
);
