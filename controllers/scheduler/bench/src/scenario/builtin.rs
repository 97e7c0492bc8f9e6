//! The scenarios that are built in: the original's, one of gangs, and what kube-scheduler's own performance tests play, at a small size.

use anyhow::{Result, bail};
use koord_program::{names::question, screen::Screen, table};

use super::Scenario;

/// The word that asks for the names of all scenarios.
pub const LIST: &str = "list";

const FILES: [(&str, &str); 38] = [
    ("basic", include_str!("../../benchmarks/basic.yaml")),
    ("gangs", include_str!("../../benchmarks/gangs.yaml")),
    ("kube-basic", include_str!("../../benchmarks/kube/basic.yaml")),
    ("kube-csi-volumes", include_str!("../../benchmarks/kube/csi-volumes.yaml")),
    ("kube-daemonset", include_str!("../../benchmarks/kube/daemonset.yaml")),
    ("kube-default-topology-spreading", include_str!("../../benchmarks/kube/default-topology-spreading.yaml")),
    ("kube-deleted-pods-with-finalizers", include_str!("../../benchmarks/kube/deleted-pods-with-finalizers.yaml")),
    ("kube-events-node-added", include_str!("../../benchmarks/kube/events-node-added.yaml")),
    ("kube-events-node-changed", include_str!("../../benchmarks/kube/events-node-changed.yaml")),
    ("kube-events-pod-added", include_str!("../../benchmarks/kube/events-pod-added.yaml")),
    ("kube-events-pod-changed", include_str!("../../benchmarks/kube/events-pod-changed.yaml")),
    ("kube-events-pod-deleted", include_str!("../../benchmarks/kube/events-pod-deleted.yaml")),
    ("kube-extended-resources", include_str!("../../benchmarks/kube/extended-resources.yaml")),
    ("kube-gated-pods-with-affinity", include_str!("../../benchmarks/kube/gated-pods-with-affinity.yaml")),
    ("kube-gated-pods", include_str!("../../benchmarks/kube/gated-pods.yaml")),
    ("kube-in-tree-volumes", include_str!("../../benchmarks/kube/in-tree-volumes.yaml")),
    ("kube-migrated-volumes", include_str!("../../benchmarks/kube/migrated-volumes.yaml")),
    ("kube-mixed-churn", include_str!("../../benchmarks/kube/mixed-churn.yaml")),
    ("kube-mixed", include_str!("../../benchmarks/kube/mixed.yaml")),
    ("kube-node-affinity", include_str!("../../benchmarks/kube/node-affinity.yaml")),
    ("kube-node-inclusion-policy", include_str!("../../benchmarks/kube/node-inclusion-policy.yaml")),
    (
        "kube-pod-affinity-namespace-selector",
        include_str!("../../benchmarks/kube/pod-affinity-namespace-selector.yaml"),
    ),
    ("kube-pod-affinity", include_str!("../../benchmarks/kube/pod-affinity.yaml")),
    (
        "kube-pod-anti-affinity-namespace-selector",
        include_str!("../../benchmarks/kube/pod-anti-affinity-namespace-selector.yaml"),
    ),
    ("kube-pod-anti-affinity", include_str!("../../benchmarks/kube/pod-anti-affinity.yaml")),
    ("kube-preemption-async", include_str!("../../benchmarks/kube/preemption-async.yaml")),
    ("kube-preemption-volumes", include_str!("../../benchmarks/kube/preemption-volumes.yaml")),
    ("kube-preemption", include_str!("../../benchmarks/kube/preemption.yaml")),
    (
        "kube-preferred-pod-affinity-namespace-selector",
        include_str!("../../benchmarks/kube/preferred-pod-affinity-namespace-selector.yaml"),
    ),
    ("kube-preferred-pod-affinity", include_str!("../../benchmarks/kube/preferred-pod-affinity.yaml")),
    (
        "kube-preferred-pod-anti-affinity-namespace-selector",
        include_str!("../../benchmarks/kube/preferred-pod-anti-affinity-namespace-selector.yaml"),
    ),
    ("kube-preferred-pod-anti-affinity", include_str!("../../benchmarks/kube/preferred-pod-anti-affinity.yaml")),
    ("kube-preferred-topology-spreading", include_str!("../../benchmarks/kube/preferred-topology-spreading.yaml")),
    ("kube-resource-claims", include_str!("../../benchmarks/kube/resource-claims.yaml")),
    ("kube-secrets", include_str!("../../benchmarks/kube/secrets.yaml")),
    ("kube-shared-resource-claims", include_str!("../../benchmarks/kube/shared-resource-claims.yaml")),
    ("kube-topology-spreading", include_str!("../../benchmarks/kube/topology-spreading.yaml")),
    ("kube-unschedulable", include_str!("../../benchmarks/kube/unschedulable.yaml")),
];

/// The names of the scenarios that are built in.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// A scenario that is built in.
pub fn builtin(name: &str) -> Result<Scenario> {
    if let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) {
        return Scenario::of_text(name, text);
    }
    let known = question(name, names()).unwrap_or_else(|| format!("`koordctl bench {LIST}` says which there are"));
    bail!("there is no scenario {name:?}; {known} A file is named with -f")
}

/// All scenarios, one a line.
pub fn list(screen: Screen) -> Result<String> {
    let mut rows = Vec::new();
    for (name, _) in FILES {
        rows.push(vec![name.to_owned(), builtin(name)?.description.unwrap_or_default()]);
    }
    Ok(table::lines(&rows, screen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_can_be_read_has_the_name_of_its_file_and_says_what_it_shows() {
        for name in names() {
            let scenario = builtin(name).unwrap();
            assert_eq!(scenario.name, name);
            assert!(scenario.description.is_some_and(|words| !words.is_empty()), "{name}");
        }
        let error = builtin("bsic").unwrap_err().to_string();
        assert_eq!(error, "there is no scenario \"bsic\"; did you mean \"basic\"? A file is named with -f");
    }
}
