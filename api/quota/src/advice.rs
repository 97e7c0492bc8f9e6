//! What a refused request can do about it: the field that breaks the rule, and how to repair it.

use koord_resource::admission::{Advice, Place};
use koord_types::quota;

const fn field(path: &'static str, remedy: &'static str) -> Advice {
    Advice { field: Place::Field(path), remedy }
}

const fn label(name: &'static str, remedy: &'static str) -> Advice {
    Advice { field: Place::Label(name), remedy }
}

const fn annotation(name: &'static str, remedy: &'static str) -> Advice {
    Advice { field: Place::Annotation(name), remedy }
}

/// A quota of this name exists.
pub const NAME_TAKEN: &Advice =
    &field("metadata.name", "choose another name: quotas have one name in all namespaces, or change the one there is");
/// The quota belongs to the scheduler.
pub const RESERVED: &Advice = &field("metadata.name", "leave it alone: this quota belongs to the scheduler");
/// A namespace belongs to another quota.
pub const NAMESPACE_TAKEN: &Advice =
    &annotation(quota::NAMESPACES.name(), "take the namespace out of the other quota's annotation first");
/// The quota is not known here.
pub const UNKNOWN: &Advice =
    &field("metadata.name", "wait a moment and try again; if it stays, the webhook's cache lags");
/// A parent with children becomes a leaf.
pub const HAS_CHILDREN: &Advice =
    &label(quota::IS_PARENT.name(), "keep it \"true\", or move or delete the quotas below first");
/// A leaf with pods becomes a parent.
pub const HAS_PODS: &Advice =
    &label(quota::IS_PARENT.name(), "leave it \"false\", or delete the pods of the quota first");
/// The tree id changes.
pub const TREE_CHANGED: &Advice = &label(
    quota::TREE_ID,
    "leave the tree id as it is; to move a quota to another tree, delete it and create it there",
);
/// Tree ids differ within a tree.
pub const TREE_DIFFERS: &Advice =
    &label(quota::TREE_ID, "use one tree id for the whole tree; leave the label out and the parent's is taken");
/// The parent does not exist.
pub const NO_PARENT: &Advice = &label(quota::PARENT, "create the parent first, or name one that exists");
/// The parent is a leaf.
pub const PARENT_IS_LEAF: &Advice =
    &label(quota::PARENT, "set the label is-parent=\"true\" on the parent first, or name another parent");
/// The new parent is a descendant.
pub const PARENT_IS_BELOW: &Advice = &label(quota::PARENT, "move the new parent out of this quota's subtree first");
/// The resources of `max` do not fit those above or below.
pub const MAX_RESOURCES: &Advice = &field(
    "spec.max",
    "name the same resources as the quotas above and below; to add or drop one in a tree, switch on ElasticQuotaEnableUpdateResourceKey and begin at the top (at the bottom to drop it)",
);
/// The resources of `min` do not fit those above or below.
pub const MIN_RESOURCES: &Advice = &field(
    "spec.min",
    "promise only resources that the quota above promises too, and keep those that quotas below promise",
);
/// The mins of siblings exceed that of the parent.
pub const MIN_ABOVE: &Advice =
    &field("spec.min", "lower this min or that of a brother, or raise the parent's min first");
/// The mins of children exceed that of the quota.
pub const MIN_BELOW: &Advice =
    &field("spec.min", "raise this min to the sum of the quotas below, or lower theirs first");
/// No ancestor can guarantee the `min`.
pub const NOT_GUARANTEED: &Advice = &field(
    "spec.min",
    "wait until the scheduler guarantees more above, raise the min of the tree's root, or lower this min",
);
/// A negative `max`.
pub const NEGATIVE_MAX: &Advice = &field("spec.max", "no amount may be below 0");
/// A negative `min`.
pub const NEGATIVE_MIN: &Advice = &field("spec.min", "no amount may be below 0");
/// Shared weights that cannot be decoded or are negative.
pub const WEIGHTS: &Advice = &annotation(
    quota::SHARED_WEIGHT.name(),
    "write a JSON object of amounts from 0, such as {\"cpu\":\"4\"}, or leave the annotation out to share like spec.max",
);
/// A resource of `min` has no `max`.
pub const MIN_WITHOUT_MAX: &Advice = &field("spec.max", "bound every resource that is promised");
/// A `min` exceeds its `max`.
pub const MIN_OVER_MAX: &Advice = &field("spec.min", "promise no more than spec.max");
/// The list of resources to check strictly cannot be decoded.
pub const STRICT_KEYS: &Advice = &annotation(
    quota::MAX_STRICT_CHECK_RESOURCE_KEYS.name(),
    "write a JSON list of resources such as [\"cpu\"], or leave the annotation out",
);
/// A `max` is below what is used.
pub const MAX_BELOW_USED: &Advice = &field(
    "spec.max",
    "keep max at or above status.used, let pods end first, or take the resource out of the annotation max-strict-check-resource-keys",
);
/// A quota with children is deleted.
pub const CHILDREN_LEFT: &Advice = &field("metadata.name", "delete or move the quotas below first");
/// A quota with pods is deleted.
pub const PODS_LEFT: &Advice = &field(
    "metadata.name",
    "let the pods end or give them another quota first (label quota.scheduling.koordinator.sh/name)",
);
