//! Why pods wait at the end, alike ones together.

use std::collections::{BTreeMap, BTreeSet};

use koord_runtime::key::ObjectKey;
use koord_scheduler_engine::{
    Engine,
    queue::{Standing, Stands},
};
use koord_scheduler_framework::pod::{Pod, Template};
use serde::Serialize;

use crate::{
    pods::{Pods, Record},
    survey::Survey,
};

/// Why some pods wait at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// How many pods.
    pub pods: usize,
    /// The plugins that refuse them or hold them back, as `koordctl why` names them.
    pub plugins: Vec<String>,
    /// What they say, without the numbers of nodes.
    pub reason: String,
    /// The first of the pods.
    pub example: String,
    /// What was said of it, as its event and its condition say it.
    pub message: String,
}

/// Why one pod waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The plugins that refuse it or hold it back.
    pub plugins: BTreeSet<&'static str>,
    /// What was said of it, as its event and its condition say it.
    pub message: String,
}

/// Why each pod waits that does.
pub(super) fn refusals<'p>(engine: &Engine, survey: &Survey, pods: &'p Pods) -> BTreeMap<&'p ObjectKey, Refusal> {
    let standings: BTreeMap<&ObjectKey, Standing<'_>> =
        engine.queue().standings().into_iter().map(|standing| (&standing.pod.key, standing)).collect();
    let in_place: BTreeSet<&ObjectKey> = engine.waiting().map(|pod| &pod.key).collect();
    let waiting = pods.iter().filter(|(_, record)| record.waits());
    let of = |(key, record)| {
        let is_in_place = in_place.contains(key);
        (key, refusal_of(engine, survey.template(key), standings.get(key), is_in_place, record))
    };
    waiting.map(of).collect()
}

/// The reasons, the most frequent first.
pub(super) fn of(engine: &Engine, survey: &Survey, pods: &Pods) -> Vec<Reason> {
    let mut reasons: BTreeMap<(BTreeSet<&str>, String), Reason> = BTreeMap::new();
    for (key, Refusal { plugins, message }) in refusals(engine, survey, pods) {
        let reason = without_numbers(&message);
        let known = reasons.entry((plugins.clone(), reason.clone()));
        let known = known.or_insert_with(|| Reason {
            pods: 0,
            plugins: plugins.into_iter().map(str::to_owned).collect(),
            reason,
            example: key.to_string(),
            message,
        });
        known.pods += 1;
    }
    let mut reasons: Vec<Reason> = reasons.into_values().collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.pods));
    reasons
}

fn refusal_of(
    engine: &Engine,
    template: Option<&Template>,
    standing: Option<&Standing<'_>>,
    is_in_place: bool,
    record: &Record,
) -> Refusal {
    let plain = |message: String| Refusal { plugins: BTreeSet::new(), message };
    let Some(template) = template else {
        return plain(record.message.clone().unwrap_or_else(|| "it cannot be read".to_owned()));
    };
    let Some(profile) = engine.profiles().find(|profile| profile.scheduler == template.scheduler) else {
        return plain(format!("left to another scheduler: its schedulerName is {:?}", &*template.scheduler));
    };
    if is_in_place {
        return plain("has its place and waits there for the others of its gang".to_owned());
    }
    let Some(standing) = standing else { return plain(record.message.clone().unwrap_or_default()) };
    let stopping = standing.stopped_by.iter().filter_map(|index| profile.plugins.get(usize::from(index)));
    let plugins: Vec<_> = stopping.collect();
    let held = |pod: &Pod| {
        plugins.iter().find_map(|plugin| plugin.pre_enqueue.as_ref()?.pre_enqueue(pod, engine.cluster()).err())
    };
    let gated = (standing.stands == Stands::Gated).then(|| held(standing.pod)).flatten();
    let gated = gated.map(|reason| reason.text);
    let message = gated.or_else(|| record.message.clone()).unwrap_or_else(|| "not tried yet".to_owned());
    Refusal { plugins: plugins.iter().map(|plugin| plugin.name()).collect(), message }
}

/// What is said of nodes, without how many there are: `Insufficient cpu, node(s) had untolerated taint {gpu: yes}`.
fn without_numbers(message: &str) -> String {
    let message = message.split(" preemption: ").next().unwrap_or_default();
    // What DynamicResources says of pods without claims says nothing of nodes.
    let message = message.trim_end_matches(',').trim_end_matches(" no new claims to deallocate");
    let Some((before, nodes)) = message.split_once(" nodes are available: ") else { return message.to_owned() };
    if !before.starts_with("0/") {
        return message.to_owned();
    }
    let reason = |part: &str| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        if rest.len() < part.len() { rest.trim_start().to_owned() } else { part.to_owned() }
    };
    let reasons: BTreeSet<String> = nodes.trim_end_matches('.').split(", ").map(reason).collect();
    reasons.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_in_numbers_are_alike() {
        for (message, reason) in [
            (
                "0/3 nodes are available: 1 Insufficient memory, 3 Insufficient cpu.",
                "Insufficient cpu, Insufficient memory",
            ),
            (
                "0/9 nodes are available: 9 Insufficient cpu. no new claims to deallocate, preemption: 0/9 nodes are available: 9 No preemption victims found for incoming pod.",
                "Insufficient cpu",
            ),
            ("no nodes available to schedule pods", "no nodes available to schedule pods"),
            ("0/2 nodes are available: quota is full.", "quota is full"),
        ] {
            assert_eq!(without_numbers(message), reason);
        }
    }
}
