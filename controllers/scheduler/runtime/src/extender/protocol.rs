//! Answers of extenders. As in Go, the letters of member names may be large or small.

use std::{collections::BTreeMap, sync::Arc};

use koord_runtime::uid::Uid;
use koord_scheduler_framework::extender::{Extender, FailedNode, NodeVictims, Victims};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::verbs::AnswerError;

/// An answer. `null` says nothing.
pub(super) trait Result: DeserializeOwned + Default {
    fn read(body: &[u8]) -> serde_json::Result<Self> {
        let value: Value = serde_json::from_slice(body)?;
        serde_json::from_value::<Option<Self>>(with_small_letters(value)).map(Option::unwrap_or_default)
    }
}

impl<T: DeserializeOwned + Default> Result for T {}

/// Names of nodes have no large letters, so that members and nodes can be treated alike.
fn with_small_letters(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), with_small_letters(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(with_small_letters).collect(),
        other => other,
    }
}

/// What a filter says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Filtered {
    nodes: Option<NodeList>,
    nodenames: Option<Vec<String>>,
    failednodes: Option<BTreeMap<String, String>>,
    failedandunresolvablenodes: Option<BTreeMap<String, String>>,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeList {
    items: Option<Vec<NodeItem>>,
}

#[derive(Deserialize)]
struct NodeItem {
    metadata: NodeName,
}

#[derive(Deserialize)]
struct NodeName {
    name: String,
}

impl Filtered {
    /// The nodes that are left of these, and why the others are not.
    #[expect(clippy::type_complexity, reason = "two lists")]
    pub(super) fn among(
        self,
        left: &[Arc<str>],
        knows_objects: bool,
        extender: &Extender,
    ) -> std::result::Result<(Vec<Arc<str>>, BTreeMap<Arc<str>, FailedNode>), AnswerError> {
        if !self.error.is_empty() {
            return Err(AnswerError::Refused(self.error));
        }
        let listed = || Some(self.nodes?.items.into_iter().flatten().map(|node| node.metadata.name).collect());
        let names: Vec<String> = self.nodenames.filter(|_| knows_objects).or_else(listed).unwrap_or_default();
        let known = |name: &String| left.iter().find(|left| ***left == **name).cloned();
        let unknown = |name: &String| AnswerError::UnknownNode { url: extender.url.clone(), node: name.clone() };
        let accepted = names.iter().map(|name| known(name).ok_or_else(|| unknown(name)));
        let accepted = accepted.collect::<std::result::Result<Vec<_>, _>>()?;
        let failed = self.failednodes.into_iter().flatten().map(|failed| (failed, true));
        let unresolvable = self.failedandunresolvablenodes.into_iter().flatten().map(|failed| (failed, false));
        // What lies in the node counts more.
        let words = failed.chain(unresolvable);
        let words = words.map(|((name, reason), resolvable)| (Arc::from(name), FailedNode { reason, resolvable }));
        Ok((accepted, words.collect()))
    }
}

/// How nodes are rated.
#[derive(Default)]
pub(super) struct Rated(pub(super) Vec<(String, i64)>);

impl<'de> Deserialize<'de> for Rated {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Rating {
            host: String,
            score: i64,
        }
        let ratings = Vec::<Rating>::deserialize(deserializer)?;
        Ok(Self(ratings.into_iter().map(|rating| (rating.host, rating.score)).collect()))
    }
}

/// Which victims are chosen.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Preempted {
    nodenametometavictims: Option<BTreeMap<String, Option<Chosen>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chosen {
    pods: Option<Vec<ChosenPod>>,
    numpdbviolations: i64,
}

#[derive(Deserialize)]
struct ChosenPod {
    uid: String,
}

impl Preempted {
    /// The victims. A node without any is an error, or dropped.
    pub(super) fn checked(self, drops_empty: bool) -> std::result::Result<Victims, AnswerError> {
        let mut victims = Victims::new();
        for (node, chosen) in self.nodenametometavictims.into_iter().flatten() {
            let Chosen { pods, numpdbviolations } = chosen.unwrap_or_default();
            let pods: Vec<Uid> = pods.into_iter().flatten().map(|pod| Uid::from(&*pod.uid)).collect();
            if !pods.is_empty() {
                let violations = usize::try_from(numpdbviolations).unwrap_or(0);
                victims.insert(node.into(), NodeVictims { pods, violations });
            } else if !drops_empty {
                return Err(AnswerError::NoVictims(node));
            }
        }
        Ok(victims)
    }
}

/// Whether a pod was bound.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Bound {
    pub(super) error: String,
}
