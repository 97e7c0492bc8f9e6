mod access;
mod configuration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_macros::{Resource, Schema};
use serde::{Deserialize, Serialize};

use super::*;
use crate as koord_resource;
use crate::{
    Convert,
    admission::{Handler, Request, Verdict, WebhookEntry, WebhookKind},
    convert::Conversion,
};

/// A cup.
#[derive(Clone, Default, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", crate = koord_resource)]
struct Cup {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: CupSpec,
}

#[derive(Clone, Default, Deserialize, Serialize, Schema)]
#[koord(crate = koord_resource)]
struct CupSpec {
    /// How much it holds.
    #[serde(default)]
    millilitres: i32,
}

impl Convert for Cup {}

const KINDS: &[&[Declared]] = &[&[Declared::of::<Cup>(), Declared::of::<Cup>().older("v1alpha1")]];
const CONVERSIONS: &[Conversion] = &[Conversion::of::<Cup>(&["v1alpha1"])];

const ENTRY: WebhookEntry = WebhookEntry {
    name: "vcup.example.com",
    groups: &["example.com"],
    versions: &["v1"],
    resources: &["cups"],
    ..WebhookEntry::BASE
};
const MUTATING: WebhookEntry = WebhookEntry { kind: WebhookKind::Mutating, name: "mcup.example.com", ..ENTRY };

fn handler(entries: &'static [WebhookEntry]) -> Handler<()> {
    Handler {
        path: "/validate-cup",
        gate: None,
        entries,
        rbac: &[],
        object_type: "cup",
        call: |_: &Request<'_>, (): &()| Verdict::allow(),
    }
}

const PLAIN: RbacRule = RbacRule {
    group: "example.com",
    resource: "cups",
    names: &[],
    urls: &[],
    verbs: &["list"],
    namespace: None,
    role: None,
};

fn waiter() -> Installation {
    Installation::new("waiter", "restaurant", "registry.example.com/waiter:v1")
}

fn served() -> Installation {
    let webhooks = Webhooks::of("waiter", "restaurant", &[handler(&[ENTRY])]);
    Installation { kinds: KINDS, webhooks: Some(webhooks), ..waiter() }
}

/// Kind, namespace and name of each object.
fn named(objects: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let of = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
    };
    objects.iter().map(of).collect()
}

#[track_caller]
fn only<'o>(objects: &'o [Value], kind: &str) -> &'o Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let first = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert_eq!(found.next(), None, "two of {kind}");
    first
}

fn container(objects: &[Value]) -> &Value {
    &only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
}

#[test]
fn names_follow_from_the_name_and_what_others_need_comes_first() {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}});
    let rules =
        vec![PLAIN, RbacRule { namespace: Some("."), ..PLAIN }, RbacRule { namespace: Some("cellar"), ..PLAIN }];
    let objects = install(&Installation { rules, more: vec![settings], ..served() });
    assert_eq!(
        named(&objects),
        [
            "Namespace -/restaurant",
            "CustomResourceDefinition -/cups.example.com",
            "ServiceAccount restaurant/waiter",
            "ClusterRole -/waiter-role",
            "Role cellar/waiter-role",
            "Role restaurant/waiter-role",
            "ClusterRoleBinding -/waiter-rolebinding",
            "RoleBinding cellar/waiter-rolebinding",
            "RoleBinding restaurant/waiter-rolebinding",
            "ConfigMap -/settings",
            "Service restaurant/waiter",
            "Service restaurant/waiter-metrics",
            "NetworkPolicy restaurant/waiter",
            "PodDisruptionBudget restaurant/waiter",
            "Deployment restaurant/waiter",
            "ValidatingWebhookConfiguration -/waiter",
        ]
    );
    for binding in objects.iter().filter(|object| object["roleRef"].is_object()) {
        let role = if binding["kind"] == "RoleBinding" { "Role" } else { "ClusterRole" };
        let group = "rbac.authorization.k8s.io";
        assert_eq!(binding["roleRef"], json!({"apiGroup": group, "kind": role, "name": "waiter-role"}));
        let subject = json!({"kind": "ServiceAccount", "name": "waiter", "namespace": "restaurant"});
        assert_eq!(binding["subjects"], json!([subject]));
    }
    let unlabelled = |object: &&Value| object["metadata"]["labels"]["app.kubernetes.io/name"] != "waiter";
    let unlabelled: Vec<&Value> = objects.iter().filter(unlabelled).map(|object| &object["kind"]).collect();
    assert_eq!(unlabelled, ["CustomResourceDefinition", "ConfigMap"]);
}

#[test]
fn pods_are_found_by_everything_that_selects_them() {
    let selector = Labels::from([("app".to_owned(), "waiter".to_owned())]);
    let objects = install(&Installation { selector, ..served() });
    let deployment = only(&objects, "Deployment");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(*labels, json!({"app": "waiter", "app.kubernetes.io/name": "waiter"}));
    let term = "/spec/template/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm";
    let mut selectors = vec![
        &deployment["spec"]["selector"]["matchLabels"],
        &deployment.pointer(term).unwrap()["labelSelector"]["matchLabels"],
        &only(&objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        &only(&objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ];
    let services = objects.iter().filter(|object| object["kind"] == "Service");
    selectors.extend(services.map(|service| &service["spec"]["selector"]));
    assert_eq!(selectors, [&json!({"app": "waiter"}); 6]);
}

#[test]
fn the_webhook_server_is_where_api_servers_look_for_it() {
    let objects = install(&served());
    let container = container(&objects);
    assert_eq!(container["ports"][0], json!({"name": "webhook-server", "containerPort": 9443, "protocol": "TCP"}));
    let service = objects.iter().find(|object| object["kind"] == "Service").unwrap();
    assert_eq!(service["spec"]["ports"], json!([{"port": 443, "targetPort": "webhook-server"}]));
    let entry = &only(&objects, "ValidatingWebhookConfiguration")["webhooks"][0];
    let client = json!({"service": {"name": "waiter", "namespace": "restaurant", "path": "/validate-cup"}});
    assert_eq!(entry["clientConfig"], client, "applying it again leaves the authority of the server");
    let variables = container["env"].as_array().unwrap().iter();
    let variables: Vec<String> = variables
        .map(|variable| format!("{}={}", variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(
        variables,
        [
            "POD_NAMESPACE=",
            "WEBHOOK_PORT=9443",
            "WEBHOOK_CERT_DIR=/run/waiter-certs",
            "SERVICE_NAME=waiter",
            "SECRET_NAME=waiter-certs",
            "MUTATING_WEBHOOK_NAME=waiter",
            "VALIDATING_WEBHOOK_NAME=waiter",
        ]
    );
    let pod = &only(&objects, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(
        container["volumeMounts"],
        json!([{"name": pod["volumes"][0]["name"], "mountPath": "/run/waiter-certs"}])
    );
    assert_eq!(pod["volumes"][0]["emptyDir"]["medium"], "Memory");
}

#[test]
fn each_entry_stands_in_the_configuration_of_its_kind() {
    let objects = install(&Installation {
        webhooks: Some(Webhooks::of("waiter", "restaurant", &[handler(&[MUTATING, ENTRY])])),
        ..waiter()
    });
    for (kind, name) in [("Mutating", "mcup.example.com"), ("Validating", "vcup.example.com")] {
        let entries = &only(&objects, &format!("{kind}WebhookConfiguration"))["webhooks"];
        assert_eq!((entries.as_array().unwrap().len(), &entries[0]["name"]), (1, &json!(name)));
    }
}

#[test]
fn configurations_have_the_names_that_the_server_keeps_right() {
    let webhooks = Webhooks::of("waiter", "restaurant", &[handler(&[MUTATING, ENTRY])]);
    let webhooks = Webhooks { mutating: "fill".to_owned(), validating: "taste".to_owned(), ..webhooks };
    let objects = install(&Installation { webhooks: Some(webhooks), ..waiter() });
    for (kind, name, variable) in
        [("Mutating", "fill", "MUTATING_WEBHOOK_NAME"), ("Validating", "taste", "VALIDATING_WEBHOOK_NAME")]
    {
        assert_eq!(only(&objects, &format!("{kind}WebhookConfiguration"))["metadata"]["name"], name);
        let variables = container(&objects)["env"].as_array().unwrap();
        assert!(variables.contains(&json!({"name": variable, "value": name})), "{variable}");
    }
}

#[test]
fn only_kinds_that_the_program_converts_name_its_webhook_server() {
    let conversion = |installation: &Installation| {
        only(&install(installation), "CustomResourceDefinition")["spec"]["conversion"].clone()
    };
    let mut installation = served();
    assert_eq!(conversion(&installation), Value::Null);
    installation.webhooks.as_mut().unwrap().conversions = CONVERSIONS;
    let conversion = conversion(&installation);
    assert_eq!(conversion["strategy"], "Webhook");
    let service = json!({"name": "waiter", "namespace": "restaurant", "path": "/convert"});
    assert_eq!(conversion["webhook"]["clientConfig"]["service"], service);
}

#[test]
fn definitions_have_descriptions_unless_none_are_wanted() {
    let described = |descriptions: Descriptions| {
        let definition = only(&install(&Installation { descriptions, ..served() }), "CustomResourceDefinition").clone();
        let versions = definition["spec"]["versions"].as_array().unwrap().iter();
        versions.map(|version| version.to_string().contains("How much it holds.")).collect::<Vec<_>>()
    };
    assert_eq!(described(Descriptions::All), [true, true]);
    assert_eq!(described(Descriptions::None), [false, false]);
}

#[test]
fn the_flags_are_those_of_every_program_and_its_own() {
    let arguments = vec!["--tables=12".to_owned()];
    let elected = Installation { arguments, ..waiter() };
    let flags = ["--enable-leader-election", "--metrics-addr=:8080", "--health-probe-addr=:8000"];
    let namespace = "--leader-election-namespace=restaurant";
    let all = [&flags[..], &[namespace, "--tables=12"][..]].concat();
    assert_eq!(container(&install(&elected))["args"], json!(all));
    let alone = Installation { leader_election: false, metrics_port: None, replicas: 1, ..elected };
    let flags = ["--enable-leader-election=false", "--metrics-addr=0", "--health-probe-addr=:8000", "--tables=12"];
    assert_eq!(container(&install(&alone))["args"], json!(flags));
}

#[test]
fn pods_meet_the_restricted_standard_and_are_probed() {
    let objects = install(&waiter());
    let pod = &only(&objects, "Deployment")["spec"]["template"]["spec"];
    let context = &pod["securityContext"];
    assert_eq!((&context["runAsNonRoot"], &context["runAsUser"]), (&json!(true), &json!(NONROOT)));
    assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
    let container = container(&objects);
    let expected = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
    });
    assert_eq!(container["securityContext"], expected);
    for (probe, path) in [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "health"}), "{probe}");
    }
    for amounts in ["requests", "limits"] {
        assert!(container["resources"][amounts]["memory"].is_string(), "{amounts}");
    }
}

#[test]
fn a_part_that_is_not_wanted_is_left_out() {
    let objects = install(&Installation {
        namespace_labels: None,
        replicas: 1,
        disruption_budget: None,
        metrics_port: None,
        network_policy: false,
        leader_election: false,
        ..waiter()
    });
    assert_eq!(
        named(&objects),
        [
            "ServiceAccount restaurant/waiter",
            "ClusterRole -/waiter-role",
            "ClusterRoleBinding -/waiter-rolebinding",
            "Deployment restaurant/waiter",
        ]
    );
    let pod = &only(&objects, "Deployment")["spec"]["template"]["spec"];
    for absent in ["affinity", "priorityClassName", "volumes"] {
        assert_eq!(pod[absent], Value::Null, "{absent}");
    }
    let container = container(&objects);
    assert_eq!(container["ports"], json!([{"name": "health", "containerPort": 8000, "protocol": "TCP"}]));
    for absent in ["imagePullPolicy", "command", "volumeMounts"] {
        assert_eq!(container[absent], Value::Null, "{absent}");
    }
}

#[test]
fn a_part_that_is_changed_is_as_the_field_says() {
    let pod_security_context = {
        let mut context = restricted_pod(NONROOT);
        context.remove("runAsUser");
        context
    };
    let objects = install(&Installation {
        replicas: 3,
        disruption_budget: Some(2),
        priority_class: Some("system-cluster-critical".to_owned()),
        pull_policy: Some("Always".to_owned()),
        command: vec!["/waiter".to_owned()],
        environment: vec![("MENU".to_owned(), "short".to_owned())],
        health_port: 8001,
        metrics_port: Some(9090),
        metrics_service: Some("orders".to_owned()),
        resources: json!({"requests": {"cpu": "1"}}),
        pod_security_context,
        security_context: Map::new(),
        ..waiter()
    });
    let spec = &only(&objects, "Deployment")["spec"];
    let pod = &spec["template"]["spec"];
    assert_eq!((&spec["replicas"], &pod["priorityClassName"]), (&json!(3), &json!("system-cluster-critical")));
    assert_eq!(pod["securityContext"]["runAsUser"], Value::Null);
    assert_eq!(only(&objects, "PodDisruptionBudget")["spec"]["maxUnavailable"], 2);
    let container = container(&objects);
    assert_eq!((&container["imagePullPolicy"], &container["command"]), (&json!("Always"), &json!(["/waiter"])));
    assert_eq!(container["env"][1], json!({"name": "MENU", "value": "short"}));
    assert_eq!(
        (&container["args"][1], &container["args"][2]),
        (&json!("--metrics-addr=:9090"), &json!("--health-probe-addr=:8001"))
    );
    assert_eq!(
        (&container["resources"], &container["securityContext"]),
        (&json!({"requests": {"cpu": "1"}}), &json!({}))
    );
    let service = only(&objects, "Service");
    assert_eq!((&service["metadata"]["name"], &service["spec"]["clusterIP"]), (&json!("orders"), &json!("None")));
    assert_eq!(service["spec"]["ports"], json!([{"name": "metrics", "port": 9090, "targetPort": "metrics"}]));
}

#[test]
fn connections_reach_webhooks_metrics_and_health_alone() {
    let ingress = |installation: &Installation| {
        let policy = only(&install(installation), "NetworkPolicy")["spec"].clone();
        assert_eq!(policy["policyTypes"], json!(["Ingress"]));
        policy["ingress"].clone()
    };
    let port = |name: &str| json!({"port": name, "protocol": "TCP"});
    let all = json!([{"ports": [port("webhook-server"), port("health")]}, {"ports": [port("metrics")]}]);
    assert_eq!(ingress(&served()), all);
    let monitoring = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}});
    let some = Installation { metrics_from: vec![monitoring.clone()], ..waiter() };
    assert_eq!(
        ingress(&some),
        json!([{"ports": [port("health")]}, {"ports": [port("metrics")], "from": [monitoring]}])
    );
    let without = Installation { metrics_port: None, ..waiter() };
    assert_eq!(ingress(&without), json!([{"ports": [port("health")]}]));
}
