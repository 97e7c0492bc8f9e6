//! What the chart renders of koordlet.

use integration::{Helm, installed::repository};
use serde_json::{Value, json};

use super::{
    data, find,
    render::{helm, is_rendered},
    rendered, texts,
};

fn with(helm: &Helm, more: &[&str]) -> Vec<Value> {
    rendered(helm, &[&["--set=koordlet.enabled=true"], more].concat()).unwrap()
}

fn pod(objects: &[Value]) -> &Value {
    &find(objects, "DaemonSet", "koordlet").unwrap()["spec"]["template"]["spec"]
}

/// The capabilities that are added to those of the container, none of which it has otherwise.
fn capabilities(objects: &[Value]) -> Vec<String> {
    let context = &pod(objects)["containers"][0]["securityContext"];
    assert_eq!((&context["privileged"], &context["capabilities"]["drop"]), (&Value::Null, &json!(["ALL"])));
    let added = &context["capabilities"]["add"];
    if added.is_null() { Vec::new() } else { texts(added).into_iter().map(str::to_owned).collect() }
}

/// The folders of the node that the container may write into.
fn written(objects: &[Value]) -> Vec<&str> {
    let pod = pod(objects);
    let (mounts, volumes) =
        (pod["containers"][0]["volumeMounts"].as_array().unwrap(), pod["volumes"].as_array().unwrap());
    assert_eq!(mounts.len(), volumes.len());
    let is_written = |volume: &&Value| {
        let mount = mounts.iter().find(|mount| mount["name"] == volume["name"]).unwrap();
        assert_ne!(mount["mountPropagation"], "Bidirectional", "only privileged containers may have it");
        mount["readOnly"] != true
    };
    volumes.iter().filter(is_written).map(|volume| volume["hostPath"]["path"].as_str().unwrap()).collect()
}

#[test]
fn the_daemon_set_is_the_originals_with_less_power_and_only_where_it_is_wanted() {
    let Some(helm) = helm() else { return };
    let sets = "--set=koordlet.metrics.port=9400,koordlet.log.level=2,installation.namespace=colocation";
    let objects = with(&helm, &[sets]);
    let set = find(&objects, "DaemonSet", "koordlet").unwrap();
    assert_eq!(set["metadata"]["namespace"], "colocation");
    assert_eq!(set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], "20%");
    assert_eq!(
        set["spec"]["template"]["metadata"]["labels"],
        json!({"koord-app": "koordlet", "runtimeproxy.koordinator.sh/skip-hookserver": "true"})
    );
    let container = &pod(&objects)["containers"][0];
    assert_eq!(
        texts(&container["args"]),
        [
            "--addr=:9400",
            "--cgroup-root-dir=/host-cgroup/",
            "--feature-gates=BECPUEvict=true,BEMemoryEvict=true,CgroupReconcile=true,Accelerators=true",
            "--runtime-hooks-host-endpoint=/var/run/koordlet/koordlet.sock",
            "--v=2",
        ]
    );
    let line = std::iter::once("koordlet").chain(texts(&container["args"])).map(str::to_owned);
    let environment = [("NODE_NAME".to_owned(), "n".to_owned())].into();
    assert!(koordlet::Options::from_arguments(line).unwrap().check_in(&environment).is_ok());
    assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
    assert_eq!(container["ports"], json!([{"name": "metrics", "containerPort": 9400, "protocol": "TCP"}]));
    assert_eq!(container["image"], format!("koordinator-sh/koordlet:v{}-rust", env!("CARGO_PKG_VERSION")));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(pod(&objects)["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!((&pod(&objects)["hostNetwork"], &pod(&objects)["hostPID"]), (&json!(true), &json!(true)));
    let role = find(&objects, "ClusterRole", "koordlet-role").unwrap();
    let granted = role["rules"].as_array().unwrap().iter();
    assert!(
        granted
            .flat_map(|rule| texts(&rule["resources"]).into_iter().chain(texts(&rule["verbs"])))
            .all(|word| word != "*")
    );
    let without = rendered(&helm, &[]).unwrap();
    assert!(without.iter().all(|object| !object["metadata"]["name"].as_str().unwrap().starts_with("koordlet")));
}

#[test]
fn a_gate_brings_the_capabilities_and_folders_that_it_needs_and_no_other() {
    let Some(helm) = helm() else { return };
    let kept = [
        "/sys/fs/cgroup/",
        "/sys/fs/",
        "/var/run/koordlet",
        "/etc/runtime/hookserver.d/",
        "/var/run/koordlet/prediction-checkpoints",
    ];
    for (features, added, folders) in [
        ("", &[][..], &[][..]),
        ("CPICollector=true", &["PERFMON"], &[]),
        ("CoreSched=true", &["SYS_PTRACE"], &[]),
        ("TCNetworkQoS=true", &["NET_ADMIN"], &[]),
        ("OOMScoreAdj=true", &["DAC_OVERRIDE", "SYS_RESOURCE"], &[]),
        ("ColdPageCollector=true", &[], &["/sys/"]),
        ("PodResourcesProxy=true", &[], &["/var/run/koordlet/pod-resources/"]),
        ("TerwayQoS=true", &[], &["/var/lib/terway/"]),
        ("HamiCoreVGPUMonitor=true", &[], &["/usr/local/vgpu/containers/"]),
        ("AuditEvents=true", &[], &["/var/log/koordlet"]),
        (
            "AllAlpha=true,PodResourcesProxy=false,HamiCoreVGPUMonitor=0,TerwayQoS=false,ColdPageCollector=F",
            &["DAC_OVERRIDE", "NET_ADMIN", "PERFMON", "SYS_PTRACE", "SYS_RESOURCE"],
            &["/var/log/koordlet"],
        ),
    ] {
        let objects = with(&helm, &["--set-json", &format!("koordlet.features={}", json!(features))]);
        assert_eq!(capabilities(&objects), added, "{features}");
        let mut expected = [&kept[..], folders].concat();
        let mut found = written(&objects);
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{features}");
    }
}

#[test]
fn an_agent_that_observes_writes_into_no_folder_of_the_node_and_has_no_capability() {
    let Some(helm) = helm() else { return };
    let objects = with(&helm, &["--set=koordlet.observeOnly=true,koordlet.features=CoreSched=true"]);
    assert!(texts(&pod(&objects)["containers"][0]["args"]).contains(&"--observe-only"));
    assert!(capabilities(&objects).is_empty() && written(&objects).is_empty());
}

#[test]
fn triggers_for_pressure_need_a_capability() {
    let Some(helm) = helm() else { return };
    let objects = with(&helm, &["--set=koordlet.pressureTriggers=true,koordlet.features=OOMScoreAdj=true"]);
    assert!(texts(&pod(&objects)["containers"][0]["args"]).contains(&"--pressure-triggers"));
    assert_eq!(capabilities(&objects), ["DAC_OVERRIDE", "SYS_RESOURCE"]);
}

#[test]
fn it_is_privileged_only_where_that_is_said() {
    let Some(helm) = helm() else { return };
    let objects = with(&helm, &["--set=koordlet.privileged=true,koordlet.features=CoreSched=true"]);
    let context = &pod(&objects)["containers"][0]["securityContext"];
    // With a field that forbids more privileges the API server would refuse it.
    assert_eq!(*context, json!({"privileged": true, "readOnlyRootFilesystem": true}));
}

#[test]
fn its_port_is_closed_to_others_where_policies_apply_and_scraped_as_that_of_the_original() {
    let Some(helm) = helm() else { return };
    let objects = with(&helm, &["--set=koordlet.enableServiceMonitor=true"]);
    assert!(find(&objects, "NetworkPolicy", "koordlet").is_none(), "no policy applies to the node's network");
    let service = find(&objects, "Service", "koordlet-service").unwrap();
    assert_eq!((&service["spec"]["clusterIP"], &service["spec"]["ports"][0]["port"]), (&json!("None"), &json!(9316)));
    let monitor = find(&objects, "ServiceMonitor", "koordlet-service-monitor").unwrap();
    assert_eq!(monitor["spec"]["endpoints"][0]["relabelings"][0]["targetLabel"], "node");
    let objects = with(&helm, &["--set=koordlet.hostNetwork=false"]);
    let policy = find(&objects, "NetworkPolicy", "koordlet").unwrap();
    assert_eq!(policy["spec"]["ingress"], json!([{"ports": [{"port": "metrics", "protocol": "TCP"}]}]));
}

#[test]
fn a_values_file_of_the_original_installs_it_where_it_is_wanted() {
    let Some(helm) = helm() else { return };
    for file in ["values-of-0.7.0.yaml", "original-chart/values.yaml"] {
        let objects = with(&helm, &[&format!("--values={}", data(file))]);
        let container = &pod(&objects)["containers"][0];
        let image = container["image"].as_str().unwrap();
        assert!(image.ends_with(&format!("koordlet:v{}-rust", env!("CARGO_PKG_VERSION"))), "{file}: {image}");
        let endpoint = "--runtime-hooks-host-endpoint=/var/run/koordlet/koordlet.sock";
        assert!(texts(&container["args"]).contains(&endpoint), "{file}");
    }
}

#[test]
fn config_koordlet_is_what_the_chart_renders() {
    let Some(helm) = helm() else { return };
    let folder = repository("config/koordlet");
    let objects = rendered(&helm, &[&format!("--values={}", folder.join("values.yaml").display())]).unwrap();
    for file in ["koordlet.yaml", "service_account.yaml", "role.yaml", "role_binding.yaml"] {
        is_rendered(&objects, &folder.join(file));
    }
}

#[test]
fn what_a_value_of_it_must_be_is_reported() {
    let Some(helm) = helm() else { return };
    for (set, message) in [
        ("koordlet.featurs=x", "koordlet: Additional property featurs is not allowed"),
        ("koordlet.features=CPUBrst=true,koordlet.enabled=true", "koordlet has no gate \"CPUBrst\""),
        ("koordlet.features=CPUBurst,koordlet.enabled=true", "is not of the form Name=true or Name=false"),
        ("koordlet.metrics.port=0", "koordlet.metrics.port: Must be greater than or equal to 1"),
        ("koordlet.maxUnavailable=0", "koordlet.maxUnavailable: Must be greater than or equal to 1"),
    ] {
        let printed = helm.try_run(&["template", "koordinator", &super::chart(), "--set", set]).unwrap();
        assert!(printed.code != 0 && printed.stderr.contains(message), "{set}: {}", printed.stderr);
    }
}
