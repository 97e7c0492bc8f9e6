//! What pods request that wait.

use std::{collections::BTreeMap, sync::Arc};

use koord_scheduler_engine::{Engine, queue::Stands};
use koord_scheduler_framework::Figure;

use super::families::REQUESTS;

/// The sums by part of the queue and resource. Pods that share a template are counted first.
pub(super) fn pending(engine: &Engine) -> impl Iterator<Item = Figure> + use<> {
    let mut alike = BTreeMap::new();
    for (pod, stands) in engine.queue().waiting() {
        let (_, pods) = alike.entry((stands, Arc::as_ptr(&pod.template))).or_insert((&pod.template, 0_u32));
        *pods += 1;
    }
    let mut sums: BTreeMap<(Stands, &str), f64> = BTreeMap::new();
    for ((stands, _), (template, pods)) in alike {
        for (resource, amount) in &template.requests {
            *sums.entry((stands, resource)).or_default() += amount.as_f64() * f64::from(pods);
        }
    }
    let figure = |((stands, resource), value): ((Stands, &str), f64)| Figure {
        name: REQUESTS.name,
        labels: vec![queue(stands).to_owned(), resource.to_owned()],
        value,
    };
    sums.into_iter().map(figure).collect::<Vec<_>>().into_iter()
}

const fn queue(stands: Stands) -> &'static str {
    match stands {
        Stands::InFlight => "in_flight",
        Stands::Active => "active",
        Stands::Backoff => "backoff",
        Stands::Unschedulable => "unschedulable",
        Stands::Gated => "gated",
    }
}
