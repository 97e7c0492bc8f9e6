//! What the rules ask of a tree, whoever keeps it.

use std::collections::BTreeMap;

use koord_resource::ResourceList;

use crate::Quota;

/// The quotas of a tree. One quota may be listed twice among the children of another, with its amounts before and after
/// a change that is not yet confirmed.
pub trait Quotas<'a>: Copy {
    /// The quota of a name, whatever its namespace.
    fn find(self, name: &str) -> Option<&'a Quota>;

    /// The children of a quota, in the order of their names.
    fn below(self, parent: &str) -> Vec<&'a Quota>;

    /// The quota whose annotation names a namespace.
    fn bound_to(self, namespace: &str) -> Option<&'a str>;
}

/// The sum over quotas of what `amount` gives for each. A quota that is listed twice counts with the larger amounts.
pub fn sum<'q>(
    quotas: impl IntoIterator<Item = &'q Quota>,
    amount: impl Fn(&'q Quota) -> &'q ResourceList,
) -> ResourceList {
    let mut each: BTreeMap<&str, ResourceList> = BTreeMap::new();
    for quota in quotas {
        let amounts = each.entry(&quota.name).or_default();
        *amounts = amounts.max(amount(quota));
    }
    let mut sum = ResourceList::default();
    for amounts in each.values() {
        sum.add(amounts);
    }
    sum
}
