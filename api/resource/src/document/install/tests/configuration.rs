//! How a configuration file comes to the program.

use super::*;

const TEXT: &str = "kind: WaiterConfiguration\n# Tables that one waiter serves.\ntables: 12\n";

fn configured(text: &str) -> Installation {
    Installation { configuration: Some(ConfigurationFile::of("waiter", text)), ..waiter() }
}

/// The pods that the Deployment makes.
fn template(installation: &Installation) -> Value {
    only(&install(installation), "Deployment")["spec"]["template"].clone()
}

#[test]
fn the_file_is_a_key_of_a_config_map_that_pods_mount_to_be_read() {
    let objects = install(&Installation { webhooks: served().webhooks, ..configured(TEXT) });
    let config_map = only(&objects, "ConfigMap");
    let metadata = json!({
        "name": "waiter-config", "namespace": "restaurant", "labels": {"app.kubernetes.io/name": "waiter"},
    });
    assert_eq!((&config_map["metadata"], &config_map["data"]), (&metadata, &json!({"config.yaml": TEXT})));
    let place = |kind: &str| objects.iter().position(|object| object["kind"] == kind).unwrap();
    assert!(place("Namespace") < place("ConfigMap") && place("ConfigMap") < place("Deployment"));

    let pod = &only(&objects, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["name"], "certificates", "it stays beside the file");
    assert_eq!(pod["volumes"][1], json!({"name": "configuration", "configMap": {"name": "waiter-config"}}));
    let mounts = &container(&objects)["volumeMounts"];
    assert_eq!(mounts[0]["name"], "certificates");
    assert_eq!(mounts[1], json!({"name": "configuration", "mountPath": "/etc/waiter", "readOnly": true}));
    assert_eq!((pod["volumes"].as_array().unwrap().len(), mounts.as_array().unwrap().len()), (2, 2));
}

#[test]
fn the_flag_names_the_file_before_the_programs_own_flags() {
    let mut installation = Installation { arguments: vec!["--tables=12".to_owned()], ..configured(TEXT) };
    let last = |installation: &Installation| {
        let arguments = template(installation)["spec"]["containers"][0]["args"].clone();
        let arguments: Vec<String> = serde_json::from_value(arguments).unwrap();
        arguments[arguments.len() - 2..].to_vec()
    };
    assert_eq!(last(&installation), ["--config=/etc/waiter/config.yaml", "--tables=12"]);
    let file = installation.configuration.as_mut().unwrap();
    (file.folder, file.key) = ("/config".to_owned(), "waiter.yaml".to_owned());
    assert_eq!(last(&installation), ["--config=/config/waiter.yaml", "--tables=12"]);
    assert_eq!(only(&install(&installation), "ConfigMap")["data"], json!({"waiter.yaml": TEXT}));
}

#[test]
fn a_changed_file_replaces_the_pods_and_the_same_one_does_not() {
    let before = template(&configured(TEXT));
    assert_eq!(template(&configured(TEXT)), before);
    let mut after = template(&configured(&TEXT.replace("12", "13")));
    let checksum = |template: &Value| template["metadata"]["annotations"]["checksum/config"].clone();
    assert!(checksum(&before).is_string() && checksum(&before) != checksum(&after));
    after["metadata"]["annotations"]["checksum/config"] = checksum(&before);
    assert_eq!(after, before, "nothing else differs");
}

#[test]
fn without_a_file_pods_have_no_trace_of_one() {
    let objects = install(&served());
    assert!(objects.iter().all(|object| object["kind"] != "ConfigMap"));
    let template = template(&served());
    assert_eq!(template["metadata"]["annotations"], Value::Null);
    assert_eq!(template["spec"]["volumes"].as_array().map(Vec::len), Some(1));
    assert!(!template["spec"]["containers"][0]["args"].to_string().contains("--config"));
}
