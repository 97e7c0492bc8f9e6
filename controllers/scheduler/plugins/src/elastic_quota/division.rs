//! How what a quota may use is divided among its children (`spec/scheduler.md` 3D.3 to 3D.5).

use std::{collections::BTreeMap, sync::Arc};

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

/// What each child may use, of the resources that its `max` names.
pub(super) type Runtimes = BTreeMap<Arc<str>, ResourceList>;

/// The last division of a quota, for as long as nothing has changed about its children.
#[derive(Debug, Default)]
pub(super) struct Division(Mutex<Option<(ResourceList, Runtimes)>>);

impl Clone for Division {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Division {
    /// Something has changed about a child.
    pub(super) fn forget(&mut self) {
        *self.0.get_mut() = None;
    }

    /// What a child may use of a total.
    pub(super) fn of(&self, child: &str, total: &ResourceList, divide: impl FnOnce() -> Runtimes) -> ResourceList {
        let mut known = self.0.lock();
        if known.as_ref().is_none_or(|(of, _)| of != total) {
            *known = Some((total.clone(), divide()));
        }
        known.as_ref().and_then(|(_, runtimes)| runtimes.get(child)).cloned().unwrap_or_default()
    }
}

/// Divides each of the resources. A resource that the total does not name is not there, but mins are not scaled by that.
pub(super) fn divide<'a>(
    total: &ResourceList,
    resources: impl IntoIterator<Item = &'a str>,
    claimants: &[Claimant<'_>],
    scales_min: bool,
) -> Runtimes {
    let mut runtimes: Runtimes =
        claimants.iter().map(|claimant| (claimant.quota.name.as_str().into(), ResourceList::new())).collect();
    for resource in resources {
        let of = |amounts: &ResourceList| count(resource, amounts.amount(resource));
        let mins = claimants.iter().fold(0_i64, |sum, claimant| sum.saturating_add(of(&claimant.quota.min)));
        let min = |quota: &Quota| match total.get(resource) {
            Some(total) if scales_min => scaled_min(of(&quota.min), count(resource, total), mins, 0),
            _ => of(&quota.min),
        };
        let children = claimants.iter().map(|Claimant { quota, request, guaranteed }| Child {
            name: &quota.name,
            request: of(request),
            min: min(quota),
            guaranteed: guaranteed.map_or(0, of),
            weight: of(quota.weights()),
            lends: quota.lends,
        });
        let children: Vec<Child<'_>> = children.collect();
        for (claimant, amount) in claimants.iter().zip(redistribute(of(total), &children)) {
            if claimant.quota.max.contains(resource)
                && let Some(runtime) = runtimes.get_mut(claimant.quota.name.as_str())
            {
                runtime.insert(resource, quantity(resource, amount, format(resource)));
            }
        }
    }
    runtimes
}

/// With which suffixes the original writes what it has computed.
fn format(resource: &str) -> Format {
    if resource == "memory" { Format::BinarySI } else { Format::DecimalSI }
}
