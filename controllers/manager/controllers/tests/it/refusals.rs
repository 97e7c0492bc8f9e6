//! What the controllers do when the API server does not do as it is asked.

use std::time::Duration;

use koord_runtime::write::Answer;
use serde_json::{Value, json};

use crate::{
    noderesource::{batch_cpu, cluster, report},
    stage::Stage,
};

/// Every way in which a write may fail, by its code and reason.
const REFUSALS: [(u16, &str); 10] = [
    (400, "BadRequest"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (409, "Conflict"),
    (413, "RequestEntityTooLarge"),
    (422, "Invalid"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
    (504, "Timeout"),
];

/// How often each write is refused.
const TIMES: usize = 3;

fn refuse(stage: &mut Stage, kind: &'static str, (code, reason): (u16, &str)) {
    let body = json!({"kind": "Status", "status": "Failure", "reason": reason, "message": "not now", "code": code});
    let retry_after = (code == 429).then_some(Duration::from_secs(2));
    let answer = || Answer { code, retry_after, body: body.to_string() };
    stage.refusals_allowed = true;
    stage.refusals = (kind, std::iter::repeat_with(answer).take(TIMES).collect());
    stage.writes.clear();
}

/// Lets half a minute pass and gives the number of writes to objects of a kind meanwhile.
fn tries(stage: &mut Stage, kind: &str) -> usize {
    stage.settle();
    for _ in 0..300 {
        stage.wait(Duration::from_millis(100));
    }
    let writes = stage.writes.iter().filter(|write| write.split(&[' ', '/']).nth(1) == Some(kind));
    writes.count()
}

fn observed(stage: &mut Stage, api_version: &str, kind: &str, name: &str) -> Value {
    let namespace = if kind == "ElasticQuota" { json!("default") } else { Value::Null };
    stage.observe(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}}))
}

#[test]
fn amounts_of_a_node_are_written_when_the_api_server_lets_them_be() {
    for refusal in REFUSALS {
        let mut stage = cluster();
        refuse(&mut stage, "Node", refusal);
        report(&mut stage, "27");
        assert_eq!(tries(&mut stage, "Node"), TIMES + 1, "{refusal:?}");
        assert_eq!(batch_cpu(&mut stage), "33k", "{refusal:?}");
    }
}

#[test]
fn amounts_of_zones_are_written_when_the_api_server_lets_them_be() {
    for refusal in REFUSALS {
        let mut stage = cluster();
        refuse(&mut stage, "NodeResourceTopology", refusal);
        let amount =
            |name, amount| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
        stage.put(&json!({
            "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", "metadata": {"name": "n"},
            "topologyPolicies": ["None"],
            "zones": [{"name": "node-0", "type": "Node", "resources": [amount("cpu", "100"), amount("memory", "120G")]}],
        }));
        assert_eq!(tries(&mut stage, "NodeResourceTopology"), TIMES + 1, "{refusal:?}");
        let topology = observed(&mut stage, "topology.node.k8s.io/v1alpha1", "NodeResourceTopology", "n");
        assert_eq!(topology["zones"][0]["resources"][1]["name"], "kubernetes.io/batch-cpu", "{refusal:?}");
    }
}

#[test]
fn a_node_gets_its_objects_when_the_api_server_lets_them_be() {
    for kind in ["NodeMetric", "NodeSLO"] {
        for refusal in REFUSALS {
            let mut stage = Stage::new("");
            refuse(&mut stage, kind, refusal);
            stage.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"}}));
            assert_eq!(tries(&mut stage, kind), TIMES + 1, "{kind} {refusal:?}");
            let object = observed(&mut stage, "slo.koordinator.sh/v1alpha1", kind, "m");
            assert!(object["spec"].is_object(), "{kind} {refusal:?} {object}");
        }
    }
}

#[test]
fn a_quota_that_is_refused_is_told_on_its_profile() {
    let profile = json!({
        "apiVersion": "quota.koordinator.sh/v1alpha1", "kind": "ElasticQuotaProfile",
        "metadata": {"name": "p", "namespace": "default", "labels": {"quota.scheduling.koordinator.sh/tree-id": "t"}},
        "spec": {"quotaName": "q", "nodeSelector": {"matchLabels": {"pool": "a"}}},
    });
    for refusal in REFUSALS {
        let mut stage = Stage::new("");
        refuse(&mut stage, "ElasticQuota", refusal);
        stage.put(&profile);
        assert_eq!(tries(&mut stage, "ElasticQuota"), TIMES + 1, "{refusal:?}");
        let quota = observed(&mut stage, "scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "q");
        assert_eq!(quota["spec"]["min"]["cpu"], "0", "{refusal:?}");
        assert_eq!(stage.reasons("p"), ["CreateQuotaFailed"], "{refusal:?}");
        let message = format!(
            "failed to create quota, err: create ElasticQuota default/q: the API server answered {}: not now",
            refusal.0
        );
        assert!(stage.messages("p").iter().all(|told| told.starts_with(&message)), "{:?}", stage.messages("p"));
        refuse(&mut stage, "ElasticQuota", refusal);
        let mut edited = profile.clone();
        edited["spec"]["quotaLabels"] = json!({"a": "b"});
        stage.put(&edited);
        assert_eq!(tries(&mut stage, "ElasticQuota"), TIMES + 1, "{refusal:?}");
        assert_eq!(stage.reasons("p"), ["CreateQuotaFailed", "UpdateQuotaFailed"], "{refusal:?}");
    }
}

#[test]
fn a_quota_that_was_malformed_becomes_the_root_of_its_profile_once_it_is_repaired() {
    let mut stage = Stage::new("");
    stage.refusals_allowed = true;
    let quota = |max: Value| {
        json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
               "metadata": {"name": "q", "namespace": "default"}, "spec": {"max": max}})
    };
    stage.put(&quota(json!({"cpu": "much"})));
    stage.put(&json!({
        "apiVersion": "quota.koordinator.sh/v1alpha1", "kind": "ElasticQuotaProfile",
        "metadata": {"name": "p", "namespace": "default", "labels": {"quota.scheduling.koordinator.sh/tree-id": "t"}},
        "spec": {"quotaName": "q", "nodeSelector": {}},
    }));
    assert_eq!(tries(&mut stage, "ElasticQuota"), 0);
    stage.put(&quota(json!({"cpu": "1"})));
    assert_eq!(tries(&mut stage, "ElasticQuota"), 1);
    let quota = observed(&mut stage, "scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", "q");
    assert_eq!(quota["metadata"]["labels"]["quota.scheduling.koordinator.sh/is-root"], "true", "{quota}");
}

#[test]
fn a_pod_gets_what_its_profile_says_unless_that_is_refused_for_good() {
    const FOR_GOOD: [u16; 3] = [400, 403, 422];
    for refusal in REFUSALS {
        let mut stage = Stage::new("ColocationProfileController=true");
        stage.put(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "default", "labels": {"app": "w"}},
                          "spec": {"containers": [{"name": "c", "image": "i"}]}}));
        refuse(&mut stage, "Pod", refusal);
        stage.put(&json!({
            "apiVersion": "config.koordinator.sh/v1alpha1", "kind": "ClusterColocationProfile",
            "metadata": {"name": "p", "labels": {"config.koordinator.sh/controller-managed": "true"}},
            "spec": {"selector": {"matchLabels": {"app": "w"}}, "labels": {"a": "b"}},
        }));
        let for_good = FOR_GOOD.contains(&refusal.0);
        let (times, reasons) = if for_good { (1, vec!["ProfileNotApplied"]) } else { (TIMES + 1, Vec::new()) };
        assert_eq!(tries(&mut stage, "Pod"), times, "{refusal:?}");
        assert_eq!(stage.reasons("w"), reasons, "{refusal:?}");
    }
}

#[test]
fn failed_writes_are_counted_by_their_reason() {
    let mut stage = cluster();
    let failed = |stage: &Stage, name: &str, reason: &str| {
        let labels = format!(r#"{{reason="{reason}",status="failed"}} "#);
        let lines = stage.metric(name);
        lines.iter().find_map(|line| line.strip_prefix(&labels)).map(str::to_owned)
    };
    refuse(&mut stage, "Node", (404, "NotFound"));
    report(&mut stage, "27");
    tries(&mut stage, "Node");
    let name = "slo_controller_node_resource_reconcile_count";
    assert_eq!(failed(&stage, name, "updateNodeStatus").as_deref(), Some("3"));
    assert_eq!(failed(&stage, name, "updateNodeNotFound"), None);
    refuse(&mut stage, "NodeSLO", (409, "AlreadyExists"));
    stage.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"}}));
    tries(&mut stage, "NodeSLO");
    assert_eq!(failed(&stage, "slo_controller_nodeslo_reconcile_count", "createNodeSLO").as_deref(), Some("3"));
    let faults = stage.metric("koord_reconcile_faults_total");
    assert!(faults.contains(&r#"{controller="noderesource",fault="api"} 3"#.to_owned()), "{faults:?}");
}
