//! How what a quota may use is divided among its children (`spec/scheduler.md` 3D.3 to 3D.5).

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

/// The children of a quota in numbers, a column for each resource.
#[derive(Debug)]
struct Table(Vec<Column>);

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
    pub(super) fn renew(&self, child: usize, claimant: &Claimant<'_>) {
        if let Some(table) = &mut *self.0.lock() {
            table.renew(child, claimant);
        }
    }

    /// What a child may use of a total, of the resources that its `max` names; nothing where it takes no part. A resource that the total
    /// does not name is not there, but mins are not scaled by that. The children come in the order of their numbers.
    pub(super) fn of<'a>(
        &self,
        child: Option<usize>,
        total: &ResourceList,
        scales_min: bool,
        children: impl FnOnce() -> (Vec<&'a str>, Vec<Claimant<'a>>),
    ) -> ResourceList {
        let Some(child) = child else { return ResourceList::new() };
        let mut known = self.0.lock();
        let table = known.get_or_insert_with(|| {
            let (resources, claimants) = children();
            Table::of(&resources, &claimants)
        });
        table.runtime(child, total, scales_min)
    }

    /// The mins by which a child's part of a total is found, of the resources that both name; none where nothing was divided yet.
    pub(super) fn mins_of(&self, child: usize, total: &ResourceList, min: &ResourceList) -> Option<ResourceList> {
        let mut known = self.0.lock();
        let mut mins = min.clone();
        for Column { resource, pool, .. } in &mut known.as_mut()?.0 {
            if let (Some(of_total), Some(child_min)) = (total.get(resource), min.get(resource)) {
                let amount = pool.min(count(resource, of_total), true, child);
                if amount != count(resource, child_min) {
                    mins.insert(resource.as_str(), quantity(resource, amount, child_min.format()));
                }
            }
        }
        Some(mins)
    }
}

// === impl Table ===

impl Table {
    fn of(resources: &[&str], claimants: &[Claimant<'_>]) -> Self {
        let column = |resource: &&str| Column {
            resource: (*resource).to_owned(),
            pool: claimants.iter().map(|claimant| claimant.amounts(resource)).collect(),
            is_bound: claimants.iter().map(|claimant| claimant.quota.max.contains(resource)).collect(),
        };
        Self(resources.iter().map(column).collect())
    }

    fn renew(&mut self, child: usize, claimant: &Claimant<'_>) {
        for Column { resource, pool, .. } in &mut self.0 {
            if let Some(known) = pool.child(child) {
                let request = count(resource, claimant.request.amount(resource));
                pool.set(child, ChildAmounts { request, guaranteed: claimant.guaranteed(resource), ..known });
            }
        }
    }

    fn runtime(&mut self, child: usize, total: &ResourceList, scales_min: bool) -> ResourceList {
        let mut runtime = ResourceList::new();
        for Column { resource, pool, is_bound } in &mut self.0 {
            if is_bound.get(child).is_some_and(|is_bound| *is_bound) {
                let of_total = total.get(resource);
                let all = of_total.map_or(0, |amount| count(resource, amount));
                let amount = pool.runtime(all, scales_min && of_total.is_some(), child);
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
            guaranteed: self.guaranteed(resource),
            weight: of(self.quota.weights()),
            lends: self.quota.lends,
        }
    }

    fn guaranteed(&self, resource: &str) -> i64 {
        self.guaranteed.map_or(0, |guaranteed| count(resource, guaranteed.amount(resource)))
    }
}

/// With which suffixes the original writes what it has computed.
fn format(resource: &str) -> Format {
    if resource == "memory" { Format::BinarySI } else { Format::DecimalSI }
}
