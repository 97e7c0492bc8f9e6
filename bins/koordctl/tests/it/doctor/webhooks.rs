//! What is found of webhook configurations and the certificates that are presented.

use super::*;

#[test]
fn webhooks_that_cannot_be_called_are_found() {
    let cluster = healthy("doctor-webhooks");
    let (mutating, validating) = (format!("{MUTATING}/{MUTATING_NAME}"), format!("{VALIDATING}/{VALIDATING_NAME}"));
    let entries = cluster.get(&mutating)["webhooks"].clone();
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut entries = entries.clone();
        edit(&mut entries[0]);
        cluster.patch(&mutating, &json!({"webhooks": entries}));
    };
    with(&|entry| entry["clientConfig"]["service"]["path"] = "/unknown".into());
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "\"/unknown\", which koord-manager does not serve");
    with(&|entry| entry["clientConfig"]["service"]["name"] = "other".into());
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "it calls Service koordinator-system/other");
    with(&|entry| {
        entry["matchConditions"] = json!([]);
        entry["namespaceSelector"] = json!({});
    });
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "catches pods of kube-system, koordinator-system");
    with(&|entry| {
        entry["namespaceSelector"] = json!({});
        entry["matchConditions"] = json!([{"name": "own", "expression": "request.namespace != 'koordinator-system'"}]);
    });
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "catches pods of kube-system:");
    with(&|entry| {
        entry["failurePolicy"] = "Ignore".into();
        entry["matchConditions"] = json!([]);
        entry["namespaceSelector"] = json!({});
    });
    assert_eq!(findings(&cluster, &["--only=webhooks"]), (vec![], 0), "what is ignored cannot lock anybody out");
    cluster.patch(&mutating, &json!({"webhooks": []}));
    finds(&cluster, "webhooks", "warning", MUTATING_NAME, "it has no entries");
    with(&|_| {});

    with(&|entry| entry["clientConfig"]["service"]["port"] = 9443.into());
    let service = "Service koordinator-system/koordinator-webhook-service";
    finds(&cluster, "webhooks", "error", service, "call its port 9443, and it has only 443");
    with(&|entry| {
        entry["clientConfig"]["service"]["port"] = 9443.into();
        entry["failurePolicy"] = "Ignore".into();
    });
    finds(&cluster, "webhooks", "warning", service, "has only 443: requests pass unchecked");
    with(&|_| {});

    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices/webhook");
    cluster.patch(&slices, &json!({"ports": null}));
    finds(&cluster, "webhooks", "error", service, "none of them has its targetPort webhook-server");
    cluster.patch(&slices, &json!({"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}]}));
    finds(&cluster, "webhooks", "error", service, "no pod answers behind it");
    cluster.delete(&format!("/api/v1/namespaces/{SYSTEM}/services/koordinator-webhook-service"));
    finds(&cluster, "webhooks", "error", service, "it is not there");
    cluster.delete(&mutating);
    let (found, _) = findings(&cluster, &["--only=webhooks"]);
    assert!(
        found.iter().any(|(_, what, why)| what.contains(MUTATING_NAME) && why.contains("it is not there")),
        "{found:?}"
    );
    cluster.delete(&validating);
    finds(&cluster, "webhooks", "warning", "Webhook configurations", "there are none");
}

#[test]
fn certificates_that_nobody_believes_are_found() {
    let cluster = healthy("doctor-certificates");
    let in_days = |days: i64| Timestamp::now() + SignedDuration::from_hours(24 * days);
    let look = |days: i64| findings(&cluster, &["--only=certificates", &format!("--at={}", in_days(days))]).0;
    assert_eq!(look(0), []);
    let end = ends_at(&certificates(Timestamp::now()).cert).unwrap();
    let days = end.duration_since(Timestamp::now()).as_hours() / 24;
    let found = look(days - 10);
    assert!(
        found.iter().any(|(how, _, why)| how == "warning" && why.contains("should long have been renewed")),
        "{found:?}"
    );
    let found = look(days + 10);
    assert!(
        found
            .iter()
            .any(|(how, what, why)| how == "error" && what.starts_with("Secret") && why.contains("cannot be served")),
        "{found:?}"
    );

    // A bundle that trusts another authority, and one that trusts none.
    let mutating = format!("{MUTATING}/{MUTATING_NAME}");
    let entries = cluster.get(&mutating)["webhooks"].clone();
    let with = |bundle: String| {
        let mut entries = entries.clone();
        entries[0]["clientConfig"]["caBundle"] = bundle.into();
        cluster.patch(&mutating, &json!({"webhooks": entries}));
    };
    with(BASE64.encode(certificates(Timestamp::now()).ca_certs));
    finds(&cluster, "certificates", "error", "entry mpod-create", "does not verify the stored certificate");
    with("Cg==".to_owned());
    finds(&cluster, "certificates", "error", "entry mpod-create", "its caBundle holds no certificate");
    with(entries[0]["clientConfig"]["caBundle"].as_str().unwrap().to_owned());

    let secret_path = format!("/api/v1/namespaces/{SYSTEM}/secrets/koordinator-webhook-certs");
    let kept = cluster.get(&secret_path);
    let foreign = decide(None, "elsewhere.svc", false, Timestamp::now()).unwrap().set;
    cluster.patch(&secret_path, &json!({"data": secret(&foreign)["data"]}));
    let (found, _) = findings(&cluster, &["--only=certificates"]);
    assert!(
        found.iter().any(|(_, what, why)| what.starts_with("Secret") && why.contains("not valid for name")),
        "{found:?}"
    );
    cluster.delete(&secret_path);
    finds(&cluster, "certificates", "note", "Secret koordinator-system/koordinator-webhook-certs", "it is not there");
    assert_eq!(kept["data"].as_object().unwrap().len(), 6);
}

#[test]
fn the_certificate_that_is_presented_is_looked_at() {
    let kubeconfig = folder("doctor-presented").join("kubeconfig");
    let _up = Up::start(&kubeconfig, &[]);
    let api = Api::of(&kubeconfig);
    let doctor = |mutating: &str| {
        let mut command = koordctl();
        command.args(["doctor", "--only=certificates", "-o", "json", "--kubeconfig"]).arg(&kubeconfig);
        let output = command.env("MUTATING_WEBHOOK_NAME", mutating).output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let problems = json["findings"].as_array().unwrap().iter();
        let problems = problems.filter(|finding| finding["severity"] != "note");
        problems.map(|finding| finding["problem"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(doctor(MUTATING_NAME), [""; 0]);

    let mut other = api.get(&format!("{MUTATING}/{MUTATING_NAME}"));
    let entry = other["webhooks"][0].clone();
    other["metadata"] = json!({"name": "other"});
    other["webhooks"] = json!([entry, entry]);
    for (index, (name, bundle, url)) in [
        (
            "a.koordinator.sh",
            BASE64.encode(certificates(Timestamp::now()).ca_certs),
            entry["clientConfig"]["url"].clone(),
        ),
        (
            "b.koordinator.sh",
            entry["clientConfig"]["caBundle"].as_str().unwrap().to_owned(),
            "https://127.0.0.1:1/mutate-pod".into(),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        other["webhooks"][index]["name"] = name.into();
        other["webhooks"][index]["clientConfig"]["caBundle"] = bundle.into();
        other["webhooks"][index]["clientConfig"]["url"] = url;
        other["webhooks"][index]["failurePolicy"] = "Ignore".into();
    }
    api.create(MUTATING, &other).unwrap();
    let found = doctor("other");
    assert!(found.iter().any(|why| why.contains("does not verify the certificate that 127.0.0.1:")), "{found:?}");
    assert!(found.iter().any(|why| why.contains("no answer from 127.0.0.1:1")), "{found:?}");

    api.create(&format!("/api/v1/namespaces/{SYSTEM}/secrets"), &secret(&certificates(Timestamp::now()))).unwrap();
    let found = doctor(MUTATING_NAME);
    assert!(found.iter().any(|why| why.contains("presents another certificate than the Secret holds")), "{found:?}");
}

#[test]
fn what_the_service_presents_is_looked_at_where_it_can_be_reached() {
    let cluster = healthy("doctor-reached");
    let findings = |arguments: &[&str]| {
        let line = [&["doctor", "--only=certificates", "-o", "json"], arguments].concat();
        let answer: Value = serde_json::from_str(&cluster.koordctl(&line).unwrap().text).unwrap();
        answer["findings"].clone()
    };
    let not_checked = findings(&[]);
    assert_eq!(not_checked.as_array().unwrap().len(), 1, "{not_checked:#}");
    let finding = &not_checked[0];
    assert_eq!(
        (&finding["severity"], &finding["object"]),
        (&"note".into(), &format!("Service {SYSTEM}/{SERVICE}").into())
    );
    assert!(finding["problem"].as_str().unwrap().starts_with(NOT_CHECKED), "{finding}");
    let forward = format!("kubectl -n {SYSTEM} port-forward service/{SERVICE} 9443:443");
    assert!(finding["remedy"].as_str().unwrap().contains(&forward), "{finding}");

    let stored = cluster.get(&format!("/api/v1/namespaces/{SYSTEM}/secrets/koordinator-webhook-certs"));
    let entries = stored["data"].as_object().unwrap().iter();
    let entries = entries.map(|(name, text)| (name.clone(), BASE64.decode(text.as_str().unwrap()).unwrap())).collect();
    let at = |set: &CertificateSet| format!("--webhook-at={}", presented(set));
    assert_eq!(findings(&[&at(&CertificateSet::of_entries(&entries))]), json!([]));
    let other = findings(&[&at(&certificates(Timestamp::now()))]);
    let problem = other[0]["problem"].as_str().unwrap();
    assert!(problem.contains("does not verify the certificate that koordinator-webhook-service."), "{other:#}");
    let nobody = findings(&["--webhook-at=127.0.0.1:1"]);
    assert!(nobody[0]["problem"].as_str().unwrap().starts_with("no answer from 127.0.0.1:1"), "{nobody:#}");
    assert_eq!((nobody.as_array().unwrap().len(), &nobody[0]["severity"]), (1, &"error".into()));
}
