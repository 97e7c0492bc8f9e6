//! The resources that are compared.

use std::collections::BTreeSet;

use koord_resource::ResourceList;
use koord_scheduling::count;
use smallvec::SmallVec;

/// Amounts, one per dimension: thousandths of cores for cpu, whole units for everything else.
pub type Amounts = SmallVec<[i64; 4]>;

/// The resources that are compared, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dimensions(Box<[Box<str>]>);

impl Dimensions {
    /// These resources, and cpu and memory.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = ["cpu", "memory"].into_iter().chain(names).collect();
        Self(names.into_iter().map(Into::into).collect())
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// The name of a dimension.
    pub fn name(&self, index: usize) -> &str {
        self.0.get(index).map_or("", |name| name)
    }

    /// What `amount` gives for each dimension.
    pub fn each(&self, amount: impl FnMut(&str) -> i64) -> Amounts {
        self.names().map(amount).collect()
    }

    /// Nothing of each.
    pub fn zero(&self) -> Amounts {
        Amounts::from_elem(0, self.0.len())
    }

    /// The amounts of a list.
    pub fn list(&self, amounts: &ResourceList) -> Amounts {
        self.each(|name| count(name, amounts.amount(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_in_the_order_of_their_names() {
        let dimensions = Dimensions::of(["nvidia.com/gpu", "memory", "example.com/x"]);
        assert_eq!(dimensions.names().collect::<Vec<_>>(), ["cpu", "example.com/x", "memory", "nvidia.com/gpu"]);
        let list = [("cpu", "1500m"), ("memory", "1Ki"), ("pods", "7")];
        let list = list.into_iter().map(|(name, text)| (name, text.parse().unwrap())).collect();
        assert_eq!(dimensions.list(&list)[..], [1500, 0, 1024, 0]);
        assert_eq!((dimensions.name(2), dimensions.name(4)), ("memory", ""));
    }
}
