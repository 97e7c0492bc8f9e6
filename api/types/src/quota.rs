//! What ElasticQuotas and pods say about the quota tree.

use koord_resource::ResourceList;

use crate::protocol::{Flag, Key};

/// Name of the quota that every tree begins with. It cannot be changed.
pub const ROOT_QUOTA: &str = "koordinator-root-quota";
/// Name of the quota of pods in the namespaces of the system. It cannot be changed.
pub const SYSTEM_QUOTA: &str = "koordinator-system-quota";
/// Name of the quota of pods that name none.
pub const DEFAULT_QUOTA: &str = "koordinator-default-quota";

/// Label: whether the quota has others below it.
pub const IS_PARENT: Flag = Flag::new("quota.scheduling.koordinator.sh/is-parent");
/// Label: the quota above.
pub const PARENT: &str = "quota.scheduling.koordinator.sh/parent";
/// Label: whether others may use what the quota does not. Only `false` forbids it.
pub const ALLOW_LENT_RESOURCE: Flag = Flag::new("quota.scheduling.koordinator.sh/allow-lent-resource");
/// Label: the quota of a pod.
pub const NAME: &str = "quota.scheduling.koordinator.sh/name";
/// Label: the profile that made the quota.
pub const PROFILE: &str = "quota.scheduling.koordinator.sh/profile";
/// Label: whether the quota begins a tree.
pub const IS_ROOT: Flag = Flag::new("quota.scheduling.koordinator.sh/is-root");
/// Label: the tree.
pub const TREE_ID: &str = "quota.scheduling.koordinator.sh/tree-id";
/// Label: whether nodes of the tree stay out of the default tree.
pub const IGNORE_DEFAULT_TREE: Flag = Flag::new("quota.scheduling.koordinator.sh/ignore-default-tree");
/// Label: whether a pod gives way to others of its quota. Only `false` forbids it.
pub const PREEMPTIBLE: Flag = Flag::new("quota.scheduling.koordinator.sh/preemptible");
/// Label: whether a change is admitted that breaks a promise.
pub const ALLOW_FORCE_UPDATE: Flag = Flag::new("quota.scheduling.koordinator.sh/allow-force-update");

const RESOURCES: &str = r#"a JSON object such as {"cpu":"4","memory":"8Gi"}"#;
const NAMES: &str = r#"a JSON list such as ["cpu","memory"]"#;

/// Annotation: in which proportion what is idle is shared.
pub const SHARED_WEIGHT: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/shared-weight", RESOURCES);
/// Annotation: how much the quota may use at the moment.
pub const RUNTIME: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/runtime", RESOURCES);
/// Annotation: what its pods request together.
pub const REQUEST: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/request", RESOURCES);
/// Annotation: what the quotas below request together.
pub const CHILD_REQUEST: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/child-request", RESOURCES);
/// Annotation: which resources the profile counts.
pub const RESOURCE_KEYS: Key<Vec<String>> = Key::new("quota.scheduling.koordinator.sh/resource-keys", NAMES);
/// Annotation: how much the tree has.
pub const TOTAL_RESOURCE: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/total-resource", RESOURCES);
/// Annotation: how much of it lies on nodes that take no pods.
pub const UNSCHEDULABLE_RESOURCE: Key<ResourceList> =
    Key::new("quota.scheduling.koordinator.sh/unschedulable-resource", RESOURCES);
/// Annotation: namespaces whose pods belong to the quota.
pub const NAMESPACES: Key<Vec<String>> =
    Key::new("quota.scheduling.koordinator.sh/namespaces", r#"a JSON list such as ["team-a"]"#);
/// Annotation: how much the quota is sure to get.
pub const GUARANTEED: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/guaranteed", RESOURCES);
/// Annotation: how much its pods have.
pub const ALLOCATED: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/allocated", RESOURCES);
/// Annotation: what its pods request that do not give way.
pub const NON_PREEMPTIBLE_REQUEST: Key<ResourceList> =
    Key::new("quota.scheduling.koordinator.sh/non-preemptible-request", RESOURCES);
/// Annotation: what its pods have that do not give way.
pub const NON_PREEMPTIBLE_USED: Key<ResourceList> =
    Key::new("quota.scheduling.koordinator.sh/non-preemptible-used", RESOURCES);
/// Annotation: how much pods may request when they are created. A resource that it does not list is unlimited.
pub const ADMISSION: Key<ResourceList> = Key::new("quota.scheduling.koordinator.sh/admission", RESOURCES);
/// Annotation: resources of which the quotas below may not have more than the quota above.
pub const MAX_STRICT_CHECK_RESOURCE_KEYS: Key<Vec<String>> =
    Key::new("quota.scheduling.koordinator.sh/max-strict-check-resource-keys", NAMES);

/// Whether a quota's name belongs to the scheduler, so that nobody may change it.
pub fn is_reserved(name: &str) -> bool {
    matches!(name, ROOT_QUOTA | SYSTEM_QUOTA)
}

/// The tree of a profile: the decimal FNV-1a hash of its namespace and name.
pub fn tree_id(namespace: &str, name: &str) -> String {
    let bytes = [namespace.as_bytes(), b"/", name.as_bytes()].concat();
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    hash.to_string()
}

#[cfg(test)]
mod tests {
    use koord_resource::{Quantity, quantity::Format};
    use proptest::{collection::btree_map, prelude::*};

    use super::*;
    use crate::protocol::laws::{keeps_values, reads_any_text};

    #[test]
    fn every_key_reads_any_text() {
        let lists = [&SHARED_WEIGHT, &RUNTIME, &REQUEST, &CHILD_REQUEST, &TOTAL_RESOURCE, &UNSCHEDULABLE_RESOURCE];
        let more = [&GUARANTEED, &ALLOCATED, &NON_PREEMPTIBLE_REQUEST, &NON_PREEMPTIBLE_USED, &ADMISSION];
        for key in lists.into_iter().chain(more) {
            reads_any_text(key);
        }
        for key in [&RESOURCE_KEYS, &NAMESPACES, &MAX_STRICT_CHECK_RESOURCE_KEYS] {
            reads_any_text(key);
        }
    }

    #[test]
    fn values_survive() {
        // Decimal amounts: a binary one that is no multiple of 1024 is written as plain digits and read as decimal.
        let amount = |value| Quantity::new(value, Format::DecimalSI);
        let amounts = btree_map("[a-z./\\-]{1,10}", any::<i64>(), 0..4).prop_map(move |amounts| {
            amounts.into_iter().map(|(name, value)| (name, amount(value))).collect::<ResourceList>()
        });
        keeps_values(&RUNTIME, amounts);
        keeps_values(&NAMESPACES, proptest::collection::vec("[a-z-]{1,10}", 0..4));
    }

    #[test]
    fn tree_ids_are_fnv_hashes() {
        assert_eq!(tree_id("", "profile1"), "2862972692226656278");
        assert_eq!(tree_id("", "profile2"), "2862971592715028067");
        assert_eq!(tree_id("default", "profile1"), "3288849408605801223");
        assert_eq!(tree_id("kube-system", "p"), "14173809139698806377");
    }
}
