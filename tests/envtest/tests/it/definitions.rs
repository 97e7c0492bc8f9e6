//! CustomResourceDefinitions as clients write them.

use envtest::request::ApiRequest;
use http::Method;
use serde_json::{Value, json};

use crate::api_server::Core;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn definition() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "name": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}}}}}}}}],
        },
    })
}

#[test]
fn a_definition_is_refused_with_all_that_is_wrong() {
    let mut core = Core::new();
    let mut wrong = definition();
    let version = &mut wrong["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["metadata"] =
        json!({"type": "object", "properties": {"name": {"type": "string"}}});
    version["selectableFields"] =
        json!([{"jsonPath": ".metadata.name"}, {"jsonPath": ".spec.x"}, {"jsonPath": ".spec.x"}]);
    let (code, answer) = core.ask(Method::POST, DEFINITIONS, &wrong);
    assert_eq!(code, 422, "{answer}");
    let causes = answer["details"]["causes"].as_array().unwrap();
    let causes: Vec<String> = causes.iter().map(|cause| format!("{} {}", cause["field"], cause["message"])).collect();
    assert_eq!(
        causes,
        [
            r#""spec.selectableFields[0].jsonPath" "Invalid value: \".metadata.name\": must not point to fields in metadata""#,
            r#""spec.selectableFields[1].jsonPath" "Invalid value: \".spec.x\": is an invalid path: does not refer to a valid field""#,
            r#""spec.selectableFields[2].jsonPath" "Invalid value: \".spec.x\": is an invalid path: does not refer to a valid field""#,
        ]
    );
}

#[test]
fn a_column_whose_path_cannot_be_read_ends_the_columns() {
    let mut core = Core::new();
    let mut with_columns = definition();
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    with_columns["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([column("Named", ".spec.name"), column("First", ".spec.list[0:1]"), column("Again", ".spec.name")]);
    core.create(DEFINITIONS, &with_columns);
    let mut request = ApiRequest::new(Method::GET, WIDGETS, "");
    "application/json;as=Table;v=v1;g=meta.k8s.io".clone_into(&mut request.accept);
    let (code, table) = core.send(&request);
    assert_eq!(code, 200, "{table}");
    let headings: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(headings, ["Name", "Named"]);
}

#[test]
fn certificate_authorities_are_checked_once_the_definition_is_established() {
    let mut core = Core::new();
    let with_bundle = |bundle: &str| {
        let mut definition = definition();
        let config = json!({"url": "https://localhost/convert", "caBundle": bundle});
        definition["spec"]["conversion"] =
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}});
        definition
    };
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let replace = |core: &mut Core, mut definition: Value| {
        let (_, stored) = core.ask(Method::GET, &path, &Value::Null);
        definition["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        core.ask(Method::PUT, &path, &definition)
    };
    core.create(DEFINITIONS, &with_bundle("eA=="));
    assert_eq!(replace(&mut core, with_bundle("eQ==")).0, 200, "one that is wrong already may stay so");
    assert_eq!(replace(&mut core, definition()).0, 200);
    let (code, answer) = replace(&mut core, with_bundle("eA=="));
    assert_eq!(code, 422, "{answer}");
    assert_eq!(
        answer["details"]["causes"][0],
        json!({"reason": "FieldValueInvalid", "field": "spec.conversion.webhookClientConfig.caBundle",
            "message": "Invalid value: \"eA==\": unable to load root certificates: unable to parse bytes as PEM block"})
    );
}

#[test]
fn accepted_names_of_a_status_must_have_their_shape() {
    let mut core = Core::new();
    core.create(DEFINITIONS, &definition());
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let (_, mut stored) = core.ask(Method::GET, &path, &Value::Null);
    stored["status"]["acceptedNames"]["plural"] = json!("Widgets");
    let (code, answer) = core.ask(Method::PUT, &format!("{path}/status"), &stored);
    assert_eq!(code, 422, "{answer}");
    assert_eq!(answer["details"]["causes"][0]["field"], "status.acceptedNames.plural");
}
