//! How evenly pods of different owners were served.

use std::collections::BTreeMap;

use koord_runtime::key::ObjectKey;
use serde::Serialize;

use super::rounded;
use crate::{pods::Pods, survey::Survey};

/// How evenly pods were served.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fairness {
    /// Jain's index of the namespaces' shares: 1 where all are served alike, 1/n where one of n gets everything.
    pub index: f64,
    /// Namespaces, by name.
    pub namespaces: Vec<Served>,
    /// Quotas that pods name in their label, by name.
    pub quotas: Vec<Served>,
}

/// What was served of the demand of one owner. A pod counts as the largest share of any resource of all nodes that it requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Served {
    /// The namespace or quota.
    pub name: String,
    /// Its pods that came.
    pub pods: usize,
    /// Those that got a node.
    pub placed: usize,
    /// What its pods request, as a share of all nodes.
    pub demand: f64,
    /// The part of its demand that got a node.
    pub served: f64,
}

impl Fairness {
    pub(super) fn of(survey: &Survey, pods: &Pods) -> Self {
        let namespaces = served(survey, pods, |key| Some(key.namespace()));
        let quotas = served(survey, pods, |key| survey.quota(key));
        Self { index: jain(namespaces.iter().map(|served| served.served)), namespaces, quotas }
    }
}

fn served<'k>(survey: &Survey, pods: &'k Pods, owner: impl Fn(&'k ObjectKey) -> Option<&'k str>) -> Vec<Served> {
    let mut sums: BTreeMap<&str, (usize, usize, f64, f64)> = BTreeMap::new();
    for (key, record) in pods.iter() {
        let Some(owner) = owner(key) else { continue };
        let demand = survey.dominant_share(key);
        let (pods, placed, demanded, served) = sums.entry(owner).or_default();
        (*pods, *demanded) = (*pods + 1, *demanded + demand);
        if record.placed.is_some() {
            (*placed, *served) = (*placed + 1, *served + demand);
        }
    }
    let of = |(name, (pods, placed, demanded, served)): (&str, (usize, usize, f64, f64))| Served {
        name: name.to_owned(),
        pods,
        placed,
        demand: rounded(demanded),
        served: rounded(if demanded > 0.0 { served / demanded } else { placed as f64 / pods as f64 }),
    };
    sums.into_iter().map(of).collect()
}

/// Jain's index of fairness; 1 where nobody is served.
fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (count, sum, squares) = shares
        .fold((0_u32, 0.0, 0.0), |(count, sum, squares), share| (count + 1, sum + share, squares + share * share));
    if squares > 0.0 { rounded(sum * sum / (f64::from(count) * squares)) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_falls_from_one_to_one_nth() {
        let index = |shares: &[f64]| jain(shares.iter().copied());
        for (shares, expected) in
            [(&[0.5, 0.5][..], 1.0), (&[1.0, 0.0, 0.0, 0.0], 0.25), (&[1.0, 0.5], 0.9), (&[0.0, 0.0], 1.0), (&[], 1.0)]
        {
            assert!((index(shares) - expected).abs() < 1e-6, "{shares:?}: {}", index(shares));
        }
    }
}
