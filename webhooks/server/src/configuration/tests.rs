use super::*;

const TARGET: Target<'_> =
    Target { ca_bundle: "PEM", namespace: "koordinator-system", service: "koordinator-webhook-service", host: None };

const CALLED: Called<'_> = Called { target: &TARGET, elsewhere: &["vown.example.com"] };

fn served(path: &str) -> bool {
    path != "/mutate-reservation"
}

fn from_the_chart() -> Value {
    let entry = |name: &str, path: &str| {
        json!({
            "name": name, "failurePolicy": "Ignore", "sideEffects": "None",
            "clientConfig": {"caBundle": "Cg==", "service": {"name": "webhook-service", "namespace": "x", "path": path}},
            "rules": [{"resources": ["pods"], "operations": ["CREATE"]}],
            "namespaceSelector": {"matchExpressions": [{"values": ["a"], "key": "k", "operator": "In"}],
                "matchLabels": {"url": "1", "name": "<2>"}},
        })
    };
    json!({
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "m", "resourceVersion": "7"},
        "webhooks": [entry("mpod.koordinator.sh", "/mutate-pod"), entry("mres.koordinator.sh", "/mutate-reservation")],
    })
}

fn apply(configuration: &Value, patch: &Value) -> Value {
    let mut configuration = configuration.clone();
    for (name, value) in patch.as_object().unwrap() {
        match name.as_str() {
            "metadata" => {
                for (name, value) in value.as_object().unwrap() {
                    configuration["metadata"][name] = value.clone();
                }
            }
            _ => configuration[name] = value.clone(),
        }
    }
    configuration
}

#[test]
fn entries_get_trust_and_service_and_those_of_switched_off_gates_go() {
    let before = from_the_chart();
    let patch = repair(&before, &TARGET, served).unwrap().unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7", "a list is replaced whole");
    let after = apply(&before, &patch);
    assert_eq!(after["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(
        after["webhooks"][0]["clientConfig"],
        json!({"caBundle": BASE64.encode("PEM"), "service": {
            "name": "koordinator-webhook-service", "namespace": "koordinator-system", "path": "/mutate-pod"}})
    );
    assert_eq!(repair(&after, &TARGET, served).unwrap(), None, "what is right is left alone");
    let other = Called { target: &Target { ca_bundle: "OTHER", ..TARGET }, ..CALLED };
    assert!(trusts(&after, CALLED) && !trusts(&after, other) && !trusts(&before, CALLED));
}

#[test]
fn the_template_has_the_text_that_the_original_writes() {
    let patch = repair(&from_the_chart(), &TARGET, served).unwrap().unwrap();
    let template = patch["metadata"]["annotations"]["template"].as_str().unwrap();
    let first = r#"[{"name":"mpod.koordinator.sh","clientConfig":{"service":{"namespace":"x","name":"webhook-service","path":"/mutate-pod"},"caBundle":"Cg=="},"rules":[{"operations":["CREATE"],"resources":["pods"]}],"failurePolicy":"Ignore","namespaceSelector":{"matchLabels":{"name":"\u003c2\u003e","url":"1"},"matchExpressions":[{"key":"k","operator":"In","values":["a"]}]},"sideEffects":"None"},"#;
    assert!(template.starts_with(first), "{template}");
}

#[test]
fn a_gate_that_is_switched_on_again_brings_its_entries_back() {
    let before = from_the_chart();
    let off = apply(&before, &repair(&before, &TARGET, served).unwrap().unwrap());
    let on = apply(&off, &repair(&off, &TARGET, |_| true).unwrap().unwrap());
    assert_eq!(on["webhooks"].as_array().unwrap().len(), 2);
}

#[test]
fn an_upgrade_that_resets_the_entries_is_repaired_from_the_new_ones() {
    let before = from_the_chart();
    let right = apply(&before, &repair(&before, &TARGET, served).unwrap().unwrap());
    // Helm knows neither the annotation nor our entries: a three-way merge puts the chart's list back.
    let mut upgraded = right.clone();
    upgraded["webhooks"] = before["webhooks"].clone();
    assert_eq!(apply(&upgraded, &repair(&upgraded, &TARGET, served).unwrap().unwrap()), right);
}

#[test]
fn a_host_replaces_the_service() {
    let target = Target { host: Some(("127.0.0.1", 9443)), ..TARGET };
    let before = from_the_chart();
    let after = apply(&before, &repair(&before, &target, served).unwrap().unwrap());
    assert_eq!(
        after["webhooks"][0]["clientConfig"],
        json!({"caBundle": BASE64.encode("PEM"), "url": "https://127.0.0.1:9443/mutate-pod"})
    );
    assert_eq!(repair(&after, &target, served).unwrap(), None);
}

/// A configuration of entries by their names and clients.
fn of(clients: &[(&str, Value)]) -> Value {
    let entries = clients.iter().map(|(name, client)| json!({"name": name, "clientConfig": client}));
    json!({"kind": "K", "metadata": {"name": "m"}, "webhooks": entries.collect::<Vec<_>>()})
}

fn ours() -> (&'static str, Value) {
    ("vpod.example.com", json!({"service": {"name": "webhook-service", "namespace": "x", "path": "/mutate-pod"}}))
}

#[test]
fn entries_with_a_url_or_a_service_of_their_own_are_left_as_they_are() {
    let url = ("vurl.example.com", json!({"url": "https://policy.example.com/check"}));
    let service = |name: &str| json!({"service": {"name": name, "namespace": "x", "path": "/mutate-reservation"}});
    let before = of(&[url, ("vown.example.com", service("policy")), ours()]);
    let after = apply(&before, &repair_called(&before, CALLED, served).unwrap().unwrap());
    assert_eq!(after["webhooks"][0], before["webhooks"][0], "nobody here answers on its path, and it has no bundle");
    assert_eq!(after["webhooks"][1], before["webhooks"][1]);
    assert_eq!(after["webhooks"][2]["clientConfig"]["caBundle"], BASE64.encode("PEM"));
    assert_eq!(after["webhooks"][2]["clientConfig"]["service"]["name"], TARGET.service);
    assert_eq!(repair_called(&after, CALLED, served).unwrap(), None);
    assert!(trusts(&after, CALLED), "whom others trust is not asked");
    assert_eq!(bundles(&after, CALLED).count(), 1);

    // What nobody declares has a wrong name, and nobody answers on its path.
    let undeclared = of(&[("vother.example.com", service("policy")), ours()]);
    let after = apply(&undeclared, &repair_called(&undeclared, CALLED, served).unwrap().unwrap());
    assert_eq!(after["webhooks"].as_array().unwrap().len(), 1);
}

#[test]
fn what_others_change_in_their_entries_stays() {
    let url = |host: &str| json!({"url": format!("https://{host}/check")});
    let before = of(&[("vurl.example.com", url("a")), ("vgone.example.com", url("a")), ours()]);
    let right = apply(&before, &repair_called(&before, CALLED, served).unwrap().unwrap());
    let mut changed = right.clone();
    let webhooks = changed["webhooks"].as_array_mut().unwrap();
    webhooks[0]["clientConfig"] = json!({"url": "https://b/check", "caBundle": "VEhFSVJT"});
    webhooks.remove(1);
    webhooks.push(json!({"name": "vnew.example.com", "clientConfig": url("c")}));
    assert_eq!(repair_called(&changed, CALLED, served).unwrap(), None);
    // An entry of this server that is taken away comes back, and theirs stay.
    changed["webhooks"].as_array_mut().unwrap().remove(1);
    let after = apply(&changed, &repair_called(&changed, CALLED, served).unwrap().unwrap());
    let names: Vec<&str> = after["webhooks"].as_array().unwrap().iter().map(|entry| text(entry, "/name")).collect();
    assert_eq!(names, ["vurl.example.com", "vpod.example.com", "vnew.example.com"]);
    assert_eq!(after["webhooks"][0], changed["webhooks"][0]);
}

#[test]
fn a_declared_service_or_url_that_is_this_servers_is_completed() {
    let url = |path: &str| json!({"url": format!("https://koordinator-webhook-service.koordinator-system.svc{path}")});
    let service =
        json!({"service": {"name": TARGET.service, "namespace": TARGET.namespace, "path": "/mutate-pod", "port": 8}});
    let before = of(&[
        ("vown.example.com", service),
        ("vurl.example.com", url("/mutate-pod")),
        ("voff.example.com", url("/mutate-reservation")),
    ]);
    let after = apply(&before, &repair_called(&before, CALLED, served).unwrap().unwrap());
    let entries = after["webhooks"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "nobody answers on the path of the last");
    assert!(entries.iter().all(|entry| entry["clientConfig"]["caBundle"] == BASE64.encode("PEM")), "{after}");
    assert_eq!(entries[0]["clientConfig"]["service"]["port"], 8);
}

#[test]
fn a_definition_calls_the_server_and_keeps_its_port() {
    let mut definition =
        json!({"metadata": {"name": "d.g", "resourceVersion": "3"}, "spec": {"conversion": {"strategy": "None"}}});
    let patch = repair_conversion(&definition, &TARGET).unwrap();
    assert_eq!(patch["metadata"], json!({"resourceVersion": "3"}));
    definition["spec"]["conversion"] = patch["spec"]["conversion"].clone();
    assert_eq!(definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"], 443);
    assert_eq!(repair_conversion(&definition, &TARGET), None);
    let other = Called { target: &Target { ca_bundle: "OTHER", ..TARGET }, ..CALLED };
    assert!(trusts(&definition, CALLED) && !trusts(&definition, other));

    definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] = json!(8443);
    assert_eq!(repair_conversion(&definition, &TARGET), None);
    let renewed = repair_conversion(&definition, &Target { ca_bundle: "NEW", ..TARGET }).unwrap();
    assert_eq!(renewed["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"], 8443);
    let moved = repair_conversion(&definition, &Target { host: Some(("127.0.0.1", 9443)), ..TARGET }).unwrap();
    let client = &moved["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!((&client["url"], &client["service"]), (&json!("https://127.0.0.1:9443/convert"), &Value::Null));
}

#[test]
fn a_template_that_cannot_be_read_says_how_to_go_on() {
    let broken = json!({"kind": "K", "metadata": {"name": "m", "annotations": {"template": "{"}}});
    let error = repair(&broken, &TARGET, served).unwrap_err();
    assert!(error.to_string().starts_with("annotation \"template\" of K m is no list"), "{error}");
}

#[test]
fn an_advisory_path_refuses_nothing_and_is_not_asked_about_own_writes() {
    let mut before = from_the_chart();
    before["webhooks"][0]["failurePolicy"] = "Fail".into();
    let own = json!({"name": "outside-kube-system", "expression": "request.namespace != 'kube-system'"});
    before["webhooks"][0]["matchConditions"] = json!([own]);
    let advisory = |path: &str| if path == "/mutate-pod" { Serving::Advisory } else { Serving::No };
    let after = apply(&before, &repair(&before, &TARGET, advisory).unwrap().unwrap());
    let entry = &after["webhooks"][0];
    assert_eq!((&entry["failurePolicy"], &entry["timeoutSeconds"]), (&json!("Ignore"), &json!(3)));
    let by_others = json!({"name": "not-by-this-installation",
        "expression": "!('system:serviceaccounts:koordinator-system' in request.userInfo.groups)"});
    assert_eq!(entry["matchConditions"], json!([own, by_others]));
    assert_eq!(repair(&after, &TARGET, advisory).unwrap(), None, "what is right is left alone");
    // Enforced, the entry is as somebody wrote it.
    let enforced = apply(&after, &repair(&after, &TARGET, |path| path == "/mutate-pod").unwrap().unwrap());
    assert_eq!(enforced["webhooks"][0]["failurePolicy"], "Fail");
    assert_eq!(enforced["webhooks"][0]["matchConditions"], json!([own]));
}

#[test]
fn match_conditions_are_known_from_kubernetes_1_28_on() {
    let known = |major: &str, minor: &str| knows_match_conditions(&json!({"major": major, "minor": minor}));
    assert_eq!([known("1", "27"), known("1", "27+")], [Some(false); 2]);
    assert_eq!([known("1", "28"), known("1", "30+"), known("2", "0")], [Some(true); 3]);
    assert_eq!([known("", "28"), known("1", "x"), knows_match_conditions(&json!({"message": "forbidden"}))], [None; 3]);
}
