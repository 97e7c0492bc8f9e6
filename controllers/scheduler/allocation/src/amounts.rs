//! Amounts of resources by name: thousandths of cores for cpu, whole units of everything else.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::ResourceList;

/// Amounts by the name of the resource. A name with 0 is not the same as no name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceAmounts(BTreeMap<Arc<str>, i64>);

impl ResourceAmounts {
    /// The amount of a resource; 0 without one.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Whether there is an amount of this name, if only 0.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// The amounts that are not 0, by name.
    pub fn positive(&self) -> impl Iterator<Item = (&Arc<str>, i64)> {
        self.iter().filter(|(_, amount)| *amount != 0)
    }

    /// Only the amounts of these names.
    pub fn masked(&self, is_included: impl Fn(&str) -> bool) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(name, _)| is_included(name))
                .map(|(name, amount)| (Arc::clone(name), *amount))
                .collect(),
        )
    }

    /// Adds other amounts.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let sum = self.0.entry(Arc::clone(name)).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    /// The difference to other amounts, of each of these names.
    pub fn minus(&self, other: &Self) -> Self {
        let left = |(name, amount): (&Arc<str>, &i64)| (Arc::clone(name), amount.saturating_sub(other.get(name)));
        Self(self.0.iter().map(left).collect())
    }

    /// What is left without other amounts: of each of these names, at least 0.
    pub fn without(&self, other: &Self) -> Self {
        let left =
            |(name, amount): (&Arc<str>, &i64)| (Arc::clone(name), amount.saturating_sub(other.get(name)).max(0));
        Self(self.0.iter().map(left).collect())
    }
}

impl From<&ResourceList> for ResourceAmounts {
    fn from(list: &ResourceList) -> Self {
        list.iter().map(|(name, amount)| (Arc::from(name), koord_scheduling::count(name, amount))).collect()
    }
}

impl FromIterator<(Arc<str>, i64)> for ResourceAmounts {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, i64)>>(amounts: I) -> Self {
        Self(amounts.into_iter().collect())
    }
}

#[cfg(test)]
pub(crate) fn amounts(pairs: &[(&str, i64)]) -> ResourceAmounts {
    pairs.iter().map(|(name, amount)| (Arc::from(*name), *amount)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_numbers_and_differences_are_never_negative() {
        let list: ResourceList = [("cpu", "1500m"), ("memory", "1Gi"), ("x/y", "0")]
            .map(|(name, text)| (name, text.parse().unwrap()))
            .into_iter()
            .collect();
        let all = ResourceAmounts::from(&list);
        assert_eq!(all, amounts(&[("cpu", 1500), ("memory", 1 << 30), ("x/y", 0)]));
        assert_eq!((all.has("x/y"), all.positive().count()), (true, 2));
        let left = all.without(&amounts(&[("cpu", 2000), ("memory", 24), ("other", 1)]));
        assert_eq!(left, amounts(&[("cpu", 0), ("memory", (1 << 30) - 24), ("x/y", 0)]));
    }
}
