//! Who asks for a certificate, who decides, and what a revision on create does: as on a real kube-apiserver.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use envtest::request::{ApiRequest, User};
use http::Method;
use serde_json::{Value, json};

use crate::api_server::Core;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn send(core: &mut Core, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let mut request = ApiRequest::new(method, path, body.to_string());
    "application/json".clone_into(&mut request.content_type);
    request.user = User { name: "jane".to_owned(), groups: vec!["devs".to_owned()], ..User::default() };
    core.send(&request)
}

fn request(spec: &Value) -> Value {
    let text = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
    let mut object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "c"},
        "spec": {"request": BASE64.encode(text), "signerName": "example.com/signer", "usages": ["client auth"]},
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

#[test]
fn a_request_names_its_requester_and_is_decided_by_its_approval_alone() {
    let mut core = Core::new();
    let (code, created) = send(&mut core, Method::POST, REQUESTS, &request(&json!({"username": "somebody-else"})));
    assert_eq!(code, 201, "{created}");
    assert_eq!((&created["spec"]["username"], &created["spec"]["groups"]), (&json!("jane"), &json!(["devs"])));

    let path = format!("{REQUESTS}/c");
    let mut decided = created.clone();
    decided["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "Fine"}]);
    let (code, refused) = send(&mut core, Method::PUT, &format!("{path}/status"), &decided);
    assert_eq!(code, 422);
    assert!(refused["message"].as_str().unwrap().contains(r#"updates may not add a condition of type "Approved""#));
    let (code, kept) = send(&mut core, Method::PUT, &path, &decided);
    assert_eq!((code, &kept["status"]), (200, &json!({})));

    decided["metadata"]["resourceVersion"] = kept["metadata"]["resourceVersion"].clone();
    decided["spec"]["signerName"] = json!("example.com/another");
    let (code, approved) = send(&mut core, Method::PUT, &format!("{path}/approval"), &decided);
    assert_eq!((code, &approved["spec"]), (200, &created["spec"]), "{approved}");
    let condition = &approved["status"]["conditions"][0];
    assert_eq!(condition["lastUpdateTime"], "2026-01-02T03:04:05Z", "{condition}");
    assert_eq!(condition["lastTransitionTime"], "2026-01-02T03:04:05Z", "{condition}");

    let mut undone = approved.clone();
    undone["status"]["conditions"] = json!([{"type": "Denied", "status": "False"}]);
    let (code, refused) = send(&mut core, Method::PUT, &format!("{path}/approval"), &undone);
    let message = refused["message"].as_str().unwrap();
    assert_eq!(code, 422);
    assert!(message.contains(r#"status.conditions[0].status: Unsupported value: "False": supported values: "True""#));
    assert!(message.contains(r#"updates may not remove a condition of type "Approved""#), "{message}");
}

#[test]
fn a_request_that_nobody_could_sign_is_refused() {
    let mut core = Core::new();
    for (spec, message) in [
        (json!({"request": "AAAA"}), "PEM block type must be CERTIFICATE REQUEST"),
        (json!({"usages": []}), "spec.usages: Required value"),
        (json!({"usages": ["any", "fun"]}), r#"spec.usages[1]: Unsupported value: "fun""#),
        (json!({"usages": ["any", "any"]}), r#"spec.usages[1]: Duplicate value: "any""#),
        (
            json!({"signerName": "signer"}),
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ),
        (json!({"signerName": "local/signer"}), "should be a domain with at least two segments separated by dots"),
        (json!({"expirationSeconds": 599}), "may not specify a duration less than 600 seconds (10 minutes)"),
    ] {
        let (code, refused) = send(&mut core, Method::POST, REQUESTS, &request(&spec));
        assert_eq!(code, 422, "{spec}: {refused}");
        assert!(refused["message"].as_str().unwrap().contains(message), "{spec}: {refused}");
    }
}

#[test]
fn a_revision_on_create_is_refused_last_and_not_at_all_by_a_dry_run() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let mut core = Core::new();
    let named = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "resourceVersion": "7"}});
    assert_eq!(send(&mut core, Method::POST, MAPS, &named("UPPER")).0, 422);
    assert_eq!(send(&mut core, Method::POST, &format!("{MAPS}?dryRun=All"), &named("m")).0, 201);
    let (code, refused) = send(&mut core, Method::POST, MAPS, &named("m"));
    assert_eq!(
        (code, refused["message"].as_str().unwrap()),
        (500, "resourceVersion should not be set on objects to be created")
    );
    assert_eq!(send(&mut core, Method::GET, &format!("{MAPS}/m"), &Value::Null).0, 404);
}

#[test]
fn a_table_of_requests_says_for_whom_and_what_became_of_them() {
    let mut core = Core::new();
    send(&mut core, Method::POST, REQUESTS, &request(&json!({"expirationSeconds": 3600})));
    let mut table = ApiRequest::new(Method::GET, REQUESTS, "");
    "application/json;as=Table;v=v1;g=meta.k8s.io".clone_into(&mut table.accept);
    let (_, shown) = core.send(&table);
    let columns: Vec<&str> =
        shown["columnDefinitions"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"]);
    assert_eq!(shown["rows"][0]["cells"], json!(["c", "0s", "example.com/signer", "jane", "60m", "Pending"]));

    let (_, mut stored) = send(&mut core, Method::GET, &format!("{REQUESTS}/c"), &Value::Null);
    stored["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "Fine"}]);
    let (_, mut stored) = send(&mut core, Method::PUT, &format!("{REQUESTS}/c/approval"), &stored);
    assert_eq!(core.send(&table).1["rows"][0]["cells"][5], "Approved");
    stored["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "Failed", "status": "True"}));
    send(&mut core, Method::PUT, &format!("{REQUESTS}/c/status"), &stored);
    assert_eq!(core.send(&table).1["rows"][0]["cells"][5], "Approved,Failed");
}
