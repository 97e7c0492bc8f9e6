//! How what a quota may use is divided among its children (`spec/scheduler.md` 3D.3 to 3D.5).

use std::sync::Arc;

use koord_quota::{Child, Quota, redistribute, scaled_min};
use koord_resource::{ResourceList, quantity::Format};
use koord_scheduling::{count, quantity};
use parking_lot::Mutex;

/// A child with what it requests of its parent.
pub(super) struct Claimant<'a> {
    pub(super) quota: &'a Quota,
    pub(super) request: ResourceList,
    /// What it is guaranteed beyond its `min`; none where nothing is.
    pub(super) guaranteed: Option<&'a ResourceList>,
}

/// How what a quota may use was divided last. What changes about a child is set right in it.
#[derive(Debug, Default)]
pub(super) struct Division(Mutex<Option<Table>>);

/// The children of a quota in numbers.
#[derive(Debug)]
struct Table {
    /// The names of all children, in order.
    names: Vec<Arc<str>>,
    columns: Vec<Column>,
    /// What was divided last; none where a child has changed since.
    divided: Option<ResourceList>,
}

/// One resource that is divided.
#[derive(Debug)]
struct Column {
    resource: String,
    children: Vec<Entry>,
    /// What each child may use.
    runtimes: Vec<i64>,
}

/// A child, in amounts of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    request: i64,
    min: i64,
    guaranteed: i64,
    weight: i64,
    lends: bool,
    /// Whether its `max` names the resource.
    is_bound: bool,
}

// === impl Division ===

impl Clone for Division {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Division {
    /// A child requests something else, or is guaranteed it.
    pub(super) fn renew<'a>(&mut self, child: &str, claimant: impl FnOnce() -> Claimant<'a>) {
        if let Some(table) = self.0.get_mut() {
            table.renew(child, &claimant());
        }
    }

    /// What a child may use of a total, of the resources that its `max` names. A resource that the total does not name is not there, but
    /// mins are not scaled by that.
    pub(super) fn of<'a>(
        &self,
        child: &str,
        total: &ResourceList,
        scales_min: bool,
        children: impl FnOnce() -> (Vec<&'a str>, Vec<Claimant<'a>>),
    ) -> ResourceList {
        let mut known = self.0.lock();
        let table = known.get_or_insert_with(|| {
            let (resources, mut claimants) = children();
            Table::of(&resources, &mut claimants)
        });
        if table.divided.as_ref() != Some(total) {
            table.divide(total, scales_min);
        }
        table.runtime(child)
    }
}

// === impl Table ===

impl Table {
    fn of(resources: &[&str], claimants: &mut [Claimant<'_>]) -> Self {
        claimants.sort_by_key(|claimant| claimant.quota.name.as_str());
        let column = |resource: &&str| Column {
            resource: (*resource).to_owned(),
            children: claimants.iter().map(|claimant| claimant.entry(resource)).collect(),
            runtimes: Vec::new(),
        };
        let columns = resources.iter().map(column).collect();
        let names = claimants.iter().map(|claimant| claimant.quota.name.as_str().into()).collect();
        Self { names, columns, divided: None }
    }

    fn place(&self, child: &str) -> Option<usize> {
        self.names.binary_search_by(|name| (**name).cmp(child)).ok()
    }

    fn renew(&mut self, child: &str, claimant: &Claimant<'_>) {
        let Some(place) = self.place(child) else { return };
        for column in &mut self.columns {
            let entry = claimant.entry(&column.resource);
            if let Some(known) = column.children.get_mut(place).filter(|known| **known != entry) {
                *known = entry;
                self.divided = None;
            }
        }
    }

    fn divide(&mut self, total: &ResourceList, scales_min: bool) {
        let Self { names, columns, divided } = self;
        for Column { resource, children, runtimes } in columns {
            let mins = children.iter().fold(0_i64, |sum, child| sum.saturating_add(child.min));
            let all = count(resource, total.amount(resource));
            let is_scaled = scales_min && total.contains(resource);
            let min = |min: i64| if is_scaled { scaled_min(min, all, mins, 0) } else { min };
            let children = names.iter().zip(children.iter()).map(|(name, child)| Child {
                name,
                request: child.request,
                min: min(child.min),
                guaranteed: child.guaranteed,
                weight: child.weight,
                lends: child.lends,
            });
            *runtimes = redistribute(all, &children.collect::<Vec<_>>());
        }
        *divided = Some(total.clone());
    }

    fn runtime(&self, child: &str) -> ResourceList {
        let Some(place) = self.place(child) else { return ResourceList::new() };
        let of_child = |column: &Column| Some((*column.children.get(place)?, *column.runtimes.get(place)?));
        let mut runtime = ResourceList::new();
        for column in &self.columns {
            if let Some((_, amount)) = of_child(column).filter(|(entry, _)| entry.is_bound) {
                runtime.insert(&*column.resource, quantity(&column.resource, amount, format(&column.resource)));
            }
        }
        runtime
    }
}

// === impl Claimant ===

impl Claimant<'_> {
    fn entry(&self, resource: &str) -> Entry {
        let of = |amounts: &ResourceList| count(resource, amounts.amount(resource));
        Entry {
            request: of(&self.request),
            min: of(&self.quota.min),
            guaranteed: self.guaranteed.map_or(0, of),
            weight: of(self.quota.weights()),
            lends: self.quota.lends,
            is_bound: self.quota.max.contains(resource),
        }
    }
}

/// With which suffixes the original writes what it has computed.
fn format(resource: &str) -> Format {
    if resource == "memory" { Format::BinarySI } else { Format::DecimalSI }
}
