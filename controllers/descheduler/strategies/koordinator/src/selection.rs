//! The pods and nodes that the arguments of a strategy choose.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_config::descheduler::Namespaces;
use koord_descheduler_framework::{Cluster, NamespaceSelection, NodeId, Pod, ReasonCode};
use koord_scheduling::Selector;

use crate::ArgsError;

/// The pods that a strategy may move, as far as its arguments say.
#[derive(Clone, Debug)]
pub(crate) struct Movable {
    namespaces: NamespaceSelection,
    /// One of them must select a pod; all pods are selected where there are none.
    labels: Vec<Selector>,
}

impl Movable {
    /// The pods of `evictableNamespaces` and `podSelectors`. An entry without selector is ignored.
    pub(crate) fn new<'a>(
        namespaces: Option<&Namespaces>,
        selectors: impl IntoIterator<Item = Option<&'a LabelSelector>>,
    ) -> Result<Self, ArgsError> {
        let namespaces = namespaces
            .map_or_else(NamespaceSelection::default, |named| NamespaceSelection::new(&named.include, &named.exclude));
        let labels = selectors.into_iter().flatten().map(|selector| parse("podSelectors", selector));
        Ok(Self { namespaces, labels: labels.collect::<Result<_, _>>()? })
    }

    /// Whether a pod may be moved, and else why not. A DaemonSet would make another pod on the same node, so its pods are never movable, whatever the
    /// evictor allows.
    pub(crate) fn check(&self, pod: &Pod) -> Result<(), ReasonCode> {
        if !self.namespaces.selects_pod(pod) {
            return Err(ReasonCode::NamespaceNotSelected);
        }
        if !self.selects_labels(pod) {
            return Err(ReasonCode::LabelsNotSelected);
        }
        if pod.is_owned_by("DaemonSet") { Err(ReasonCode::DaemonSetPod) } else { Ok(()) }
    }

    /// Whether `podSelectors` select a pod, whatever its namespace.
    pub(crate) fn selects_labels(&self, pod: &Pod) -> bool {
        self.labels.is_empty() || self.labels.iter().any(|labels| labels.selects(|key| pod.label(key)))
    }
}

/// The selector of an argument.
pub(crate) fn parse(field: &'static str, selector: &LabelSelector) -> Result<Selector, ArgsError> {
    Selector::new(selector).map_err(|error| ArgsError::Selector { field, error: error.to_string() })
}

/// Those of these nodes that a selector selects; all of them without one.
pub(crate) fn nodes(cluster: &Cluster, nodes: &[NodeId], selector: Option<&Selector>) -> Vec<NodeId> {
    let Some(selector) = selector else { return nodes.to_vec() };
    let selects = |id: &NodeId| cluster.node(*id).is_some_and(|node| selector.selects(|key| node.label(key)));
    nodes.iter().copied().filter(selects).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use koord_config::descheduler::{LowNodeLoadArgs, PodSelector};
    use koord_descheduler_testing::{args, cluster, pod, with};

    use super::*;

    fn check(arguments: &Value, change: &Value) -> Result<(), ReasonCode> {
        let args: LowNodeLoadArgs = args("LowNodeLoad", arguments);
        let selectors = args.pod_selectors.iter().map(|PodSelector { selector, .. }| selector.as_ref());
        let movable = Movable::new(args.evictable_namespaces.as_ref(), selectors).unwrap();
        let cluster = cluster(&[with(&pod("p", "n1"), change)]);
        let (_, pod) = cluster.pods().next().unwrap();
        movable.check(pod)
    }

    #[test]
    fn one_of_the_selectors_must_select_and_one_without_labels_is_ignored() {
        let of = |app: &str| json!({"name": app, "selector": {"matchLabels": {"app": app}}});
        let labelled = json!({"metadata": {"labels": {"app": "x"}}});
        let selectors = |selectors: &[Value]| json!({"podSelectors": selectors});
        for (arguments, expected) in [
            (selectors(&[]), Ok(())),
            (selectors(&[of("y"), of("x")]), Ok(())),
            (selectors(&[of("y")]), Err(ReasonCode::LabelsNotSelected)),
            (selectors(&[json!({"name": "none"})]), Ok(())),
            (selectors(&[json!({"name": "none"}), of("y")]), Err(ReasonCode::LabelsNotSelected)),
            (json!({"evictableNamespaces": {"exclude": ["default"]}}), Err(ReasonCode::NamespaceNotSelected)),
            (json!({"evictableNamespaces": {"include": ["default"]}}), Ok(())),
        ] {
            assert_eq!(check(&arguments, &labelled), expected, "{arguments}");
        }
    }

    #[test]
    fn pods_of_daemon_sets_are_never_movable() {
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
        let owned = json!({"metadata": {"ownerReferences": owner}});
        assert_eq!(check(&json!({}), &owned), Err(ReasonCode::DaemonSetPod));
    }
}
