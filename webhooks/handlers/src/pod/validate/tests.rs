use koord_resource::admission::GroupVersionResource;
use serde_json::{Value, json, value::RawValue};

use super::*;

/// What is said of a pod in namespace `team`; nothing when it is admitted.
fn refused(ctx: &Ctx, pod: &Value, old: Option<&Value>) -> Option<String> {
    let raw = |pod: &Value| RawValue::from_string(pod.to_string()).unwrap();
    let (object, old_object) = (raw(pod), old.map(raw));
    let request = Request {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        namespace: "team".into(),
        object: Some(&object),
        old_object: old_object.as_deref(),
        resource: GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() },
        ..Request::default()
    };
    validate_pod(&request, ctx.pods()).denial.map(|denial| denial.message)
}

#[test]
fn a_pod_that_is_preemptible_or_not_stays_so_and_empty_is_absent() {
    let ctx = Ctx::detached(|_| false);
    let pod = |preemptible: Value| json!({"metadata": {"labels": {"quota.scheduling.koordinator.sh/preemptible": preemptible}}, "spec": {"containers": []}});
    let absent = json!({"metadata": {}, "spec": {"containers": []}});
    let forbidden = Some("Preemptible label is forbidden modify now.".to_owned());
    for (new, old, refusal) in [
        (&pod(json!("")), &absent, None),
        (&absent, &pod(json!("")), None),
        (&pod(json!("true")), &pod(json!("")), forbidden.clone()),
        (&absent, &pod(json!("false")), forbidden),
    ] {
        assert_eq!(refused(&ctx, new, Some(old)), refusal, "{new} {old}");
    }
}

#[test]
fn cpus_of_lsr_pods_are_whole_where_both_are_rounded_up() {
    let ctx = Ctx::detached(|_| false);
    for (cpu, is_whole) in [("2", true), ("2000m", true), ("1999900u", true), ("1500m", false), ("1998900u", false)] {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
        let labels = json!({"koordinator.sh/qosClass": "LSR"});
        let pod = json!({"metadata": {"labels": labels}, "spec": {"priority": 9000, "containers": [container]}});
        assert_eq!(refused(&ctx, &pod, None).is_none(), is_whole, "{cpu}");
    }
}

#[test]
fn a_pod_without_a_namespace_is_in_that_of_the_request() {
    let ctx = Ctx::detached(|gate| gate == "EnablePodEnhancedValidator");
    let metadata = json!({"name": "team", "namespace": "team", "uid": "u", "resourceVersion": "1",
        "labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}});
    ctx.put("ElasticQuota", &json!({"metadata": metadata}).to_string()).unwrap();
    let metadata = json!({"name": "pod-enhanced-validator-config", "namespace": "koordinator-system", "uid": "u", "resourceVersion": "1"});
    let rules = json!([{"requiredLabels": ["app"], "namespaceWhitelist": ["team"]}]).to_string();
    ctx.put("ConfigMap", &json!({"metadata": metadata, "data": {"enable": "true", "rules": rules}}).to_string())
        .unwrap();
    let of_parent = "pod can not be linked to a parentQuotaGroup,quota:team, pod:p";
    let pod = |namespace: &str| json!({"metadata": {"name": "p", "namespace": namespace}, "spec": {"containers": []}});
    assert_eq!(refused(&ctx, &pod(""), None).as_deref(), Some(of_parent));
    assert_eq!(refused(&ctx, &pod("team"), None).as_deref(), Some(of_parent));
    assert_eq!(refused(&ctx, &pod("other"), None).as_deref(), Some("required label 'app' is missing"));
}

#[test]
fn of_a_pod_that_is_neither_created_nor_updated_only_the_classes_are_checked() {
    let ctx = Ctx::detached(|gate| ["ValidatePodDeviceResource", "EnablePodEnhancedValidator"].contains(&gate));
    let metadata = json!({"name": "pod-enhanced-validator-config", "namespace": "koordinator-system", "uid": "u", "resourceVersion": "1"});
    let rules = json!([{"requiredLabels": ["app"]}]).to_string();
    ctx.put("ConfigMap", &json!({"metadata": metadata, "data": {"enable": "true", "rules": rules}}).to_string())
        .unwrap();
    let pod = |metadata: Value, requests: Value| json!({"metadata": metadata, "spec": {"priority": 9500, "containers": [{"name": "c", "resources": {"requests": requests}}]}});
    let refused = |operation: Operation, pod: &Value| {
        let object = RawValue::from_string(pod.to_string()).unwrap();
        let request = Request {
            operation,
            namespace: "team".into(),
            object: Some(&object),
            old_object: (operation == Operation::Update).then_some(&object),
            resource: GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() },
            ..Request::default()
        };
        validate_pod(&request, ctx.pods()).denial.map(|denial| denial.message)
    };
    let only_when_written = [
        (
            pod(json!({"annotations": {"scheduling.koordinator.sh/reserve-pod": "true"}}), json!({})),
            "annotations.scheduling.koordinator.sh/reserve-pod: Forbidden: cannot set in annotations",
        ),
        (
            pod(json!({"labels": {"app": "a"}}), json!({"koordinator.sh/gpu": "0"})),
            r#"pod.spec.containers[*].resources.requests: Invalid value: "0": the requested GPU must be greater than zero"#,
        ),
        (pod(json!({}), json!({})), "required label 'app' is missing"),
    ];
    for (pod, message) in only_when_written {
        for operation in [Operation::Create, Operation::Update] {
            assert_eq!(refused(operation, &pod).as_deref(), Some(message), "{operation:?}");
        }
        assert_eq!(refused(Operation::Connect, &pod), None, "{message}");
    }
    let classes =
        "Pod: Forbidden: koordinator.sh/qosClass=BE and priorityClass=koord-prod cannot be used in combination";
    let pod = pod(json!({"labels": {"app": "a", "koordinator.sh/qosClass": "BE"}}), json!({}));
    assert_eq!(refused(Operation::Connect, &pod).as_deref(), Some(classes));
}

#[test]
fn devices_are_checked_as_the_quota_counts_them() {
    const GATES: [&str; 4] = [
        "EnableQuotaAdmission",
        "ElasticQuotaEvaluationTransformPod",
        "ReplaceResourcesTransformer",
        "ValidatePodDeviceResource",
    ];
    let requests = json!({"koordinator.sh/gpu": "150"});
    let pod = |quota: &str, replacements: &str| {
        let labels = json!({"quota.scheduling.koordinator.sh/name": quota});
        let annotations = json!({"pod.koordinator.sh/replace-resources": replacements});
        let spec = json!({"containers": [{"name": "c", "resources": {"requests": requests}}]});
        json!({"metadata": {"name": "p", "labels": labels, "annotations": annotations}, "spec": spec}).to_string()
    };
    let is_admitted = |without: &str, quota: &str, replacements: &str| {
        let ctx = Ctx::detached(|gate| GATES.contains(&gate) && gate != without);
        let metadata = json!({"name": "q", "namespace": "team", "uid": "u", "resourceVersion": "1"});
        ctx.put("ElasticQuota", &json!({"metadata": metadata, "spec": {"max": {"cpu": "1"}}}).to_string()).unwrap();
        let object = RawValue::from_string(pod(quota, replacements)).unwrap();
        let request = Request {
            operation: Operation::Create,
            namespace: "team".into(),
            object: Some(&object),
            resource: GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() },
            ..Request::default()
        };
        let charged = (without != "EnableQuotaAdmission").then_some(Timestamp::UNIX_EPOCH);
        decide(&request, ctx.pods(), charged).0.denial.is_none()
    };
    assert!(is_admitted("", "q", "koordinator.sh/gpu:example.com/gpu"), "nothing of what is left is checked");
    assert!(is_admitted("", "q", "koordinator.sh/gpu:"));
    assert!(!is_admitted("", "q", ""));
    assert!(!is_admitted("", "", "koordinator.sh/gpu:"), "the default quota is not looked at");
    assert!(is_admitted("ValidatePodDeviceResource", "q", ""));
    for gate in &GATES[..3] {
        assert!(!is_admitted(gate, "q", "koordinator.sh/gpu:"), "{gate}");
    }
}
