//! Lists of resources, with the arithmetic that quotas and reservations use.

use std::collections::{BTreeMap, btree_map};

use serde::{Deserialize, Serialize};

use super::Quantity;

/// Amounts by resource name, in the order of names: `{"cpu":"4","memory":"8Gi"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceList(BTreeMap<String, Quantity>);

impl ResourceList {
    /// No resources.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The amount of a resource, if it is listed.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.get(name)
    }

    /// The amount of a resource; nothing where it is not listed.
    pub fn amount(&self, name: &str) -> &Quantity {
        const ZERO: &Quantity = &Quantity::ZERO;
        self.0.get(name).unwrap_or(ZERO)
    }

    /// Lists a resource.
    pub fn insert(&mut self, name: impl Into<String>, quantity: Quantity) -> Option<Quantity> {
        self.0.insert(name.into(), quantity)
    }

    /// Takes a resource off the list.
    pub fn remove(&mut self, name: &str) -> Option<Quantity> {
        self.0.remove(name)
    }

    /// Whether the resource is listed.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// How many resources are listed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no resource is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every listed amount is nothing.
    pub fn is_zero(&self) -> bool {
        self.0.values().all(Quantity::is_zero)
    }

    /// The listed resources in the order of their names.
    pub fn iter(&self) -> btree_map::Iter<'_, String, Quantity> {
        self.0.iter()
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The sum over the resources of either list.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// Adds the resources of another list.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other {
            match self.0.get_mut(name) {
                Some(sum) => *sum += amount,
                None => drop(self.0.insert(name.clone(), amount.clone())),
            }
        }
    }

    /// The difference; a resource that only `other` lists becomes negative.
    pub fn minus(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.subtract(other);
        difference
    }

    /// Subtracts the resources of another list; one that only that lists becomes negative.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in other {
            match self.0.get_mut(name) {
                Some(left) => *left -= amount,
                None => drop(self.0.insert(name.clone(), -amount.clone())),
            }
        }
    }

    /// The difference, with nothing in place of negative amounts.
    pub fn minus_down_to_zero(&self, other: &Self) -> Self {
        let mut difference = self.minus(other);
        for amount in difference.0.values_mut().filter(|amount| amount.is_negative()) {
            *amount = Quantity::new(0, amount.format());
        }
        difference
    }

    /// The larger amount of each resource of either list.
    pub fn max(&self, other: &Self) -> Self {
        let mut larger = self.clone();
        for (name, amount) in other {
            match larger.0.get_mut(name) {
                Some(own) if *own >= *amount => {}
                _ => drop(larger.0.insert(name.clone(), amount.clone())),
            }
        }
        larger
    }

    /// Only the named resources.
    pub fn only(&self, names: &[impl AsRef<str>]) -> Self {
        names.iter().filter_map(|name| self.0.get_key_value(name.as_ref())).collect()
    }

    /// The resources that both lists name and of which this list has more. A resource that `limit` does not
    /// name is unlimited.
    pub fn exceeding<'a>(&'a self, limit: &Self) -> Vec<&'a str> {
        let over = |(name, amount): &(&String, &Quantity)| limit.get(name).is_some_and(|limit| *amount > limit);
        self.0.iter().filter(over).map(|(name, _)| name.as_str()).collect()
    }

    /// Whether no resource that both lists name has more here. A resource that `limit` does not name is unlimited.
    pub fn is_within(&self, limit: &Self) -> bool {
        self.exceeding(limit).is_empty()
    }

    /// The resources of which this list has more, where what a list does not name counts as nothing.
    pub fn exceeding_completely(&self, limit: &Self) -> Vec<String> {
        let difference = self.minus(limit);
        difference.0.into_iter().filter(|(_, left)| left.signum() > 0).map(|(name, _)| name).collect()
    }
}

impl<'a> IntoIterator for &'a ResourceList {
    type Item = (&'a String, &'a Quantity);
    type IntoIter = btree_map::Iter<'a, String, Quantity>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<String>> FromIterator<(N, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (N, Quantity)>>(resources: I) -> Self {
        Self(resources.into_iter().map(|(name, amount)| (name.into(), amount)).collect())
    }
}

impl<'a> FromIterator<(&'a String, &'a Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (&'a String, &'a Quantity)>>(resources: I) -> Self {
        Self(resources.into_iter().map(|(name, amount)| (name.clone(), amount.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(json: &str) -> ResourceList {
        serde_json::from_str(json).unwrap()
    }

    fn text(list: &ResourceList) -> String {
        serde_json::to_string(list).unwrap()
    }

    #[test]
    fn sums_and_maxima_cover_both_lists() {
        let (a, b) = (list(r#"{"cpu":"1","memory":"1Gi"}"#), list(r#"{"cpu":"500m","pods":"3"}"#));
        assert_eq!(text(&a.plus(&b)), r#"{"cpu":"1500m","memory":"1Gi","pods":"3"}"#);
        assert_eq!(text(&a.max(&b)), r#"{"cpu":"1","memory":"1Gi","pods":"3"}"#);
    }

    #[test]
    fn what_only_the_subtrahend_lists_becomes_negative() {
        let (a, b) = (list(r#"{"cpu":"1"}"#), list(r#"{"cpu":"500m","pods":"3"}"#));
        assert_eq!(text(&a.minus(&b)), r#"{"cpu":"500m","pods":"-3"}"#);
        assert_eq!(text(&a.minus_down_to_zero(&b)), r#"{"cpu":"500m","pods":"0"}"#);
    }

    #[test]
    fn a_limit_binds_only_what_it_names_unless_completely() {
        let (used, limit) = (list(r#"{"cpu":"2","memory":"1Gi"}"#), list(r#"{"cpu":"2"}"#));
        assert!(used.is_within(&limit));
        assert_eq!(used.exceeding(&list(r#"{"cpu":"1999m"}"#)), ["cpu"]);
        assert_eq!(used.exceeding_completely(&limit), ["memory"]);
        assert_eq!(limit.exceeding_completely(&used), Vec::<String>::new());
    }
}
