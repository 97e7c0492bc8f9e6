//! What the chart renders of koord-descheduler.

use std::collections::BTreeSet;

use integration::{Helm, installed::repository};
use koord_configuration::Source;
use koord_descheduler_assembly::Configuration;
use serde_json::{Value, json};

use super::{
    data, find,
    render::{helm, is_rendered},
    rendered, texts,
};

fn with(helm: &Helm, more: &[&str]) -> Vec<Value> {
    rendered(helm, &[&["--set=descheduler.enabled=true"], more].concat()).unwrap()
}

/// The configuration in its ConfigMap, which the program accepts.
fn configuration(objects: &[Value]) -> Value {
    let map = find(objects, "ConfigMap", "koord-descheduler-config").unwrap();
    let text = map["data"]["koord-descheduler-config"].as_str().unwrap();
    let document: Value = serde_saphyr::from_str(text).unwrap();
    Configuration::of_document(&document, &Source::new("koord-descheduler-config", text)).unwrap();
    document
}

fn arguments<'d>(document: &'d Value, plugin: &str) -> &'d Value {
    let configs = document["profiles"][0]["pluginConfig"].as_array().unwrap();
    &configs.iter().find(|config| config["name"] == plugin).unwrap()["args"]
}

/// What a role grants: group, resource, verb.
fn granted(role: &Value) -> BTreeSet<(String, String, String)> {
    let mut granted = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    granted.insert((group.to_owned(), resource.to_owned(), verb.to_owned()));
                }
            }
        }
    }
    granted
}

#[test]
fn the_deployment_is_the_originals_with_less_power_and_only_where_it_is_wanted() {
    let Some(helm) = helm() else { return };
    let sets = "--set=descheduler.port=10300,descheduler.monitorEnabled=true,installation.namespace=colocation,\
                descheduler.featureGates=DisablePVCReservation=true,descheduler.log.level=2";
    let objects = with(&helm, &[sets]);
    let pod = &find(&objects, "Deployment", "koord-descheduler").unwrap()["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(
        texts(&container["args"]),
        ["--v=2", "--feature-gates=DisablePVCReservation=true", "--config=/config/koord-descheduler.config"]
    );
    let line = std::iter::once("koord-descheduler").chain(texts(&container["args"])).map(str::to_owned);
    assert!(koord_descheduler::Options::from_arguments(line).unwrap().check().is_ok());
    assert_eq!(container["ports"], json!([{"name": "metrics", "containerPort": 10300, "protocol": "TCP"}]));
    assert_eq!(container["image"], format!("koordinator-sh/koord-descheduler:v{}-rust", env!("CARGO_PKG_VERSION")));
    let variables: Vec<&Value> = container["env"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(variables, ["POD_NAMESPACE", "POD_NAME"]);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(pod["serviceAccountName"], "koord-descheduler");
    assert!(find(&objects, "PodMonitor", "koord-descheduler-metrics-podmonitor").is_some());
    let role = find(&objects, "ClusterRole", "koord-descheduler-role").unwrap();
    assert!(granted(role).iter().all(|(group, resource, verb)| ![group, resource, verb].contains(&&"*".to_owned())));
    // What a binding refers to cannot be changed in an upgrade.
    let binding = find(&objects, "ClusterRoleBinding", "koord-descheduler-rolebinding").unwrap();
    assert_eq!(binding["roleRef"]["name"], "koord-descheduler-role");
    let without = rendered(&helm, &[]).unwrap();
    assert!(
        without.iter().all(|object| !object["metadata"]["name"].as_str().unwrap().starts_with("koord-descheduler"))
    );
}

#[test]
fn it_can_be_reached_at_its_ports_alone_and_keeps_the_lease_that_it_is_configured_with() {
    let Some(helm) = helm() else { return };
    let ports = |sets: &[&str]| -> Vec<Value> {
        let objects = with(&helm, sets);
        let policy = find(&objects, "NetworkPolicy", "koord-descheduler").unwrap();
        assert_eq!(policy["spec"]["podSelector"]["matchLabels"], json!({"koord-app": "koord-descheduler"}));
        policy["spec"]["ingress"].as_array().unwrap().iter().map(|rule| rule["ports"][0]["port"].clone()).collect()
    };
    assert_eq!(ports(&[]), [json!("metrics"), json!(10258)]);
    assert_eq!(ports(&["--set=descheduler.extraArgs={--secure-port=0}"]), [json!("metrics")]);
    let lease = |sets: &[&str]| {
        let objects = with(&helm, sets);
        let role = find(&objects, "Role", "koord-descheduler-role").unwrap();
        let mut rules = role["rules"].as_array().unwrap().iter();
        let named = rules.find(|rule| texts(&rule["resources"]) == ["leases"] && rule["resourceNames"].is_array());
        named.unwrap()["resourceNames"].clone()
    };
    assert_eq!(lease(&[]), json!(["koord-descheduler"]));
    // A configuration without a name has the one of the program.
    assert_eq!(lease(&["--set=descheduler.config.kind=DeschedulerConfiguration"]), json!(["koord-descheduler"]));
    let named = "--set=descheduler.config.leaderElection.resourceName=mine";
    assert_eq!(lease(&[named]), json!(["mine"]));
    assert_eq!(lease(&[named, "--set=descheduler.extraArgs={--leader-elect-resource-name=ours}"]), json!(["ours"]));
    let objects = with(&helm, &[]);
    assert_eq!(
        find(&objects, "PodDisruptionBudget", "koord-descheduler").unwrap()["spec"]["selector"]["matchLabels"],
        json!({"koord-app": "koord-descheduler"})
    );
}

#[test]
fn the_configuration_is_the_originals_and_follows_the_values() {
    let Some(helm) = helm() else { return };
    let document = configuration(&with(&helm, &["--set=installation.namespace=colocation,descheduler.port=10300"]));
    assert_eq!((&document["deschedulingInterval"], &document["dryRun"]), (&json!("10s"), &json!(false)));
    assert_eq!(document["metricsBindAddress"], "0.0.0.0:10300");
    assert_eq!(document["leaderElection"]["resourceNamespace"], "colocation");
    let profile = &document["profiles"][0];
    assert_eq!(profile["plugins"]["evict"]["enabled"], json!([{"name": "MigrationController"}]));
    assert_eq!(profile["plugins"]["balance"], Value::Null, "no strategy moves pods until one is chosen");
    let excluded = json!({"exclude": ["kube-system", "colocation"]});
    assert_eq!(arguments(&document, "MigrationController")["namespaces"], excluded);
    assert_eq!(arguments(&document, "LowNodeLoad")["evictableNamespaces"], excluded);
    assert_eq!(profile["planning"], "enforce", "in a new installation");
    let planning = |set: &str| configuration(&with(&helm, &[set]))["profiles"][0]["planning"].clone();
    assert_eq!(planning("--set=descheduler.planning=report"), "report");
    // Helm reads a bare off in a values file as false.
    assert_eq!(planning("--set-json=descheduler.planning=false"), "off");
    let own = configuration(&with(
        &helm,
        &["--set=descheduler.config.apiVersion=descheduler/v1alpha2,descheduler.config.kind=DeschedulerConfiguration,\
           descheduler.config.deschedulingInterval=7m"],
    ));
    assert_eq!(own["deschedulingInterval"], "7m");
}

#[test]
fn a_values_file_of_the_original_installs_it_where_it_is_wanted() {
    let Some(helm) = helm() else { return };
    for file in ["values-of-0.7.0.yaml", "original-chart/values.yaml"] {
        let objects = with(&helm, &[&format!("--values={}", data(file))]);
        let pod = &find(&objects, "Deployment", "koord-descheduler").unwrap()["spec"]["template"]["spec"];
        let image = pod["containers"][0]["image"].as_str().unwrap();
        let tag = format!("koord-descheduler:v{}-rust", env!("CARGO_PKG_VERSION"));
        assert!(image.ends_with(&tag), "{file}: {image}");
        configuration(&objects);
    }
}

#[test]
fn where_namespaces_of_evictions_are_named_pods_of_others_can_neither_be_selected_nor_evicted() {
    let Some(helm) = helm() else { return };
    let everywhere = with(&helm, &[]);
    let whole = granted(find(&everywhere, "ClusterRole", "koord-descheduler-role").unwrap());
    let objects = with(&helm, &["--set=descheduler.evictionNamespaces={shop,web}"]);
    let cluster = granted(find(&objects, "ClusterRole", "koord-descheduler-role").unwrap());
    let of_pods: Vec<_> =
        cluster.iter().filter(|(group, resource, _)| group.is_empty() && resource.starts_with("pods")).collect();
    assert_eq!(of_pods.iter().map(|(_, _, verb)| verb.as_str()).collect::<Vec<_>>(), ["list", "watch"]);
    let roles: Vec<&Value> =
        objects.iter().filter(|it| it["metadata"]["name"] == "koord-descheduler-evictions-role").collect();
    let namespaces: Vec<&Value> = roles.iter().map(|role| &role["metadata"]["namespace"]).collect();
    assert_eq!(namespaces, ["shop", "web"]);
    for role in &roles {
        // Both together are what the program may do everywhere otherwise.
        assert_eq!(cluster.union(&granted(role)).cloned().collect::<BTreeSet<_>>(), whole);
    }
    let bindings = objects.iter().filter(|it| it["metadata"]["name"] == "koord-descheduler-evictions-rolebinding");
    assert_eq!(bindings.filter(|it| it["subjects"][0]["namespace"] == "koordinator-system").count(), 2);
    let document = configuration(&objects);
    let included = json!({"include": ["shop", "web"]});
    assert_eq!(arguments(&document, "MigrationController")["namespaces"], included);
    assert_eq!(arguments(&document, "LowNodeLoad")["evictableNamespaces"], included);
}

#[test]
fn config_descheduler_is_what_the_chart_renders() {
    let Some(helm) = helm() else { return };
    let folder = repository("config/descheduler");
    let values = format!("--values={}", folder.join("values.yaml").display());
    let objects = rendered(&helm, &[&values, "--set=descheduler.readScales=true"]).unwrap();
    for file in ["descheduler.yaml", "service_account.yaml", "role.yaml", "role_binding.yaml"] {
        is_rendered(&objects, &folder.join(file));
    }
    for file in ["scales/role.yaml", "scales/role_binding.yaml"] {
        is_rendered(&objects, &folder.join(file));
    }
    let without = rendered(&helm, &[&values]).unwrap();
    assert!(find(&without, "ClusterRole", "koord-descheduler-scales-role").is_none());
}

#[test]
fn what_a_value_of_it_must_be_is_reported() {
    let Some(helm) = helm() else { return };
    for (set, message) in [
        ("descheduler.planing=off", "descheduler: Additional property planing is not allowed"),
        ("descheduler.planning=never", "must be one of the following: \"\", \"off\""),
        ("descheduler.evictionNamespaces={Shop}", "descheduler.evictionNamespaces.0: Does not match pattern"),
        ("descheduler.port=0", "descheduler.port: Must be greater than or equal to 1"),
        ("descheduler.extraArgs={v}", "descheduler.extraArgs.0: Does not match pattern"),
    ] {
        let printed = helm.try_run(&["template", "koordinator", &super::chart(), "--set", set]).unwrap();
        assert!(printed.code != 0 && printed.stderr.contains(message), "{set}: {}", printed.stderr);
    }
}
