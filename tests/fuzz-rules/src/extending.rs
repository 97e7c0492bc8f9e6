//! Answers of extenders.

use std::{collections::BTreeSet, sync::Arc};

use koord_scheduler_framework::extender::Extender;
use koord_scheduler_runtime::verbs::{ADDED_SCORE_MAX, Bind, Filter, Preempt, Prioritize, Verb as _};

/// In the first byte: the extender may be passed over.
const IS_IGNORABLE: u8 = 0x04;
/// In the first byte: it knows all nodes, and answers with names.
const KNOWS_OBJECTS: u8 = 0x08;

/// The body of an answer is refused with a reason, or names only nodes that it may name, with scores within their bounds. The last
/// two bits of the first byte choose the verb.
pub fn extender(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let extender = Extender {
        url: "http://x".to_owned(),
        weight: i64::from(*first),
        is_ignorable: first & IS_IGNORABLE != 0,
        ..Extender::default()
    };
    let left = ["n1", "n2"].map(Arc::<str>::from);
    let requested: BTreeSet<Arc<str>> = ["n1", "n2", "n3"].map(Arc::<str>::from).into();
    let error = match first % 4 {
        0 => {
            let filter = Filter { requested: &requested, left: &left, knows_objects: first & KNOWS_OBJECTS != 0 };
            let answer = filter.check(&extender, body);
            answer.map(|(accepted, words)| {
                assert!(accepted.iter().all(|node| left.contains(node)), "{accepted:?}");
                assert!(words.keys().all(|node| requested.contains(node)), "{words:?}");
            })
        }
        1 => Prioritize.check(&extender, body).map(|scores| {
            let is_bounded = |score: &i64| (-ADDED_SCORE_MAX..=ADDED_SCORE_MAX).contains(score);
            assert!(scores.values().all(is_bounded), "{scores:?}");
        }),
        2 => Preempt.check(&extender, body).map(|victims| {
            assert!(victims.values().all(|of_node| !of_node.pods.is_empty()), "{victims:?}");
        }),
        _ => Bind.check(&extender, body),
    };
    assert!(error.err().is_none_or(|error| !error.to_string().is_empty()));
}
