//! How what a quota may use is divided among its children (`spec/scheduler.md` 3D.3 to 3D.5).

use std::sync::Arc;

use koord_quota::{ChildAmounts, Pool, Quota};
use koord_resource::{ResourceList, quantity::Format};
use koord_scheduling::{count, quantity};
use parking_lot::Mutex;

/// A child with what it requests of its parent.
pub(super) struct Claimant<'a> {
    pub(super) quota: &'a Quota,
    pub(super) request: &'a ResourceList,
    /// What it is guaranteed beyond its `min`; none where nothing is.
    pub(super) guaranteed: Option<&'a ResourceList>,
}

/// How what a quota may use is divided. What changes about a child is set right in it.
#[derive(Debug, Default)]
pub(super) struct Division(Mutex<Option<Table>>);

/// The children of a quota in numbers.
#[derive(Debug)]
struct Table {
    /// The names of all children, in order.
    names: Vec<Arc<str>>,
    columns: Vec<Column>,
}

/// One resource that is divided.
#[derive(Debug)]
struct Column {
    resource: String,
    pool: Pool,
    /// Whether the `max` of each child names the resource.
    is_bound: Vec<bool>,
}

// === impl Division ===

impl Clone for Division {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Division {
    /// A child requests something else, or is guaranteed it.
    pub(super) fn renew(&self, child: &str, claimant: &Claimant<'_>) {
        if let Some(table) = &mut *self.0.lock() {
            table.renew(child, claimant);
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
        table.runtime(child, total, scales_min)
    }
}

impl Division {
    /// The mins by which a child's part of a total is found, of the resources that both name; none where nothing was divided yet.
    pub(super) fn mins_of(&self, child: &str, total: &ResourceList, min: &ResourceList) -> Option<ResourceList> {
        let mut known = self.0.lock();
        let table = known.as_mut()?;
        let place = table.place(child)?;
        let mut mins = min.clone();
        for Column { resource, pool, .. } in &mut table.columns {
            if let (Some(of_total), Some(own)) = (total.get(resource), min.get(resource)) {
                let amount = pool.min(count(resource, of_total), true, place);
                if amount != count(resource, own) {
                    mins.insert(resource.as_str(), quantity(resource, amount, own.format()));
                }
            }
        }
        Some(mins)
    }
}

// === impl Table ===

impl Table {
    fn of(resources: &[&str], claimants: &mut [Claimant<'_>]) -> Self {
        claimants.sort_by_key(|claimant| claimant.quota.name.as_str());
        let column = |resource: &&str| Column {
            resource: (*resource).to_owned(),
            pool: claimants.iter().map(|claimant| claimant.amounts(resource)).collect(),
            is_bound: claimants.iter().map(|claimant| claimant.quota.max.contains(resource)).collect(),
        };
        let columns = resources.iter().map(column).collect();
        let names = claimants.iter().map(|claimant| claimant.quota.name.as_str().into()).collect();
        Self { names, columns }
    }

    fn place(&self, child: &str) -> Option<usize> {
        self.names.binary_search_by(|name| (**name).cmp(child)).ok()
    }

    fn renew(&mut self, child: &str, claimant: &Claimant<'_>) {
        let Some(place) = self.place(child) else { return };
        for column in &mut self.columns {
            column.pool.set(place, claimant.amounts(&column.resource));
        }
    }

    fn runtime(&mut self, child: &str, total: &ResourceList, scales_min: bool) -> ResourceList {
        let mut runtime = ResourceList::new();
        let Some(place) = self.place(child) else { return runtime };
        for Column { resource, pool, is_bound } in &mut self.columns {
            if is_bound.get(place).is_some_and(|is_bound| *is_bound) {
                let of_total = total.get(resource);
                let all = of_total.map_or(0, |amount| count(resource, amount));
                let amount = pool.runtime(all, scales_min && of_total.is_some(), place);
                runtime.insert(resource.as_str(), quantity(resource, amount, format(resource)));
            }
        }
        runtime
    }
}

// === impl Claimant ===

impl Claimant<'_> {
    fn amounts(&self, resource: &str) -> ChildAmounts {
        let of = |amounts: &ResourceList| count(resource, amounts.amount(resource));
        ChildAmounts {
            request: of(self.request),
            min: of(&self.quota.min),
            guaranteed: self.guaranteed.map_or(0, of),
            weight: of(self.quota.weights()),
            lends: self.quota.lends,
        }
    }
}

/// With which suffixes the original writes what it has computed.
fn format(resource: &str) -> Format {
    if resource == "memory" { Format::BinarySI } else { Format::DecimalSI }
}
