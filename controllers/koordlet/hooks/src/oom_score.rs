//! The OOM score adjustment of a container's processes.

use std::sync::Arc;

use koord_koordlet_framework::Reason;
use koord_types::pod_annotations::{OOM_SCORE_ADJ, OOM_SCORE_ADJ_SPEC, OomScoreAdj};

use crate::{pod_view::PodView, refused::Refused};

/// All processes of a container get a score adjustment; only those that have another one are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OomScore {
    pub pod_namespace: Arc<str>,
    pub pod_name: Arc<str>,
    pub pod_uid: Arc<str>,
    pub container: Arc<str>,
    pub processes: Vec<u32>,
    /// From −1000 to 1000.
    pub score: i64,
    pub reason: Reason,
}

/// The score adjustment of a container: the one for it by name, else the one for all containers of the pod.
pub(crate) fn score(pod: &PodView<'_>, container: &str, refused: &mut Vec<Refused>) -> Option<(i64, Reason)> {
    let by_container = pod.read(&OOM_SCORE_ADJ_SPEC, refused).ok().flatten();
    let own = by_container.and_then(|scores| scores.get(container).copied());
    if let Some(score) = own {
        match OomScoreAdj::new(score) {
            Some(score) => {
                let formula = format!("{container} = {}", score.value());
                return Some((score.value(), Reason::new(OOM_SCORE_ADJ_SPEC.name(), formula)));
            }
            None => refused.push(
                pod.refusal(OOM_SCORE_ADJ_SPEC.name(), format!("{score} of {container} is not from -1000 to 1000")),
            ),
        }
    }
    let score = pod.read(&OOM_SCORE_ADJ, refused).ok().flatten()?.value();
    Some((score, Reason::new(OOM_SCORE_ADJ.name(), format!("all containers = {score}"))))
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::CgroupPath;
    use koord_types::protocol::Labels;

    use super::*;

    #[test]
    fn the_score_of_the_container_wins_over_that_of_the_pod() {
        for (spec, scalar, expected, refusals) in [
            (None, Some("-500"), Some(-500), 0),
            (Some(r#"{"main":-1000}"#), None, Some(-1000), 0),
            (Some(r#"{"main":5}"#), Some("7"), Some(5), 0),
            (Some(r#"{"other":5}"#), Some("7"), Some(7), 0),
            (Some(r#"{"other":5}"#), None, None, 0),
            (Some("{"), Some("7"), Some(7), 1),
            (Some("{"), None, None, 1),
            (Some(r#"{"main":1001}"#), None, None, 1),
            (None, Some("1001"), None, 1),
            (None, Some("x"), None, 1),
            (None, None, None, 0),
        ] {
            let (labels, cgroup) = (Labels::new(), CgroupPath::root());
            let texts = [(OOM_SCORE_ADJ_SPEC.name(), spec), (OOM_SCORE_ADJ.name(), scalar)];
            let annotations: Labels =
                texts.iter().filter_map(|(name, text)| Some(((*name).to_owned(), (*text)?.to_owned()))).collect();
            let pod = PodView {
                namespace: "shop",
                name: "a",
                uid: "1",
                labels: &labels,
                annotations: &annotations,
                last_good: None,
                cgroup: &cgroup,
                listed: None,
            };
            let mut refused = Vec::new();
            let found = score(&pod, "main", &mut refused).map(|(score, _)| score);
            assert_eq!((found, refused.len()), (expected, refusals), "{spec:?} {scalar:?}");
        }
    }
}
