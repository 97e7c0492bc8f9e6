//! The controller makes certificates, publishes their authority, and says when API servers trust the server.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use koord_runtime::clock::ManualClock;
use koord_webhook_server::{CertWriter, Environment, Served, WebhookController};
use serde_json::{Value, json};

use crate::api_server::{ApiServer, DEFINITION, MUTATING, SECRET, VALIDATING, defaults};

fn environment(folder: &Path, variables: &[(&str, &str)]) -> Environment {
    let home = folder.to_string_lossy().into_owned();
    let variables: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .chain([("WEBHOOK_CERT_DIR".to_owned(), home)])
        .collect();
    Environment::of(defaults(), |name| variables.get(name).cloned()).unwrap()
}

fn controller(environment: Environment) -> (WebhookController, Arc<ManualClock>) {
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let served = Served { paths: vec!["/mutate-pod", "/validate-pod"], ..Served::default() };
    (WebhookController::new(environment, served, 9443, Arc::clone(&clock) as _), clock)
}

#[tokio::test]
async fn the_first_pass_makes_everything_and_the_second_writes_nothing() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let (controller, _) = controller(environment(folder.path(), &[]));
    assert!(controller.ready().is_err());
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(controller.ready(), Ok(()));

    let secret = server.get(SECRET).unwrap();
    let names: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"]);
    assert!(folder.path().join("tls.crt").exists(), "other programs of the Pod find the files");
    for path in [MUTATING, VALIDATING] {
        let webhooks = server.get(path).unwrap()["webhooks"].clone();
        assert_eq!(webhooks.as_array().unwrap().len(), 1, "nobody answers on /off");
        let client = &webhooks[0]["clientConfig"];
        assert_eq!(client["caBundle"], secret["data"]["ca-cert.pem"]);
        assert_eq!(client["service"]["name"], "koordinator-webhook-service");
    }
    let writes = server.writes.lock().unwrap().len();
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(server.writes.lock().unwrap().len(), writes, "{:?}", server.writes.lock().unwrap());
}

#[tokio::test]
async fn entries_that_declare_another_server_stay_and_readiness_does_not_wait_for_them() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let mut configuration = server.get(MUTATING).unwrap();
    let policy = json!({"name": "policy.example.com", "clientConfig": {"url": "https://policy.example.com/check"}});
    configuration["webhooks"].as_array_mut().unwrap().push(policy);
    server.put(MUTATING, configuration);
    let elsewhere = vec!["off.example.com"];
    let served = Served { paths: vec!["/mutate-pod", "/validate-pod"], elsewhere, ..Served::default() };
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let controller = WebhookController::new(environment(folder.path(), &[]), served, 9443, clock);
    let before = server.get(MUTATING).unwrap()["webhooks"].clone();
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(controller.ready(), Ok(()));
    let after = server.get(MUTATING).unwrap()["webhooks"].clone();
    assert_ne!(after[0], before[0]);
    assert_eq!((&after[1], &after[2]), (&before[1], &before[2]));
    let writes = server.writes.lock().unwrap().len();
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(server.writes.lock().unwrap().len(), writes);
}

#[tokio::test]
async fn a_reset_configuration_makes_the_server_repair_it() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let (controller, _) = controller(environment(folder.path(), &[]));
    controller.pass(&server.api()).await.unwrap();
    let right = server.get(MUTATING).unwrap()["webhooks"].clone();
    // What `helm upgrade` leaves: the chart's entries, and the annotation that it does not know.
    let mut upgraded = server.get(MUTATING).unwrap();
    upgraded["webhooks"] = ApiServer::with_configurations().get(MUTATING).unwrap()["webhooks"].clone();
    server.put(MUTATING, upgraded);
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(server.get(MUTATING).unwrap()["webhooks"], right);
    assert_eq!(controller.ready(), Ok(()));
}

#[tokio::test]
async fn a_secret_of_the_original_is_taken_over_as_it_is() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let entries: BTreeMap<String, String> =
        serde_json::from_str(include_str!("../data/secret_of_the_original.json")).unwrap();
    let data: BTreeMap<&String, String> = entries.iter().map(|(name, text)| (name, base64(text))).collect();
    server.put(SECRET, json!({"kind": "Secret", "data": data}));
    let (controller, _) = controller(environment(folder.path(), &[]));
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(controller.ready(), Ok(()));
    assert!(!server.writes.lock().unwrap().iter().any(|write| write.ends_with(SECRET)));
    assert_eq!(
        server.get(MUTATING).unwrap()["webhooks"][0]["clientConfig"]["caBundle"],
        data[&"ca-cert.pem".to_owned()]
    );
}

#[tokio::test]
async fn two_replicas_agree_on_one_set() {
    let (server, one, two) =
        (ApiServer::with_configurations(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ((first, _), (second, _)) =
        (controller(environment(one.path(), &[])), controller(environment(two.path(), &[])));
    first.pass(&server.api()).await.unwrap();
    second.pass(&server.api()).await.unwrap();
    assert_eq!(first.certificate().presented(), second.certificate().presented());
    assert_eq!((first.ready(), second.ready()), (Ok(()), Ok(())));
}

#[tokio::test]
async fn a_host_keeps_certificates_in_the_folder_and_entries_call_it() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let environment = environment(folder.path(), &[("WEBHOOK_HOST", "127.0.0.1")]);
    assert_eq!(environment.cert_writer, CertWriter::Folder);
    let (controller, _) = controller(environment);
    controller.pass(&server.api()).await.unwrap();
    assert_eq!((server.get(SECRET), controller.ready()), (None, Ok(())));
    let client = server.get(MUTATING).unwrap()["webhooks"][0]["clientConfig"].clone();
    assert_eq!((&client["url"], client.get("service")), (&json!("https://127.0.0.1:9443/mutate-pod"), None));
}

/// The administrator's own pair: for another host, then for this one, then half written over.
#[tokio::test]
async fn files_of_an_administrator_are_served_or_left_and_the_message_says_which_file_and_why() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let host = [("WEBHOOK_HOST", "127.0.0.1")];
    let file = |name: &str| folder.path().join(name);
    let put = |name: &str, text: &str| {
        std::fs::remove_file(file(name)).ok();
        std::fs::write(file(name), text).unwrap();
    };
    let texts = || ["ca-cert.pem", "tls.crt", "tls.key"].map(|name| std::fs::read_to_string(file(name)).unwrap());
    let pair = |host: &str| {
        koord_webhook_server::certificates::decide(None, host, false, "2026-01-01T00:00:00Z".parse().unwrap())
            .unwrap()
            .set
    };
    let put_pair = |host: &str| {
        let set = pair(host);
        for (name, text) in [("ca-cert.pem", &set.ca_certs), ("tls.crt", &set.cert), ("tls.key", &set.key)] {
            put(name, text);
        }
        texts()
    };

    let theirs = put_pair("hooks.example.com");
    let (first, _) = controller(environment(folder.path(), &host));
    let message = first.pass(&server.api()).await.unwrap_err().to_string();
    for part in ["clients would refuse the certificate for 127.0.0.1", "ca-cert.pem was not written by this program"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!((texts(), first.ready()), (theirs, Err(message)), "nothing is replaced");
    put("tls.crt", "no PEM");
    let message = first.pass(&server.api()).await.unwrap_err().to_string();
    assert!(message.contains("no server certificate in PEM form (tls.crt)"), "{message}");

    let theirs = put_pair("127.0.0.1");
    first.pass(&server.api()).await.unwrap();
    assert_eq!((texts(), first.ready()), (theirs, Ok(())));
    let presented = first.certificate().presented();
    put("tls.key", "half of a k");
    first.pass(&server.api()).await.unwrap();
    assert_eq!(
        (texts()[2].as_str(), first.certificate().presented()),
        ("half of a k", presented),
        "what was served still is"
    );

    for name in ["ca-cert.pem", "tls.crt", "tls.key"] {
        std::fs::remove_file(file(name)).unwrap();
    }
    first.pass(&server.api()).await.unwrap();
    assert!(texts()[1].contains("BEGIN CERTIFICATE"), "where there are none, they are made");
}

#[tokio::test]
async fn without_a_configuration_the_server_is_not_ready_and_says_why() {
    let (server, folder) = (ApiServer::default(), tempfile::tempdir().unwrap());
    let (controller, _) = controller(environment(folder.path(), &[]));
    let error = controller.pass(&server.api()).await.unwrap_err();
    let wanted = "not found MutatingWebhookConfiguration koordinator-mutating-webhook-configuration";
    assert_eq!((error.to_string().as_str(), controller.ready()), (wanted, Err(wanted.to_owned())));
}

fn base64(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

#[tokio::test]
async fn a_renewal_leaves_what_others_wrote_into_the_secret() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let (controller, clock) = controller(environment(folder.path(), &[]));
    controller.pass(&server.api()).await.unwrap();
    // Years later the certificate must be renewed; somebody labels the Secret at the same time.
    clock.jump_to("2035-08-01T00:00:00Z".parse().unwrap());
    let mut secret: Value = server.get(SECRET).unwrap();
    secret["metadata"]["labels"] = json!({"a": "b"});
    server.put(SECRET, secret);
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(server.get(SECRET).unwrap()["metadata"]["labels"], json!({"a": "b"}));
    assert!(server.get(SECRET).unwrap()["data"].get("next-ca-cert.pem").is_some());
}

#[tokio::test]
async fn a_converted_kind_calls_the_server_and_readiness_waits_for_it() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let served = Served {
        paths: vec!["/mutate-pod", "/validate-pod", "/convert"],
        definitions: vec!["databases.db.example.com".to_owned()],
        ..Served::default()
    };
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let controller = WebhookController::new(environment(folder.path(), &[]), served, 9443, clock);
    let wanted = "not found CustomResourceDefinition databases.db.example.com";
    assert_eq!(controller.pass(&server.api()).await.unwrap_err().to_string(), wanted);
    assert_eq!(controller.ready(), Err(wanted.to_owned()));

    let definition = |conversion: &Value| {
        json!({"kind": "CustomResourceDefinition", "metadata": {"name": "databases.db.example.com"},
            "spec": {"group": "db.example.com", "conversion": conversion}})
    };
    server.put(DEFINITION, definition(&json!({"strategy": "None"})));
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(controller.ready(), Ok(()));
    let right = server.get(DEFINITION).unwrap()["spec"]["conversion"].clone();
    assert_eq!(right["webhook"]["clientConfig"]["caBundle"], server.get(SECRET).unwrap()["data"]["ca-cert.pem"]);
    assert_eq!(right["webhook"]["clientConfig"]["service"]["path"], "/convert");

    let mut emptied = right.clone();
    emptied["webhook"]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    server.put(DEFINITION, definition(&emptied));
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(server.get(DEFINITION).unwrap()["spec"]["conversion"], right);
    let writes = server.writes.lock().unwrap().len();
    controller.pass(&server.api()).await.unwrap();
    assert_eq!(server.writes.lock().unwrap().len(), writes);
}

#[tokio::test]
async fn advisory_entries_stand_only_where_the_api_server_knows_match_conditions() {
    for (version, entries) in
        [(Some(json!({"major": "1", "minor": "27"})), 1), (Some(json!({"major": "1", "minor": "28+"})), 2), (None, 1)]
    {
        let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
        if let Some(version) = &version {
            server.put("/version", version.clone());
        }
        let (paths, advisory) = (vec!["/mutate-pod", "/validate-pod", "/off"], vec!["/off"]);
        let served = Served { paths, advisory, ..Served::default() };
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let controller = WebhookController::new(environment(folder.path(), &[]), served, 9443, clock);
        controller.pass(&server.api()).await.unwrap();
        assert_eq!(controller.ready(), Ok(()));
        let webhooks = server.get(VALIDATING).unwrap()["webhooks"].clone();
        assert_eq!(webhooks.as_array().unwrap().len(), entries, "{version:?}");
        if entries == 2 {
            assert_eq!(webhooks[1]["failurePolicy"], "Ignore");
            assert_eq!(webhooks[1]["matchConditions"][0]["name"], "not-by-this-installation");
        }
        let writes = server.writes.lock().unwrap().len();
        controller.pass(&server.api()).await.unwrap();
        assert_eq!(server.writes.lock().unwrap().len(), writes, "the second pass writes nothing");
    }
}
