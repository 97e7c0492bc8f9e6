//! Lists of resources, with the arithmetic that quotas and reservations use.

use std::{fmt, slice};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use smol_str::SmolStr;

use super::Quantity;

/// Amounts by resource name, in the order of names: `{"cpu":"4","memory":"8Gi"}`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ResourceList(Vec<(SmolStr, Quantity)>);

impl ResourceList {
    /// No resources.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Quantity> {
        let at = self.find(name).ok()?;
        self.0.get_mut(at).map(|(_, amount)| amount)
    }

    /// The amount of a resource, if it is listed.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        let at = self.find(name).ok()?;
        self.0.get(at).map(|(_, amount)| amount)
    }

    /// The amount of a resource; nothing where it is not listed.
    pub fn amount(&self, name: &str) -> &Quantity {
        const ZERO: &Quantity = &Quantity::ZERO;
        self.get(name).unwrap_or(ZERO)
    }

    /// Lists a resource.
    pub fn insert(&mut self, name: impl Into<SmolStr>, quantity: Quantity) -> Option<Quantity> {
        let name = name.into();
        match self.find(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, quantity)),
            Err(at) => {
                self.0.insert(at, (name, quantity));
                None
            }
        }
    }

    /// Takes a resource off the list.
    pub fn remove(&mut self, name: &str) -> Option<Quantity> {
        let at = self.find(name).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Whether the resource is listed.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_ok()
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
        self.0.iter().all(|(_, amount)| amount.is_zero())
    }

    /// The listed resources in the order of their names.
    pub fn iter(&self) -> Iter<'_> {
        Iter(self.0.iter())
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// The sum over the resources of either list.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// Adds the resources of another list.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            match self.get_mut(name) {
                Some(sum) => *sum += amount,
                None => drop(self.insert(name.clone(), amount.clone())),
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
        for (name, amount) in &other.0 {
            match self.get_mut(name) {
                Some(left) => *left -= amount,
                None => drop(self.insert(name.clone(), -amount.clone())),
            }
        }
    }

    /// The difference, with nothing in place of negative amounts.
    pub fn minus_down_to_zero(&self, other: &Self) -> Self {
        let mut difference = self.minus(other);
        for (_, amount) in difference.0.iter_mut().filter(|(_, amount)| amount.is_negative()) {
            *amount = Quantity::new(0, amount.format());
        }
        difference
    }

    /// The larger amount of each resource of either list.
    pub fn max(&self, other: &Self) -> Self {
        let mut larger = self.clone();
        for (name, amount) in &other.0 {
            match larger.get_mut(name) {
                Some(own) if *own >= *amount => {}
                _ => drop(larger.insert(name.clone(), amount.clone())),
            }
        }
        larger
    }

    /// Only the named resources.
    pub fn only(&self, names: &[impl AsRef<str>]) -> Self {
        names.iter().filter_map(|name| Some(self.0[self.find(name.as_ref()).ok()?].clone())).collect()
    }

    /// Only the resources that the caller wants.
    pub fn filtered(&self, mut wanted: impl FnMut(&str, &Quantity) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, amount)| wanted(name, amount)).cloned().collect())
    }

    /// The same resources with other amounts.
    #[must_use]
    pub fn mapped(&self, mut amount: impl FnMut(&str, &Quantity) -> Quantity) -> Self {
        Self(self.0.iter().map(|(name, known)| (name.clone(), amount(name, known))).collect())
    }

    /// The resources that both lists name and of which this list has more. A resource that `limit` does not
    /// name is unlimited.
    pub fn exceeding<'a>(&'a self, limit: &Self) -> Vec<&'a str> {
        let over = |(name, amount): &(&str, &Quantity)| limit.get(name).is_some_and(|limit| *amount > limit);
        self.iter().filter(over).map(|(name, _)| name).collect()
    }

    /// Whether no resource that both lists name has more here. A resource that `limit` does not name is unlimited.
    pub fn is_within(&self, limit: &Self) -> bool {
        self.exceeding(limit).is_empty()
    }

    /// The resources of which this list has more, where what a list does not name counts as nothing.
    pub fn exceeding_completely(&self, limit: &Self) -> Vec<String> {
        let difference = self.minus(limit);
        difference.iter().filter(|(_, left)| left.signum() > 0).map(|(name, _)| name.to_owned()).collect()
    }
}

/// The resources of a list in the order of their names.
#[derive(Clone, Debug)]
pub struct Iter<'a>(slice::Iter<'a, (SmolStr, Quantity)>);

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a Quantity);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, amount)| (name.as_str(), amount))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a ResourceList {
    type Item = (&'a str, &'a Quantity);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<SmolStr>> FromIterator<(N, Quantity)> for ResourceList {
    /// The last of several amounts of one resource counts.
    fn from_iter<I: IntoIterator<Item = (N, Quantity)>>(resources: I) -> Self {
        let mut list = Self::new();
        for (name, amount) in resources {
            list.insert(name, amount);
        }
        // Lists of nodes and quotas are kept for long.
        list.0.shrink_to_fit();
        list
    }
}

impl fmt::Debug for ResourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl Serialize for ResourceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for ResourceList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amounts;

        impl<'de> Visitor<'de> for Amounts {
            type Value = ResourceList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = ResourceList::new();
                while let Some(Name(name)) = map.next_key()? {
                    list.insert(name, map.next_value()?);
                }
                list.0.shrink_to_fit();
                Ok(list)
            }
        }

        deserializer.deserialize_map(Amounts)
    }
}

/// A key of a list as it is read, without a text in between.
struct Name(SmolStr);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(text.into()))
            }
        }

        deserializer.deserialize_str(Text)
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
    fn resources_are_in_the_order_of_their_names_however_they_came() {
        let mut list = list(r#"{"pods":"3","cpu":"1","kubernetes.io/batch-memory":"2","cpu":"4"}"#);
        assert_eq!(list.insert("memory", Quantity::ZERO), None);
        assert_eq!(list.remove("pods").map(|pods| pods.value()), Some(3));
        assert_eq!(text(&list), r#"{"cpu":"4","kubernetes.io/batch-memory":"2","memory":"0"}"#);
        let collected: ResourceList =
            [("b", Quantity::ZERO), ("a", Quantity::ZERO), ("b", "1".parse().unwrap())].into_iter().collect();
        assert_eq!(
            (text(&collected), collected.names().collect::<Vec<_>>()),
            (r#"{"a":"0","b":"1"}"#.to_owned(), vec!["a", "b"])
        );
        assert!(
            serde_json::from_str::<ResourceList>("[]").is_err_and(|error| error.to_string().contains("expected a map"))
        );
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
