//! What crdgen prints, compares and writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Parser as _;
use crdgen::{Answer, Arguments, Profile, definitions, manager};
use koord_resource::document::install;
use koord_runtime::{clock::SystemClock, manager::ListenAddress};
use koord_webhook_handlers::Ctx;
use koord_webhook_server::{
    ServiceBuilder,
    configuration::{Serving, Target, repair},
};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> Answer {
    let arguments = Arguments::try_parse_from([&["crdgen"], arguments].concat()).unwrap();
    crdgen::run(&arguments).unwrap()
}

fn diff(folder: &Path, profile: &str) -> Answer {
    run(&["--diff", folder.to_str().unwrap(), "--profile", profile])
}

#[test]
fn the_structure_of_all_kinds_is_the_originals() {
    let answer = diff(&root().join("tests/data/crds"), "compatible");
    assert_eq!(answer, Answer { text: String::new(), agrees: true });
}

#[test]
fn the_structure_is_that_of_the_shared_files_where_they_are() {
    let shared = std::env::var_os("KOORD_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let folder = shared.join("data/crds");
    if !folder.exists() {
        return programs::skipped("structures of the original's CRDs", "KOORD_SHARED names no folder with them");
    }
    assert_eq!(diff(&folder, "compatible").text, "");
}

#[test]
fn the_hardened_profile_adds_and_takes_nothing_away() {
    let answer = diff(&root().join("tests/data/crds"), "hardened");
    assert!(!answer.agrees);
    for line in answer.text.lines() {
        assert!(line.contains("the folder lacks"), "{line}");
    }
}

#[test]
fn a_changed_bound_is_found_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(root().join("tests/data/crds")).unwrap() {
        let entry = entry.unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        fs::write(folder.path().join(entry.file_name()), text.replace("\"minItems\":1", "\"minItems\":2")).unwrap();
    }
    let answer = diff(folder.path(), "compatible");
    let path = "spec.versions[v1alpha1].schema.openAPIV3Schema.properties.spec.properties.owners.minItems";
    assert_eq!(
        answer,
        Answer {
            text: format!("reservations.scheduling.koordinator.sh: {path}: the folder has 2, this program 1\n"),
            agrees: false
        }
    );
}

#[test]
fn what_is_printed_can_be_read_again() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&run(&[]).text).unwrap();
    assert_eq!(documents, definitions(Profile::Compatible));
    let list: Value = serde_json::from_str(&run(&["--format", "json", "--profile", "hardened"]).text).unwrap();
    assert_eq!(list["items"].as_array().unwrap(), &definitions(Profile::Hardened));
}

#[test]
fn the_written_files_are_up_to_date() {
    let answer = run(&["--check", "--root", root().to_str().unwrap()]);
    assert!(answer.agrees, "{}", answer.text);
}

#[test]
fn a_file_that_was_changed_or_is_left_over_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    assert!(run(&["--write", "--root", root]).text.contains("config/crd/kustomization.yaml"));
    assert_eq!(run(&["--check", "--root", root]).text, "");
    assert_eq!(run(&["--write", "--root", root]).text, "");
    let kustomization = folder.path().join("config/crd/kustomization.yaml");
    let text = fs::read_to_string(&kustomization).unwrap();
    fs::write(&kustomization, text.replace("- bases/slo.koordinator.sh_nodeslos.yaml\n", "")).unwrap();
    fs::write(folder.path().join("config/crd/bases/old.yaml"), "").unwrap();
    let answer = run(&["--check", "--root", root]);
    assert!(!answer.agrees);
    assert!(answer.text.contains("+- bases/slo.koordinator.sh_nodeslos.yaml"), "{}", answer.text);
    assert!(answer.text.contains("config/crd/bases/old.yaml: nothing generates this file any more"));
}

#[test]
fn every_schema_is_structural() {
    for profile in [koord_resource::declare::Profile::Compatible, koord_resource::declare::Profile::Hardened] {
        for declared in koord_types::KINDS.iter().copied().flatten() {
            let errors = declared.check(profile);
            assert!(errors.is_empty(), "{}: {errors}", declared.info.kind);
        }
    }
    for profile in [Profile::Compatible, Profile::Hardened] {
        for definition in definitions(profile) {
            for version in definition["spec"]["versions"].as_array().unwrap() {
                let schema = &version["schema"]["openAPIV3Schema"];
                let parsed: koord_schema::Schema = serde_json::from_value(schema.clone()).unwrap();
                assert_eq!(&serde_json::to_value(parsed).unwrap(), schema);
            }
        }
    }
}

/// All documents of a YAML file in config/.
fn yaml(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The objects that a kustomization names, directly or through others.
fn built(folder: &Path) -> Vec<Value> {
    let kustomization = yaml(&folder.join("kustomization.yaml")).remove(0);
    let resources = kustomization["resources"].as_array().unwrap();
    let resources = resources.iter().map(|resource| folder.join(resource.as_str().unwrap()));
    resources.flat_map(|path| if path.is_dir() { built(&path) } else { yaml(&path) }).collect()
}

#[test]
fn the_default_installation_is_whole() {
    let objects = built(&root().join("config/default"));
    let count = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).count();
    assert_eq!(count("CustomResourceDefinition"), 13);
    let once = ["Namespace", "Deployment", "Service", "ServiceAccount", "ConfigMap", "Role", "ClusterRole"];
    for kind in once.iter().chain(&["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]) {
        assert_eq!(count(kind), 1, "{kind}");
    }
    let find = |kind: &str, name: &str| {
        let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    for class in koord_types::priority::PriorityClass::ALL {
        assert_eq!(find("PriorityClass", class.as_str())["value"], *class.band().start());
    }
    // What names something names what is there.
    for binding in objects.iter().filter(|object| object["roleRef"].is_object()) {
        find(binding["roleRef"]["kind"].as_str().unwrap(), binding["roleRef"]["name"].as_str().unwrap());
        find("ServiceAccount", binding["subjects"][0]["name"].as_str().unwrap());
    }
    for webhook in objects.iter().flat_map(|object| object["webhooks"].as_array().into_iter().flatten()) {
        find("Service", webhook["clientConfig"]["service"]["name"].as_str().unwrap());
    }
    let deployment = &find("Deployment", "koord-manager")["spec"];
    assert_eq!(
        find("Service", "koordinator-webhook-service")["spec"]["selector"],
        deployment["selector"]["matchLabels"]
    );
    // QUIRK 18 of spec/manager.md 7, fixed: the webhook of the ConfigMap selects the one that is installed.
    let config = find("ConfigMap", koord_types::slo_config::CONFIG_MAP_NAME);
    assert_eq!(config["metadata"]["labels"]["koordinator.sh/configmap-type"], "slo-controller-config");
    let data = config["data"].as_object().unwrap();
    let text = |key: &str| data[key].as_str().unwrap();
    assert!(
        koord_types::slo_config::ColocationConfig::parse(Some(text("colocation-config"))).unwrap().cluster.is_enabled()
    );
    let data = data.iter().map(|(key, text)| (key.clone(), text.as_str().unwrap().to_owned())).collect();
    let (_, errors) = koord_types::slo_config::NodeSloConfig::default().update(&data);
    assert_eq!(errors, []);
}

#[test]
fn config_has_what_the_declared_installation_makes_and_little_else() {
    let declared = install(&manager::installation().unwrap());
    let (default, monitoring) = (built(&root().join("config/default")), built(&root().join("config/monitoring")));
    let named = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    for object in &declared {
        let applied = default.iter().chain(&monitoring).find(|other| named(other) == named(object));
        assert_eq!(applied, Some(object), "{}", named(object));
    }
    // Nothing that a program needs to run: they say how pods are ranked, and what nodes share.
    let undeclared =
        default.iter().filter(|object| !declared.contains(object)).filter_map(|object| object["kind"].as_str());
    assert_eq!(undeclared.collect::<BTreeSet<_>>(), BTreeSet::from(["ConfigMap", "PriorityClass"]));
}

#[test]
fn the_declared_installation_starts_the_program_with_flags_that_it_knows_on_the_ports_that_pods_have() {
    let declared = install(&manager::installation().unwrap());
    let deployment = declared.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap().to_owned());
    let options =
        koord_manager_assembly::Options::from_arguments(std::iter::once("koord-manager".to_owned()).chain(arguments));
    let checked = options.unwrap().check().unwrap();
    let namespace = deployment["metadata"]["namespace"].as_str();
    assert_eq!(checked.settings.lease_namespace.as_deref(), namespace);
    assert_eq!(Some(checked.options.config_namespace.as_str()), namespace);
    let port = |name: &str| {
        let ports = container["ports"].as_array().unwrap();
        ports.iter().find(|port| port["name"] == name).unwrap()["containerPort"].as_u64()
    };
    let listens = |address: Option<ListenAddress>| address.map(|address| u64::from(address.address.port()));
    assert_eq!(
        (listens(checked.settings.metrics), listens(checked.settings.health)),
        (port("metrics"), port("health"))
    );
}

#[test]
fn a_manager_with_its_default_flags_changes_nothing_of_the_webhook_configurations_but_the_authority() {
    let options = koord_manager_assembly::Options::from_arguments(["koord-manager".to_owned()]).unwrap();
    let checked = options.check().unwrap();
    let gate = |name: &str| checked.enabled(name);
    let mut ctx = Ctx::detached(gate);
    ctx.settings = checked.webhook_settings();
    let metrics = koord_webhook_server::Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
    let builder = ServiceBuilder::new(metrics, SystemClock::shared());
    let service = koord_webhook_handlers::serve(builder, &Arc::new(ctx), gate).build();
    let (served, advisory): (Vec<_>, Vec<_>) = (service.paths().collect(), service.advisory().collect());
    assert!(!advisory.is_empty(), "derived handlers warn by default");
    let serving = |path: &str| match (served.contains(&path), advisory.contains(&path)) {
        (true, true) => Serving::Advisory,
        (is_served, _) => Serving::from(is_served),
    };
    let names = koord_manager_assembly::webhook_defaults();
    let target = Target { ca_bundle: "PEM", namespace: &names.namespace, service: &names.service, host: None };
    let objects = built(&root().join("config/default"));
    let configurations: Vec<&Value> = objects.iter().filter(|object| object["webhooks"].is_array()).collect();
    assert_eq!(configurations.len(), 2);
    for configuration in configurations {
        let patch = repair(configuration, &target, serving).unwrap().unwrap();
        let mut entries = patch["webhooks"].clone();
        for entry in entries.as_array_mut().unwrap() {
            entry["clientConfig"].as_object_mut().unwrap().remove("caBundle");
        }
        assert_eq!(entries, configuration["webhooks"]);
        assert_eq!(patch["metadata"]["annotations"], Value::Null);
    }
}

#[test]
fn the_installation_of_koordlet_is_whole_and_starts_it_with_flags_that_it_knows() {
    let objects = built(&root().join("config/koordlet"));
    let find = |kind: &str, name: &str| {
        let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    for binding in objects.iter().filter(|object| object["roleRef"].is_object()) {
        find(binding["roleRef"]["kind"].as_str().unwrap(), binding["roleRef"]["name"].as_str().unwrap());
        find("ServiceAccount", binding["subjects"][0]["name"].as_str().unwrap());
    }
    let pod = &find("DaemonSet", koordlet::NAME)["spec"]["template"]["spec"];
    find("ServiceAccount", pod["serviceAccountName"].as_str().unwrap());
    let container = &pod["containers"][0];
    let arguments = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap().to_owned());
    let options = koordlet::Options::from_arguments(std::iter::once(koordlet::NAME.to_owned()).chain(arguments));
    let variable = &container["env"][0];
    assert_eq!(variable["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
    let environment = BTreeMap::from([(variable["name"].as_str().unwrap().to_owned(), "node".to_owned())]);
    let checked = options.unwrap().check_in(&environment).unwrap();
    let port = container["ports"][0]["containerPort"].as_u64();
    assert_eq!(checked.address.map(|address| u64::from(address.address.port())), port);
    // What the agent reads and writes of the node is mounted where it looks for it.
    let mounts: Vec<&str> =
        container["volumeMounts"].as_array().unwrap().iter().map(|it| it["mountPath"].as_str().unwrap()).collect();
    let roots = checked.roots();
    for folder in [&roots.cgroup, &roots.sys, &roots.sys_fs, &roots.var_run, &roots.run, &roots.kubelet] {
        assert!(mounts.iter().any(|mount| Path::new(mount) == folder), "{}", folder.display());
    }
    let settings = checked.settings();
    for folder in [&settings.prediction.checkpoints, &settings.xpu_device_infos] {
        assert!(mounts.iter().any(|mount| Path::new(mount) == folder), "{}", folder.display());
    }
}

#[test]
fn the_installation_of_the_descheduler_is_whole_and_starts_it_with_the_configuration_that_it_has() {
    let objects =
        [built(&root().join("config/descheduler")), built(&root().join("config/descheduler/scales"))].concat();
    let find = |kind: &str, name: &str| {
        let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    for binding in objects.iter().filter(|object| object["roleRef"].is_object()) {
        find(binding["roleRef"]["kind"].as_str().unwrap(), binding["roleRef"]["name"].as_str().unwrap());
        find("ServiceAccount", binding["subjects"][0]["name"].as_str().unwrap());
    }
    let name = koord_descheduler::NAME;
    let deployment = &find("Deployment", name)["spec"];
    let pod = &deployment["template"]["spec"];
    find("ServiceAccount", pod["serviceAccountName"].as_str().unwrap());
    for kind in ["PodDisruptionBudget", "NetworkPolicy"] {
        let spec = &find(kind, name)["spec"];
        let selector = spec.get("selector").unwrap_or(&spec["podSelector"]);
        assert_eq!(selector, &deployment["selector"], "{kind}");
    }
    // The volume at /config, in a folder of this machine.
    let volume = &pod["volumes"][0]["configMap"];
    let item = &volume["items"][0];
    let data = &find("ConfigMap", volume["name"].as_str().unwrap())["data"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(item["path"].as_str().unwrap());
    fs::write(&file, data[item["key"].as_str().unwrap()].as_str().unwrap()).unwrap();
    let container = &pod["containers"][0];
    let mounted = format!("{}/", container["volumeMounts"][0]["mountPath"].as_str().unwrap());
    let arguments = container["args"].as_array().unwrap().iter();
    let arguments = arguments
        .map(|argument| argument.as_str().unwrap().replace(&mounted, &format!("{}/", folder.path().display())));
    let options =
        koord_descheduler::Options::from_arguments(std::iter::once(name.to_owned()).chain(arguments)).unwrap();
    let checked = options.check().unwrap();
    let configuration = koord_descheduler::configuration(&checked.options).unwrap();
    let values = &configuration.values;
    let address = format!("0.0.0.0:{}", container["ports"][0]["containerPort"]);
    assert_eq!((&values.healthz_bind_address, &values.metrics_bind_address), (&address, &address));
    let mut rules = find("Role", "koord-descheduler-role")["rules"].as_array().unwrap().iter();
    let is_of_lease = |rule: &&Value| rule["resources"][0] == "leases" && rule["resourceNames"].is_array();
    let lease = &rules.find(is_of_lease).unwrap()["resourceNames"];
    assert_eq!(lease[0], values.leader_election.resource_name.as_deref().unwrap());
    assert_eq!(
        find("Deployment", name)["metadata"]["namespace"],
        values.leader_election.resource_namespace.as_deref().unwrap()
    );
    let profile = &values.profiles[0];
    assert_eq!((values.profiles.len(), profile.name.as_str()), (1, name));
}
