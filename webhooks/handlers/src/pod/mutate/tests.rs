use koord_resource::admission::GroupVersionResource;
use serde_json::{json, value::RawValue};

use super::*;

fn put_profile(ctx: &Ctx, more: &Value) {
    let mut spec = json!({"labels": {"a": "b"}, "qosClass": "BE", "schedulerName": "koord-scheduler"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let profile = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
    ctx.put("ClusterColocationProfile", &profile.to_string()).unwrap();
}

fn verdict(ctx: &Ctx, pod: &Value) -> Verdict {
    let object = RawValue::from_string(pod.to_string()).unwrap();
    let resource = GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() };
    let request = Request { operation: Operation::Create, object: Some(&object), resource, ..Request::default() };
    mutate_pod(&request, ctx.pods())
}

fn after_mutation(ctx: &Ctx, pod: &Value) -> Value {
    let verdict = verdict(ctx, pod);
    assert_eq!(verdict.denial, None);
    if verdict.patch.is_empty() {
        return pod.clone();
    }
    json::apply(pod.clone(), &serde_json::from_slice(verdict.patch.as_bytes()).unwrap()).unwrap()
}

#[test]
fn a_patch_of_other_fields_is_merged_beside_the_rest() {
    let patches = [
        json!({"spec": {"terminationGracePeriodSeconds": 5}}),
        json!({"spec": {"tolerations": [{"key": "batch", "operator": "Exists"}], "hostNetwork": null}}),
        json!({"metadata": {"finalizers": ["example.com/f"]}, "spec": {"dnsConfig": {"nameservers": ["10.0.0.1"]}}}),
        json!({"spec": {"containers": [{"name": "c", "image": "other", "env": [{"name": "A", "value": "1"}]}]}}),
        json!({"metadata": {"labels": {"a": "c", "app": null, "n": "new"}, "annotations": {"x": "y"}}}),
        json!({"spec": {"affinity": {"podAffinity": {"x": []}}, "volumes": [{"name": "v", "emptyDir": {}}]}}),
    ];
    let container = json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}});
    let pods = [
        json!({"metadata": {"name": "n"}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 5}}),
        json!({"metadata": {"name": "n", "labels": {"app": "web"}}, "spec": {"containers": [], "hostNetwork": true, "tolerations": [{"key": "x"}]}}),
        json!({"metadata": {"name": "n", "finalizers": ["x"]}, "spec": {"dnsConfig": {"searches": ["a"]}}}),
        json!({"metadata": {"name": "n"}}),
    ];
    for patch in &patches {
        let (without, with) = (Ctx::detached(|_| false), Ctx::detached(|_| false));
        put_profile(&without, &json!({}));
        put_profile(&with, &json!({ "patch": patch }));
        for pod in &pods {
            let expected = merged(after_mutation(&without, pod), &Overlay::new(patch)).unwrap();
            assert_eq!(after_mutation(&with, pod), expected, "{patch} on {pod}");
        }
    }
}

#[test]
fn a_patch_that_no_pod_can_hold_refuses_the_pod() {
    let network = "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool";
    let env = "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string";
    let malformed = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let container = |more: Value| json!({"spec": {"containers": [{"name": "c", "env": more["env"], "resources": more["resources"]}]}});
    for (patch, message) in [
        (json!({"spec": {"hostNetwork": "yes"}}), network),
        (json!({"spec": {"hostNetwork": "yes", "priority": 5}}), network),
        (container(json!({"env": [{"name": "E", "value": 5}]})), env),
        (container(json!({"resources": {"requests": {"cpu": "abc"}}})), malformed),
    ] {
        let ctx = Ctx::detached(|_| false);
        put_profile(&ctx, &json!({ "patch": patch }));
        let pod = json!({"metadata": {"name": "n"}, "spec": {"containers": [{"name": "c"}]}});
        let denial = verdict(&ctx, &pod).denial.unwrap();
        assert_eq!((denial.code, denial.message.as_str()), (500, message), "{patch}");
    }
}

#[test]
fn profiles_are_drawn_and_applied_one_after_the_other_and_the_first_that_refuses_the_pod_counts() {
    let refusal = |profiles: &[&Value]| {
        let ctx = Ctx::detached(|_| false);
        for (index, spec) in profiles.iter().enumerate() {
            let name = format!("p{index}");
            let profile = json!({"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": spec});
            ctx.put("ClusterColocationProfile", &profile.to_string()).unwrap();
        }
        let annotations = json!({"node.koordinator.sh/extended-resource-spec": "{"});
        let pod = json!({"metadata": {"name": "n", "annotations": annotations}, "spec": {"containers": []}});
        let denial = verdict(&ctx, &pod).denial.unwrap();
        let is_of_pod = denial.message.starts_with("failed to get current extended resource spec");
        assert_eq!(denial.code, if is_of_pod { 400 } else { 500 }, "a profile is not the pod's");
        denial.message
    };
    let applied = json!({"labels": {"a": "b"}, "patch": {"spec": {"hostNetwork": true}}});
    let missing = json!({"priorityClassName": "gone"});
    let odd = json!({"probability": "half"});
    let broken = json!({"patch": {"spec": {"hostNetwork": "yes"}}});
    let reasons = [&missing, &odd, &broken].map(|profile| (profile, refusal(&[profile])));
    for (first, message) in &reasons {
        for (second, other) in &reasons {
            assert_eq!(first == second, message == other);
            assert_eq!(&refusal(&[&applied, first, second]), message, "{first} {second}");
        }
    }
    assert!(refusal(&[&applied]).starts_with("failed to get current extended resource spec"));
}

#[test]
fn an_annotation_of_extended_resources_that_cannot_be_decoded_refuses_the_pod() {
    let ctx = Ctx::detached(|_| false);
    let malformed = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let amount =
        |amount: &str| format!(r#"{{"containers":{{"main":{{"requests":{{"kubernetes.io/batch-cpu":{amount}}}}}}}}}"#);
    for (text, reason) in [
        (amount(r#""abc""#), malformed),
        (amount(r#""""#), malformed),
        (amount("true"), malformed),
        ("[]".to_owned(), "json: cannot unmarshal array into Go value of type extension.ExtendedResourceSpec"),
        (
            r#"{"containers":{"main":[]}}"#.to_owned(),
            "json: cannot unmarshal array into Go struct field ExtendedResourceSpec.containers of type extension.ExtendedResourceContainerSpec",
        ),
        (
            r#"{"containers":[]}"#.to_owned(),
            "json: cannot unmarshal array into Go struct field ExtendedResourceSpec.containers of type map[string]extension.ExtendedResourceContainerSpec",
        ),
        ("{".to_owned(), "unexpected end of JSON input"),
    ] {
        let annotations = json!({"node.koordinator.sh/extended-resource-spec": text});
        let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": []}});
        let denial = verdict(&ctx, &pod).denial.unwrap();
        let message = format!("failed to get current extended resource spec, err: {reason}");
        assert_eq!((denial.code, denial.message), (400, message), "{text}");
    }
    let annotations = json!({"node.koordinator.sh/extended-resource-spec": amount("null")});
    let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": []}});
    let after = after_mutation(&ctx, &pod);
    assert_eq!(after["metadata"]["annotations"]["node.koordinator.sh/extended-resource-spec"], "{}");
}

#[test]
fn amounts_that_a_profile_translates_are_compared_by_their_digits() {
    let ctx = Ctx::detached(|_| false);
    put_profile(&ctx, &json!({"labels": {"koordinator.sh/priority-class": "koord-batch"}}));
    let resources = json!({"requests": {"cpu": "1", "memory": "1024Mi"}, "limits": {"cpu": "1", "memory": "1024Mi"}});
    let annotation = |cpu: &str, memory: &str| {
        let list = json!({"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": memory});
        json!({"containers": {"main": {"limits": list, "requests": list}}}).to_string()
    };
    for (cpu, memory, stays) in [("1000", "1024Mi", true), ("1k", "1024Mi", false), ("1000", "1Gi", false)] {
        let annotations = json!({"node.koordinator.sh/extended-resource-spec": annotation(cpu, memory)});
        let pod = json!({"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "main", "resources": resources}]}});
        let after = after_mutation(&ctx, &pod)["metadata"]["annotations"].clone();
        let expected = if stays { annotation(cpu, memory) } else { annotation("1k", "1Gi") };
        assert_eq!(after["node.koordinator.sh/extended-resource-spec"], expected, "{cpu} {memory}");
    }
}

#[test]
fn null_is_an_empty_container_and_an_annotation_without_containers() {
    let ctx = Ctx::detached(|_| false);
    let annotations = json!({"node.koordinator.sh/extended-resource-spec": "null"});
    let pod =
        json!({"metadata": {"annotations": annotations}, "spec": {"containers": [null], "initContainers": [null]}});
    assert_eq!(after_mutation(&ctx, &pod), pod);
    let resources = json!({"requests": {"kubernetes.io/batch-cpu": " 1k "}});
    let second = json!({"spec": {"containers": [null, {"name": "c", "resources": resources}]}});
    let written = after_mutation(&ctx, &second)["metadata"]["annotations"].clone();
    let spec = r#"{"containers":{"c":{"requests":{"kubernetes.io/batch-cpu":"1k"}}}}"#;
    assert_eq!(written, json!({"node.koordinator.sh/extended-resource-spec": spec}));
}

#[test]
fn an_empty_quota_name_counts_as_none() {
    let ctx = Ctx::detached(|gate| gate == "MultiQuotaTree");
    let tree = json!({"quota.scheduling.koordinator.sh/tree-id": "t"});
    let metadata =
        |name: &str| json!({"name": name, "namespace": "team", "uid": name, "resourceVersion": "1", "labels": tree});
    ctx.put("ElasticQuota", &json!({"metadata": metadata("team")}).to_string()).unwrap();
    let nodes = json!({"nodeSelector": {"matchLabels": {"pool": "a"}}});
    ctx.put("ElasticQuotaProfile", &json!({"metadata": metadata("p"), "spec": nodes}).to_string()).unwrap();
    for labels in [json!({}), json!({"quota.scheduling.koordinator.sh/name": ""})] {
        let pod = json!({"metadata": {"namespace": "team", "labels": labels}, "spec": {"containers": []}});
        let after = after_mutation(&ctx, &pod);
        let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        let terms = &after.pointer(required).unwrap()["nodeSelectorTerms"];
        assert_eq!(terms[0]["matchExpressions"], json!([{"key": "pool", "operator": "In", "values": ["a"]}]));
    }
}

#[test]
fn a_profile_does_not_apply_in_a_namespace_that_nobody_knows() {
    let ctx = Ctx::detached(|_| false);
    let put = |kind: &str, object: &str| ctx.put(kind, object).unwrap();
    put(
        "ClusterColocationProfile",
        r#"{"metadata":{"name":"p","uid":"u","resourceVersion":"1"},"spec":{"namespaceSelector":{"matchLabels":{"team":"x"}},"labels":{"a":"b"}}}"#,
    );
    let pod = RawValue::from_string(r#"{"metadata":{"name":"web"}}"#.to_owned()).unwrap();
    let resource = GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() };
    let request = Request {
        namespace: "new".into(),
        operation: Operation::Create,
        object: Some(&pod),
        resource,
        ..Request::default()
    };
    let verdict = mutate_pod(&request, ctx.pods());
    assert_eq!((verdict.patch.is_empty(), verdict.provisional, verdict.denial), (true, true, None));
    assert_eq!(
        verdict.warnings,
        [
            r#"ClusterColocationProfile "p" was not applied: it selects namespaces by their labels, and namespace "new" is not known yet"#
        ]
    );
    put("Namespace", r#"{"metadata":{"name":"new","uid":"n","resourceVersion":"2","labels":{"team":"x"}}}"#);
    let verdict = mutate_pod(&request, ctx.pods());
    assert_eq!(verdict.patch.as_str(), r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#);
    assert!(!verdict.provisional && verdict.warnings.is_empty());
}
