//! Resource names as small numbers, and amounts of resources as vectors over them.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::{Quantity, ResourceList, quantity::Format};
use smallvec::SmallVec;

/// The number of a resource's name in a [`ResourceNames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(u16);

/// Names of resources, each with a number. Numbers are given in the order in which names are met and never change.
///
/// There is no global table: whoever owns nodes and pods owns the names too, so that tests and simulations do not meet.
#[derive(Clone, Debug)]
pub struct ResourceNames {
    names: Vec<Arc<str>>,
    ids: BTreeMap<Arc<str>, ResourceId>,
}

impl ResourceId {
    /// `cpu`, in thousandths of cores.
    pub const CPU: Self = Self(0);
    /// `memory`, in bytes.
    pub const MEMORY: Self = Self(1);
    /// `ephemeral-storage`, in bytes.
    pub const EPHEMERAL_STORAGE: Self = Self(2);
    /// `pods`.
    pub const PODS: Self = Self(3);

    /// The position in a [`ResourceVector`].
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for ResourceNames {
    /// The names that have a constant in [`ResourceId`].
    fn default() -> Self {
        let mut names = Self { names: Vec::new(), ids: BTreeMap::new() };
        for name in ["cpu", "memory", "ephemeral-storage", "pods"] {
            names.intern(name);
        }
        names
    }
}

impl ResourceNames {
    /// More names than any cluster has; vectors would grow with them.
    pub const NAMES_MAX: usize = 4096;

    /// The number of a name, which is given one if it has none; none where there are too many names.
    pub fn intern(&mut self, name: &str) -> Option<ResourceId> {
        if let Some(id) = self.ids.get(name) {
            return Some(*id);
        }
        let next = u16::try_from(self.names.len()).ok().filter(|_| !self.is_full())?;
        let (name, id) = (Arc::<str>::from(name), ResourceId(next));
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        Some(id)
    }

    /// The number of a name that is known.
    pub fn get(&self, name: &str) -> Option<ResourceId> {
        self.ids.get(name).copied()
    }

    /// The name of a number that this table gave.
    pub fn name(&self, id: ResourceId) -> &str {
        self.names.get(id.index()).map_or("", |name| name)
    }

    /// All names, by number.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// How many names are known.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no further name gets a number.
    pub fn is_full(&self) -> bool {
        self.names.len() >= Self::NAMES_MAX
    }

    /// Whether no name is known, which is never so.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The amounts of a list as a vector. Amounts are rounded up. Every name gets a number; those beyond [`Self::NAMES_MAX`] are left
    /// out. It is for lists that the cluster's nodes write, not for those of users, who may write any name.
    pub fn vector(&mut self, list: &ResourceList) -> ResourceVector {
        for (name, _) in list {
            self.intern(name);
        }
        self.known(list)
    }

    /// The amounts of a list as a vector. Amounts are rounded up, and names without a number are left out.
    pub fn known(&self, list: &ResourceList) -> ResourceVector {
        let mut vector = ResourceVector::default();
        for (name, amount) in list {
            if let Some(id) = self.get(name) {
                vector.set(id, count(name, amount));
            }
        }
        vector
    }

    /// A vector as a list of the amounts that are not 0.
    pub fn list(&self, vector: &ResourceVector) -> ResourceList {
        let amount = |(id, amount)| {
            let name = self.name(id);
            (name, quantity(name, amount, Format::DecimalSI))
        };
        vector.iter().map(amount).collect()
    }
}

/// The amount of a resource as a number, rounded up: thousandths of cores for CPU, whole units for everything else.
pub fn count(resource: &str, amount: &Quantity) -> i64 {
    if resource == "cpu" { amount.milli_value() } else { amount.value() }
}

/// The inverse of [`count`].
pub fn quantity(resource: &str, count: i64, format: Format) -> Quantity {
    if resource == "cpu" { Quantity::cpu_milli(count) } else { Quantity::new(count, format) }
}

/// Amounts of resources by [`ResourceId`]; what is not set is 0. Arithmetic saturates.
#[derive(Clone, Debug, Default)]
pub struct ResourceVector(SmallVec<[i64; 4]>);

impl ResourceVector {
    /// The amount of a resource.
    #[inline]
    pub fn get(&self, id: ResourceId) -> i64 {
        self.0.get(id.index()).copied().unwrap_or(0)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, id: ResourceId, amount: i64) {
        if id.index() >= self.0.len() {
            self.0.resize(id.index() + 1, 0);
        }
        self.0[id.index()] = amount;
    }

    /// Above the position of every amount that is not 0.
    pub fn width(&self) -> usize {
        self.0.iter().rposition(|amount| *amount != 0).map_or(0, |last| last + 1)
    }

    /// The resources whose amount is not 0, by number.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, i64)> + '_ {
        (0..).map(ResourceId).zip(self.0.iter().copied()).filter(|(_, amount)| *amount != 0)
    }

    /// Adds another vector.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Subtracts another vector; amounts may become negative.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    /// Takes the larger amount of each resource.
    pub fn maximise(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    /// Takes the smaller amount of each resource.
    pub fn minimise(&mut self, other: &Self) {
        self.combine(other, i64::min);
    }

    /// The first resource that is requested and of which the free amount is too small; none where everything fits. A
    /// request of 0 fits even where less than nothing is free.
    pub fn exceeding(&self, free: &Self) -> Option<ResourceId> {
        self.iter().find(|(id, amount)| *amount > 0 && *amount > free.get(*id)).map(|(id, _)| id)
    }

    fn combine(&mut self, other: &Self, operation: impl Fn(i64, i64) -> i64) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (index, amount) in self.0.iter_mut().enumerate() {
            *amount = operation(*amount, other.0.get(index).copied().unwrap_or(0));
        }
    }
}

/// Trailing zeros mean nothing.
impl PartialEq for ResourceVector {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ResourceVector {}

impl crate::Amounts for ResourceVector {
    fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    fn larger(mut self, other: Self) -> Self {
        self.maximise(&other);
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_have_the_numbers_of_their_order() {
        let mut names = ResourceNames::default();
        assert_eq!((names.get("cpu"), names.get("pods")), (Some(ResourceId::CPU), Some(ResourceId::PODS)));
        let gpu = names.intern("koordinator.sh/gpu").unwrap();
        assert_eq!(
            (gpu.index(), names.intern("koordinator.sh/gpu"), names.name(gpu)),
            (4, Some(gpu), "koordinator.sh/gpu")
        );
        for number in 0..ResourceNames::NAMES_MAX {
            names.intern(&format!("example.com/{number}"));
        }
        assert_eq!((names.len(), names.intern("one/more")), (ResourceNames::NAMES_MAX, None));
    }

    #[test]
    fn cpu_is_counted_in_thousandths_and_everything_is_rounded_up() {
        let mut names = ResourceNames::default();
        let list: ResourceList = [("cpu", "1500u"), ("memory", "1500m"), ("example.com/x", "2k")]
            .map(|(name, text)| (name, text.parse().unwrap()))
            .into_iter()
            .collect();
        let vector = names.vector(&list);
        let example = names.get("example.com/x").unwrap();
        assert_eq!([ResourceId::CPU, ResourceId::MEMORY, example].map(|id| vector.get(id)), [2, 2, 2000]);
        assert_eq!(names.list(&vector).amount("cpu").to_string(), "2m");
        assert_eq!(ResourceNames::default().known(&list).get(example), 0, "a name without a number is left out");
    }

    fn vector() -> impl Strategy<Value = ResourceVector> {
        proptest::collection::vec(any::<i64>(), 0..7).prop_map(|amounts| ResourceVector(amounts.into()))
    }

    proptest! {
        #[test]
        fn vectors_compare_and_combine_resource_by_resource(a in vector(), b in vector()) {
            let combined = |operation: fn(&mut ResourceVector, &ResourceVector)| { let mut out = a.clone(); operation(&mut out, &b); out };
            for index in 0..8 {
                let id = ResourceId(index);
                let (x, y) = (a.get(id), b.get(id));
                prop_assert_eq!(combined(ResourceVector::add).get(id), x.saturating_add(y));
                prop_assert_eq!(combined(ResourceVector::subtract).get(id), x.saturating_sub(y));
                prop_assert_eq!(combined(ResourceVector::maximise).get(id), x.max(y));
                prop_assert_eq!(combined(ResourceVector::minimise).get(id), x.min(y));
            }
            let fits = (0..8).map(ResourceId).all(|id| a.get(id) <= 0 || a.get(id) <= b.get(id));
            prop_assert_eq!(a.exceeding(&b).is_none(), fits);
            prop_assert_eq!(a == b, (0..8).map(ResourceId).all(|id| a.get(id) == b.get(id)));
        }
    }
}
