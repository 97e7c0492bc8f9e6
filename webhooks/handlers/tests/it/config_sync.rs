//! Webhook configurations are brought to what the original would make of them.

use koord_resource::go_json;
use koord_webhook_handlers::HANDLERS;
use koord_webhook_server::configuration::{Target, repair};
use serde_json::{Value, json};

use crate::replay::gate;

fn recordings() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../../tests/data/manager/config-sync.json")).unwrap()
}

/// What the API server makes of a configuration that is created: it fills in defaults.
fn stored(mut configuration: Value) -> Value {
    let mutating = configuration["kind"] == "MutatingWebhookConfiguration";
    for entry in configuration["webhooks"].as_array_mut().unwrap() {
        entry["clientConfig"]["service"]["port"] = json!(443);
        entry["matchPolicy"] = json!("Equivalent");
        entry["namespaceSelector"] = json!({});
        entry["rules"][0]["scope"] = json!("*");
        if mutating {
            entry["reinvocationPolicy"] = json!("Never");
        }
    }
    configuration
}

/// A configuration without what differs between two clusters and without nothing: absent, `null` and empty are alike.
fn comparable(configuration: &Value) -> Value {
    let mut configuration = configuration.clone();
    configuration["metadata"].as_object_mut().unwrap().retain(|name, _| name == "name" || name == "annotations");
    if let Some(template) = configuration["metadata"]["annotations"]["template"].as_str() {
        configuration["metadata"]["annotations"]["template"] = serde_json::from_str(template).unwrap();
    }
    for entry in configuration["webhooks"].as_array_mut().unwrap() {
        let client = entry["clientConfig"].as_object_mut().unwrap();
        if client.get("caBundle").is_some_and(|bundle| !bundle.is_null()) {
            client.insert("caBundle".to_owned(), "$set".into());
        }
    }
    crate::replay::pruned(&configuration)
}

#[test]
fn configurations_become_what_the_original_makes_of_them() {
    let recordings = recordings();
    for recording in &recordings {
        let gates = recording["featureGates"].as_str().unwrap();
        let gate = gate(gates);
        let host = (recording["env"]["WEBHOOK_HOST"] != "").then_some(("127.0.0.1", 9443));
        let target =
            Target { ca_bundle: "pem", namespace: "koordinator-system", service: "koordinator-webhook-service", host };
        let served = |path: &str| HANDLERS.iter().any(|handler| handler.path == path && handler.gate.is_none_or(&gate));
        for (before, wanted) in
            recording["before"].as_array().unwrap().iter().zip(recording["recorded"].as_array().unwrap())
        {
            let mut configuration = stored(before.clone());
            if gate("WebhookFramework") {
                let patch = repair(&configuration, &target, served).unwrap().unwrap();
                configuration = koord_schema::patch::merge::apply(configuration, &patch);
            }
            let text = go_json::to_string(&comparable(&configuration)).unwrap().replace(":9443/", ":$port/");
            let got: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(got, comparable(wanted), "{}", recording["name"]);
        }
    }
    assert!(recordings.len() >= 3);
}
