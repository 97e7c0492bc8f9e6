//! What the chart renders, without a cluster.

use std::{collections::BTreeMap, path::Path};

use integration::{Helm, installed::repository};
use koord_manager_assembly::Options;
use koord_webhook_handlers::{DECLARED_WEBHOOKS, Declared, HANDLERS};
use koord_webhook_server::configuration::advise;
use serde_json::{Value, json};

use super::{chart, data, entries, find, rendered, texts};
use crate::place::folder;

pub(super) fn helm() -> Option<Helm> {
    let folder = folder("helm-template");
    Helm::find(&folder.join("none"), &folder).unwrap()
}

#[test]
fn helm_finds_no_fault_with_the_chart() {
    let Some(helm) = helm() else { return };
    for values in [None, Some(data("values-of-0.7.0.yaml")), Some(data("original-chart/values.yaml"))] {
        let values = values.map(|file| format!("--values={file}"));
        let linted = helm
            .try_run(
                &[&["lint", "--strict", &chart()], &*values.iter().map(String::as_str).collect::<Vec<_>>()].concat(),
            )
            .unwrap();
        assert_eq!(linted.code, 0, "{}{}", linted.stdout, linted.stderr);
    }
}

#[test]
fn the_objects_are_those_of_the_original_manager_and_a_few_more() {
    let Some(helm) = helm() else { return };
    let objects = rendered(&helm, &[]).unwrap();
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for object in &objects {
        names.entry(object["kind"].as_str().unwrap()).or_default().push(object["metadata"]["name"].as_str().unwrap());
    }
    assert_eq!(names.remove("CustomResourceDefinition").unwrap().len(), 13);
    for (kind, expected) in [
        ("PriorityClass", &["koord-prod", "koord-mid", "koord-batch", "koord-free"][..]),
        ("Namespace", &["koordinator-system"]),
        ("Service", &["koordinator-webhook-service"]),
        ("Secret", &["koordinator-webhook-certs"]),
        ("ConfigMap", &["slo-controller-config"]),
        ("ServiceAccount", &["koord-manager"]),
        ("Deployment", &["koord-manager"]),
        ("ClusterRole", &["koord-manager-role"]),
        ("ClusterRoleBinding", &["koord-manager-rolebinding"]),
        ("Role", &["koord-manager-role"]),
        ("RoleBinding", &["koord-manager-rolebinding"]),
        ("MutatingWebhookConfiguration", &["koordinator-mutating-webhook-configuration"]),
        ("ValidatingWebhookConfiguration", &["koordinator-validating-webhook-configuration"]),
        ("PodDisruptionBudget", &["koord-manager"]),
        ("NetworkPolicy", &["koord-manager"]),
    ] {
        assert_eq!(names.remove(kind).unwrap_or_default(), expected, "{kind}");
    }
    assert!(names.is_empty(), "{names:?}");
    let namespaced = objects.iter().filter_map(|object| object["metadata"]["namespace"].as_str());
    assert!(namespaced.clone().count() > 8 && namespaced.clone().all(|namespace| namespace == "koordinator-system"));
}

#[test]
fn the_deployment_is_the_originals_with_less_power() {
    let Some(helm) = helm() else { return };
    let objects =
        rendered(&helm, &["--set=manager.metrics.addr=127.0.0.1,manager.log.level=5,featureGates=AllBeta=true"])
            .unwrap();
    let deployment = &find(&objects, "Deployment", "koord-manager").unwrap()["spec"];
    assert_eq!((&deployment["replicas"], &deployment["minReadySeconds"]), (&json!(2), &json!(3)));
    assert_eq!(deployment["strategy"]["rollingUpdate"], json!({"maxUnavailable": 0, "maxSurge": "100%"}));
    // Immutable: a cluster with the original's could not be upgraded otherwise.
    assert_eq!(deployment["selector"], json!({"matchLabels": {"koord-app": "koord-manager"}}));
    let pod = &deployment["template"]["spec"];
    assert_eq!(pod["terminationGracePeriodSeconds"], 10);
    let container = &pod["containers"][0];
    assert_eq!(
        texts(&container["args"]),
        [
            "--enable-leader-election",
            "--metrics-addr=127.0.0.1:8080",
            "--health-probe-addr=:8000",
            "--leader-election-namespace=koordinator-system",
            "--logtostderr=true",
            "--v=5",
            "--feature-gates=AllBeta=true",
            "--sync-period=0",
            "--config-namespace=koordinator-system",
        ]
    );
    let ports = container["ports"].as_array().unwrap().iter();
    let ports: BTreeMap<_, _> = ports.map(|port| (port["name"].as_str().unwrap(), &port["containerPort"])).collect();
    assert_eq!(
        ports,
        BTreeMap::from([("webhook-server", &json!(9443)), ("metrics", &json!(8080)), ("health", &json!(8000))])
    );
    assert_eq!(container["resources"]["limits"], json!({"cpu": "1000m", "memory": "1Gi"}));
    // What the Pod Security Standard "restricted" asks for.
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let security = &container["securityContext"];
    assert_eq!(
        (&security["allowPrivilegeEscalation"], &security["capabilities"]["drop"], &security["readOnlyRootFilesystem"]),
        (&json!(false), &json!(["ALL"]), &json!(true))
    );
    let service = find(&objects, "Service", "koordinator-webhook-service").unwrap();
    assert_eq!(service["spec"]["ports"], json!([{"port": 443, "targetPort": "webhook-server"}]));
    let namespace = find(&objects, "Namespace", "koordinator-system").unwrap();
    assert_eq!(
        namespace["metadata"]["labels"],
        json!({"control-plane": "koordinator", "controle-plane": "koordinator"})
    );
}

#[test]
fn the_definitions_are_those_of_config_and_stay() {
    let Some(helm) = helm() else { return };
    let objects = rendered(&helm, &[]).unwrap();
    let folder = integration::installed::repository("config/crd/bases");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let wanted: Value = serde_saphyr::from_str(&text).unwrap();
        let mut found =
            find(&objects, "CustomResourceDefinition", wanted["metadata"]["name"].as_str().unwrap()).unwrap().clone();
        let annotations = found["metadata"]["annotations"].as_object_mut().unwrap();
        assert_eq!(annotations.remove("helm.sh/resource-policy"), Some(json!("keep")));
        assert_eq!(found, wanted);
        count += 1;
    }
    assert_eq!(count, 13);
    let definitions = |set: &str| {
        let objects = rendered(&helm, &[&format!("--set={set}")]).unwrap();
        let found: Vec<Value> =
            objects.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition").collect();
        found
    };
    assert_eq!(definitions("crds.managed=false"), Vec::<Value>::new());
    assert_eq!(definitions("crds.podgroups=false,crds.devices=false").len(), 11);
    // As `--reuse-values` of a release that has not had the key.
    assert_eq!(definitions("crds.podgroups=null,crds.keep=null").len(), 13);
    let leaving = definitions("crds.keep=false");
    assert!(
        leaving.iter().all(|definition| definition["metadata"]["annotations"]["helm.sh/resource-policy"].is_null())
    );
}

#[test]
fn entries_are_there_exactly_while_the_manager_answers_them() {
    let Some(helm) = helm() else { return };
    for list in [
        "",
        "AllAlpha=true",
        "AllBeta=false",
        "AllBeta=false,PodMutatingWebhook=true",
        "PodValidatingWebhook=false",
        "NodeMutatingWebhook=true, NodeValidatingWebhook=T",
        "ConfigMapValidatingWebhook=false,AllAlpha=true",
        "ReservationMutatingWebhook=true,ElasticMutatingWebhook=0,ElasticValidatingWebhook=FALSE",
        "DeclaredWebhooks=false",
        "BindingAdmissionWebhook=true",
        "BindingAdmissionWebhook=true,PodValidatingWebhook=false",
        "WebhookFramework=false,AllAlpha=true",
    ] {
        let options = Options::from_arguments(["koord-manager".to_owned(), format!("--feature-gates={list}")]).unwrap();
        let checked = options.check().unwrap();
        let (gates, mode) = (&checked.settings.gates, checked.declared_webhooks());
        let answers = |path: &str, gate: Option<&str>| {
            let decides = path != "/validate-pod-binding" || gates.enabled("BindingAdmissionWebhook");
            let is_on = |gate: &str| match mode {
                _ if gate != DECLARED_WEBHOOKS => gates.enabled(gate),
                Declared::Off => false,
                Declared::Warn => path.starts_with("/validate"),
                Declared::Enforce => true,
            };
            gates.enabled("WebhookFramework") && decides && gate.is_none_or(is_on)
        };
        let answered = HANDLERS.iter().filter(|handler| answers(handler.path, handler.gate));
        let mut expected: Vec<&str> =
            answered.flat_map(|handler| handler.entries.iter().map(|entry| entry.name)).collect();
        let objects = rendered(&helm, &[&format!("--set=featureGates={}", list.replace(',', "\\,"))]).unwrap();
        let mut found: Vec<&str> = entries(&objects).map(|entry| entry["name"].as_str().unwrap()).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{list:?}");
    }
}

#[test]
fn entries_say_what_the_values_say() {
    let Some(helm) = helm() else { return };
    let objects = rendered(
        &helm,
        &[
            "--set=featureGates=AllAlpha=true,installation.namespace=colocation,webhookConfiguration.timeoutSeconds=3",
            "--set=webhookConfiguration.failurePolicy.pods=Fail,webhookConfiguration.failurePolicy.nodeStatus=Fail",
            "--set=webhookConfiguration.excludedNamespaces={kube-system,monitoring}",
        ],
    )
    .unwrap();
    let entry = |name: &str| entries(&objects).find(|entry| entry["name"] == name).unwrap();
    for (name, policy) in [
        ("mpod-create.koordinator.sh", "Fail"),
        ("mpod-update.koordinator.sh", "Fail"),
        ("vpod.koordinator.sh", "Fail"),
        ("mnode-status.koordinator.sh", "Fail"),
        ("vnode.koordinator.sh", "Ignore"),
        ("melasticquota.koordinator.sh", "Ignore"),
        ("mreservation-create.koordinator.sh", "Ignore"),
        ("vconfigmap.koordinator.sh", "Fail"),
        ("vpodbinding.koordinator.sh", "Ignore"),
        ("vnodeslo.koordinator.sh", "Ignore"),
    ] {
        assert_eq!(entry(name)["failurePolicy"], policy, "{name}");
    }
    for entry in entries(&objects) {
        assert_eq!(entry["timeoutSeconds"], 3);
        assert_eq!((&entry["clientConfig"]["caBundle"], &entry["sideEffects"]), (&Value::Null, &json!("None")));
        let service = &entry["clientConfig"]["service"];
        assert_eq!(
            (&service["namespace"], &service["name"]),
            (&json!("colocation"), &json!("koordinator-webhook-service"))
        );
    }
    let outside = json!([{
        "name": "outside-system-namespaces",
        "expression": r#"!(request.namespace in ["kube-system","monitoring","colocation"])"#,
    }]);
    for name in ["mpod-create.koordinator.sh", "mpod-update.koordinator.sh", "vpod.koordinator.sh"] {
        assert_eq!(entry(name)["matchConditions"], outside, "{name}");
    }
    let quotas = entry("velasticquota.koordinator.sh");
    assert_eq!((&quotas["matchConditions"], &quotas["namespaceSelector"]), (&Value::Null, &json!({})));
    for configuration in objects.iter().filter(|object| object["webhooks"].is_array()) {
        let template: Value =
            serde_json::from_str(configuration["metadata"]["annotations"]["template"].as_str().unwrap()).unwrap();
        assert_eq!(template, configuration["webhooks"]);
    }
}

#[test]
fn derived_rules_warn_unless_the_values_say_otherwise() {
    let Some(helm) = helm() else { return };
    let of = |objects: &[Value], name: &str| entries(objects).find(|entry| entry["name"] == name).cloned();
    let argument = |objects: &[Value]| {
        let deployment = find(objects, "Deployment", "koord-manager").unwrap();
        let args = texts(&deployment["spec"]["template"]["spec"]["containers"][0]["args"]);
        args.iter().find_map(|argument| argument.strip_prefix("--declared-webhooks=")).map(str::to_owned)
    };
    let objects = rendered(
        &helm,
        &["--set=installation.namespace=colocation,webhookConfiguration.failurePolicy.reservations=Fail"],
    )
    .unwrap();
    assert_eq!(argument(&objects), None, "the original does not know the flag");
    let mut wanted = of(&objects, "vreservation.koordinator.sh").unwrap();
    assert_eq!((&wanted["failurePolicy"], &wanted["timeoutSeconds"]), (&json!("Ignore"), &json!(3)));
    let written = wanted.clone();
    advise(&mut wanted, "colocation");
    assert_eq!(written, wanted, "the manager makes the same of it");
    assert_eq!(of(&objects, "mpodmigrationjob.koordinator.sh"), None);
    let older = rendered(&helm, &["--kube-version=1.27"]).unwrap();
    assert_eq!(of(&older, "vreservation.koordinator.sh"), None);
    for (set, flag, policy) in [
        ("manager.declaredWebhooks=enforce", "enforce", Some("Ignore")),
        ("manager.declaredWebhooks=off", "off", None),
        ("manager.declaredWebhooks=false", "off", None),
    ] {
        let objects = rendered(&helm, &[&format!("--set={set}")]).unwrap();
        assert_eq!(argument(&objects).as_deref(), Some(flag), "{set}");
        let entry = of(&objects, "vreservation.koordinator.sh");
        assert_eq!(entry.as_ref().and_then(|entry| entry["failurePolicy"].as_str()), policy, "{set}");
        assert!(entry.is_none_or(|entry| entry["matchConditions"].is_null()));
    }
    assert!(rendered(&helm, &["--set=manager.declaredWebhooks=on"]).is_err());
}

#[test]
fn pods_may_be_changed_only_where_the_gate_asks_for_it() {
    let Some(helm) = helm() else { return };
    let may_change_pods = |gates: &str| {
        let objects = rendered(&helm, &[&format!("--set=featureGates={gates}")]).unwrap();
        let roles = objects.iter().filter(|object| object["kind"] == "ClusterRole");
        let rules = roles.flat_map(|role| role["rules"].as_array().unwrap());
        let rules = rules.filter(|rule| texts(&rule["resources"]).contains(&"pods"));
        rules.into_iter().any(|rule| texts(&rule["verbs"]).contains(&"patch"))
    };
    assert!(!may_change_pods("") && !may_change_pods("AllAlpha=true\\,ColocationProfileController=false"));
    assert!(may_change_pods("AllAlpha=true") && may_change_pods("ColocationProfileController=true"));
}

#[test]
fn the_scheduler_may_do_more_only_where_a_gate_asks_for_it() {
    let Some(helm) = helm() else { return };
    let with = |gates: &str| {
        rendered(&helm, &["--set=scheduler.enabled=true", &format!("--set=scheduler.featureGates={gates}")]).unwrap()
    };
    let may_patch_nodes = |gates: &str| {
        let objects = with(gates);
        let of_scheduler =
            |object: &&Value| object["metadata"]["name"].as_str().unwrap().starts_with("koord-scheduler");
        let roles = objects.iter().filter(of_scheduler).filter(|object| object["kind"] == "ClusterRole");
        let rules = roles.flat_map(|role| role["rules"].as_array().unwrap());
        let rules = rules.filter(|rule| texts(&rule["resources"]).contains(&"nodes"));
        rules.into_iter().any(|rule| texts(&rule["verbs"]).contains(&"patch"))
    };
    for gates in ["", "ResizePod=true", "AllAlpha=true\\,DevicePluginAdaption=false", "DevicePluginAdaption=0"] {
        assert!(!may_patch_nodes(gates), "{gates}");
    }
    assert!(may_patch_nodes("AllAlpha=true") && may_patch_nodes("ResizePod=true\\, DevicePluginAdaption=true"));
    for gated in koord_scheduler::GATED {
        let folder = integration::installed::repository(&format!("config/scheduler/{}", gated.name));
        for file in ["role.yaml", "role_binding.yaml"] {
            is_rendered(&with(&format!("{}=true", gated.gate)), &folder.join(file));
        }
    }
}

#[test]
fn the_scheduler_can_be_reached_at_its_ports_alone_and_keeps_the_lease_that_it_is_configured_with() {
    let Some(helm) = helm() else { return };
    let with = |sets: &[&str]| rendered(&helm, &[&["--set=scheduler.enabled=true"], sets].concat()).unwrap();
    let policy = |sets: &[&str]| find(&with(sets), "NetworkPolicy", "koord-scheduler").cloned();
    let ports = |sets: &[&str]| {
        let policy = policy(sets).unwrap();
        assert_eq!(policy["spec"]["podSelector"]["matchLabels"], json!({"koord-app": "koord-scheduler"}));
        let rules = policy["spec"]["ingress"].as_array().unwrap().clone();
        rules.iter().map(|rule| (rule["ports"][0]["port"].clone(), rule["from"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(ports(&[]), [(json!("metrics"), Value::Null), (json!(10259), Value::Null)]);
    let elsewhere = "--set=scheduler.extraArgs={--v=2,--secure-port=20259}";
    assert_eq!(ports(&[elsewhere])[1].0, 20259);
    assert_eq!(ports(&["--set=scheduler.extraArgs={--secure-port=0}"]).len(), 1);
    let from = r#"--set-json=scheduler.networkPolicy.metricsFrom=[{"namespaceSelector":{}}]"#;
    assert_eq!(ports(&[from])[0].1, json!([{"namespaceSelector": {}}]));
    assert_eq!(policy(&["--set=scheduler.networkPolicy.enabled=false"]), None);
    // A release that is upgraded with its own values has none of this section.
    assert!(policy(&["--set-json=scheduler.networkPolicy=null"]).is_some());

    let lease = |sets: &[&str]| {
        let objects = with(sets);
        let role = find(&objects, "Role", "koord-scheduler-role").unwrap();
        let rules = role["rules"].as_array().unwrap().iter();
        let of_leases: Vec<_> = rules.filter(|rule| texts(&rule["resources"]) == ["leases"]).collect();
        assert_eq!((texts(&of_leases[0]["verbs"]), &of_leases[0]["resourceNames"]), (vec!["create"], &Value::Null));
        assert_eq!((of_leases.len(), texts(&of_leases[1]["verbs"])), (2, vec!["get", "update", "watch"]));
        of_leases[1]["resourceNames"].clone()
    };
    assert_eq!(lease(&[]), json!(["koord-scheduler"]));
    let config = "--set=scheduler.config.leaderElection.resourceName=mine";
    assert_eq!(lease(&[config]), json!(["mine"]));
    assert_eq!(lease(&["--set=scheduler.config.kind=KubeSchedulerConfiguration"]), json!(["kube-scheduler"]));
    assert_eq!(lease(&[config, "--set=scheduler.extraArgs={--leader-elect-resource-name=ours}"]), json!(["ours"]));
}

#[test]
fn older_servers_are_not_asked_for_what_they_lack() {
    let Some(helm) = helm() else { return };
    let objects = rendered(&helm, &["--kube-version=1.20"]).unwrap();
    assert!(entries(&objects).all(|entry| entry["matchConditions"].is_null()));
    assert_eq!(find(&objects, "PodDisruptionBudget", "koord-manager").unwrap()["apiVersion"], "policy/v1beta1");
}

#[test]
fn a_values_file_of_the_original_installs_this_manager() {
    let Some(helm) = helm() else { return };
    for (file, image, replicas, port) in [
        ("values-of-0.7.0.yaml", "registry.example/koordinatorsh/koord-manager", 3, 9443),
        ("original-chart/values.yaml", "registry.example/koordinator-sh/koord-manager", 2, 9876),
    ] {
        let objects = rendered(&helm, &[&format!("--values={}", data(file))]).unwrap();
        let deployment = find(&objects, "Deployment", "koord-manager").unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], format!("{image}:v{}-rust", env!("CARGO_PKG_VERSION")), "{file}");
        assert_eq!(deployment["spec"]["replicas"], replicas, "{file}");
        assert_eq!(container["ports"][0]["containerPort"], port, "{file}");
        assert!(objects.iter().all(|object| object["kind"] != "DaemonSet"), "{file}");
    }
    let image = |sets: &str| {
        let objects = rendered(&helm, &[sets]).unwrap();
        let pod = find(&objects, "Deployment", "koord-manager").unwrap()["spec"]["template"]["spec"].clone();
        pod["containers"][0]["image"].as_str().unwrap().to_owned()
    };
    let ours = format!("koordinator-sh/koord-manager:v{}-rust", env!("CARGO_PKG_VERSION"));
    assert_eq!(image("--set=featureGates="), ours);
    assert_eq!(image("--set=manager.image.tag=v0.1.0"), ours, "the original had such a release too");
    let own = image("--set=imageRepositoryHost=registry.example,manager.image.tag=mine");
    assert_eq!(own, "registry.example/koordinator-sh/koord-manager:mine");
}

#[test]
fn what_a_value_must_be_is_told() {
    let Some(helm) = helm() else { return };
    for (set, message) in [
        ("manager.replicas=two", "manager.replicas: Invalid type. Expected: integer, given: string"),
        ("manager.tolerations=none", "manager.tolerations: Invalid type. Expected: array, given: string"),
        ("manager.hostNetwork=maybe", "manager.hostNetwork: Invalid type. Expected: boolean, given: string"),
        ("manager.replica=2", "manager: Additional property replica is not allowed"),
        ("featureGate=AllAlpha=true", "(root): Additional property featureGate is not allowed"),
        ("manager.webhook.port=99999", "manager.webhook.port: Must be less than or equal to 65535"),
        (
            "webhookConfiguration.timeoutSeconds=31",
            "webhookConfiguration.timeoutSeconds: Must be less than or equal to 30",
        ),
        ("webhookConfiguration.failurePolicy.pods=ignore", "must be one of the following: \"Ignore\", \"Fail\""),
        ("installation.namespace=Koordinator", "installation.namespace: Does not match pattern"),
        ("crds.reservation=false", "crds: Additional property reservation is not allowed"),
        (
            "manager.podDisruptionBudget.maxUnavailable=0",
            "manager.podDisruptionBudget.maxUnavailable: Must be greater than or equal to 1",
        ),
        ("featureGates=PodMutatingWebhok=true", "featureGates: the manager has no gate \"PodMutatingWebhok\""),
        (
            "featureGates=PodMutatingWebhook",
            "featureGates: \"PodMutatingWebhook\" is not of the form Name=true or Name=false",
        ),
        ("sloControllerConfig.colocation-config=[1", "sloControllerConfig.colocation-config is no JSON object"),
    ] {
        let printed = helm.try_run(&["template", "koordinator", &chart(), "--set", set]).unwrap();
        assert!(printed.code != 0 && printed.stderr.contains(message), "{set}: {}", printed.stderr);
    }
}

#[test]
fn config_default_is_what_the_chart_renders() {
    let Some(helm) = helm() else { return };
    let render = |folder: &str| {
        let folder = integration::installed::repository(folder);
        let values = folder.join("values.yaml").display().to_string();
        (folder, rendered(&helm, &[&format!("--values={values}")]).unwrap())
    };
    let (folder, rendered) = render("config/manager");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if !(path.ends_with("kustomization.yaml") || path.ends_with("values.yaml")) {
            is_rendered(&rendered, &path);
        }
    }
    let (folder, with_scheduler) = render("config/scheduler");
    for file in ["scheduler.yaml", "service_account.yaml", "role.yaml", "role_binding.yaml"] {
        is_rendered(&with_scheduler, &folder.join(file));
    }
    for file in ["rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml", "webhook/service.yaml"] {
        is_rendered(&rendered, &repository("config").join(file));
    }
    // Of the declared installation these are not the same: definitions have an annotation more, which a test of their own compares; the
    // metrics have a PodMonitor and no Service; and entries of webhooks differ in what values decide: failure policies, timeout, and the
    // namespaces whose pods are left alone.
    let text = std::fs::read_to_string(integration::installed::repository("config/webhook/manifests.yaml")).unwrap();
    let declared: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let decided = |entry: &Value| {
        let mut entry = entry.clone();
        for field in ["failurePolicy", "timeoutSeconds", "matchConditions"] {
            entry.as_object_mut().unwrap().remove(field);
        }
        entry
    };
    let (ours, theirs): (Vec<Value>, Vec<Value>) =
        (entries(&rendered).map(decided).collect(), entries(&declared).map(decided).collect());
    assert!(!ours.is_empty());
    assert_eq!(ours, theirs);
}

pub(super) fn is_rendered(rendered: &[Value], file: &Path) {
    let written: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(file).unwrap()).unwrap();
    for object in written {
        let name = object["metadata"]["name"].as_str().unwrap();
        let kind = object["kind"].as_str().unwrap();
        assert_eq!(find(rendered, kind, name), Some(&object), "{kind} {name} is another in the chart");
    }
}

#[test]
fn the_scheduler_is_the_originals_with_less_power_and_only_where_it_is_wanted() {
    let Some(helm) = helm() else { return };
    let sets = "--set=scheduler.enabled=true,scheduler.port=10300,scheduler.monitorEnabled=true,installation.namespace=colocation";
    let objects = rendered(&helm, &[sets]).unwrap();
    let container =
        &find(&objects, "Deployment", "koord-scheduler").unwrap()["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        texts(&container["args"]),
        [
            "--port=10300",
            "--authentication-skip-lookup=true",
            "--v=4",
            "--feature-gates=",
            "--config=/config/koord-scheduler.config",
        ]
    );
    assert!(
        koord_scheduler::Options::from_arguments(
            std::iter::once("koord-scheduler").chain(texts(&container["args"])).map(str::to_owned)
        )
        .is_ok()
    );
    assert_eq!(container["ports"], json!([{"name": "metrics", "containerPort": 10300, "protocol": "TCP"}]));
    assert_eq!(container["image"], format!("koordinator-sh/koord-scheduler:v{}-rust", env!("CARGO_PKG_VERSION")));
    let scheduler_pod = [("POD_NAMESPACE", "metadata.namespace"), ("POD_NAME", "metadata.name")]
        .map(|(name, field)| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}));
    assert_eq!(container["env"], json!(scheduler_pod), "so that it never evicts itself");
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert!(find(&objects, "PodMonitor", "koord-scheduler-metrics-podmonitor").is_some());
    let role = find(&objects, "ClusterRole", "koord-scheduler-role").unwrap();
    let granted = role["rules"].as_array().unwrap();
    assert!(
        granted.iter().all(|rule| !texts(&rule["verbs"]).contains(&"*") && !texts(&rule["resources"]).contains(&"*"))
    );
    // What a binding refers to cannot be changed in an upgrade.
    let binding = find(&objects, "ClusterRoleBinding", "koord-scheduler-rolebinding-custom").unwrap();
    assert_eq!(binding["roleRef"]["name"], "koord-scheduler-role");
    assert!(rendered(&helm, &[]).unwrap().iter().all(|object| object["metadata"]["name"] != "koord-scheduler"));
}

#[test]
fn alerts_and_dashboards_are_those_of_the_folders_of_kustomize_and_come_only_where_they_are_wanted() {
    let Some(helm) = helm() else { return };
    let kinds = |objects: &[Value]| -> Vec<String> {
        let own = objects.iter().filter(|object| {
            object["kind"] == "PrometheusRule" || texts_of(object).any(|key| key.rsplit('.').next() == Some("json"))
        });
        own.map(|object| {
            format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
        })
        .collect()
    };
    let wanted = "--set=manager.prometheusRule.enabled=true,manager.dashboards.enabled=true,scheduler.prometheusRule.enabled=true,\
                  descheduler.prometheusRule.enabled=true,descheduler.dashboards.enabled=true,\
                  koordlet.prometheusRule.enabled=true,koordlet.dashboards.enabled=true,scheduler.dashboards.enabled=true,scheduler.prometheusRule.labels.release=prometheus,scheduler.dashboards.annotations.grafana_folder=K";
    let installed = "--set=scheduler.enabled=true,descheduler.enabled=true,koordlet.enabled=true";
    let with_all = rendered(&helm, &[installed, wanted]).unwrap();
    for (program, folder) in [
        ("koord-manager", "config/monitoring"),
        ("koord-scheduler", "config/scheduler/monitoring"),
        ("koord-descheduler", "config/descheduler/monitoring"),
        ("koordlet", "config/koordlet/monitoring"),
    ] {
        let file = |name: &str| std::fs::read_to_string(repository(folder).join(name)).unwrap();
        let rule = find(&with_all, "PrometheusRule", program).unwrap();
        let written: Value = serde_saphyr::from_str(&file("prometheus_rule.yaml")).unwrap();
        assert_eq!(rule["spec"], written["spec"], "{program}");
        assert_eq!(rule["metadata"]["labels"]["koord-app"], program);
        let dashboard = find(&with_all, "ConfigMap", &format!("{program}-dashboard")).unwrap();
        let text = dashboard["data"][format!("{program}.json")].as_str().unwrap();
        let written: Value = serde_json::from_str(&file("dashboard.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), written, "{program}");
        assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    }
    let rule = find(&with_all, "PrometheusRule", "koord-scheduler").unwrap();
    assert_eq!(rule["metadata"]["labels"]["release"], "prometheus");
    let dashboard = find(&with_all, "ConfigMap", "koord-scheduler-dashboard").unwrap();
    assert_eq!(dashboard["metadata"]["annotations"]["grafana_folder"], "K");
    let with_manager = rendered(&helm, &[wanted]).unwrap();
    assert_eq!(kinds(&with_manager), ["ConfigMap koord-manager-dashboard", "PrometheusRule koord-manager"]);
    assert_eq!(kinds(&rendered(&helm, &[installed]).unwrap()), [""; 0], "off unless they are wanted");
}

/// The keys of a ConfigMap.
fn texts_of(object: &Value) -> impl Iterator<Item = &String> {
    object["data"].as_object().into_iter().flatten().map(|(key, _)| key)
}

#[test]
fn the_configuration_of_the_scheduler_is_right_and_follows_the_values() {
    let Some(helm) = helm() else { return };
    let configured = |sets: &[&str]| {
        let objects = rendered(&helm, &[&["--set=scheduler.enabled=true"], sets].concat()).unwrap();
        let map = find(&objects, "ConfigMap", "koord-scheduler-config").unwrap();
        let text = map["data"]["koord-scheduler-config"].as_str().unwrap();
        let document: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(koord_config::Kind::Scheduler.check(&document), []);
        document
    };
    let args = |document: &Value, plugin: &str| {
        let configs = document["profiles"][0]["pluginConfig"].as_array().unwrap();
        configs.iter().find(|config| config["name"] == plugin).map(|config| config["args"].clone())
    };
    let document = configured(&["--set=installation.namespace=colocation"]);
    assert_eq!(document["leaderElection"]["resourceNamespace"], "colocation");
    assert_eq!(args(&document, "ElasticQuota").unwrap()["quotaGroupNamespace"], "colocation");
    assert_eq!(args(&document, "Coscheduling").unwrap()["enablePreemption"], true);
    assert_eq!(
        args(&document, "DeviceShare").unwrap()["gpuShareUnsupportedModels"],
        json!([{"vendor": "huawei", "model": "Ascend-310P3-300I-DUO"}])
    );
    let preempts =
        |document: &Value| document["profiles"][0]["plugins"]["postFilter"].to_string().contains("DefaultPreemption");
    assert!(!preempts(&document));
    let document = configured(&[
        "--set=scheduler.enableJobPreemption=false",
        "--set-json=scheduler.deviceShare.gpuShareUnsupportedModels=[]",
    ]);
    assert!(preempts(&document) && args(&document, "Coscheduling").unwrap()["enablePreemption"].is_null());
    assert!(args(&document, "DeviceShare").is_none());
    let own = configured(&[
        "--set=scheduler.config.apiVersion=kubescheduler.config.k8s.io/v1",
        "--set=scheduler.config.kind=KubeSchedulerConfiguration,scheduler.config.parallelism=3",
    ]);
    assert_eq!(own["parallelism"], 3);
}
