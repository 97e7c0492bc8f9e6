//! The identity of a kind, its JSON and its CRD.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Resource, Schema,
    declare::Profile,
    document::{Declared, custom_resource_definition, roles},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A gateway.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1beta1", scope = "Namespaced", status)]
#[koord(scale(spec = ".spec.replicas", status = ".status.replicas", selector = ".status.selector"))]
#[koord(short_name("gw", "gate"), category = "all", selectable = ".spec.host", storage = false)]
#[koord(rbac(group = "example.com", resources = ["gateways", "gateways/status"], verbs = [get, patch]))]
#[koord(deprecated = "use v1", annotation("a/b", "c"), label("d", "e"))]
#[koord(column(name = "Host", type = "string", path = ".spec.host", description = "The host.", priority = 1))]
#[koord(hardened(short_name = "hgw", column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
struct Gateway {
    metadata: ObjectMeta,
    spec: GatewaySpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<GatewayStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
struct GatewaySpec {
    host: String,
    #[serde(default)]
    replicas: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
struct GatewayStatus {
    #[serde(default)]
    replicas: i32,
    #[serde(default)]
    selector: String,
}

#[test]
fn the_crd_says_all_that_the_root_says() {
    let document = custom_resource_definition(&[Declared::of::<Gateway>()], Profile::Compatible);
    assert_eq!(document["metadata"]["name"], "gateways.example.com");
    assert_eq!(document["metadata"]["labels"], json!({"d": "e"}));
    assert_eq!(
        document["metadata"]["annotations"],
        json!({"a/b": "c", "controller-gen.kubebuilder.io/version": "v0.20.1"})
    );
    assert_eq!(
        document["spec"]["names"],
        json!({
            "kind": "Gateway", "listKind": "GatewayList", "plural": "gateways", "singular": "gateway",
            "shortNames": ["gw", "gate"], "categories": ["all"],
        })
    );
    let version = &document["spec"]["versions"][0];
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([{"name": "Host", "type": "string", "jsonPath": ".spec.host", "description": "The host.", "priority": 1}])
    );
    assert_eq!(version["subresources"]["status"], json!({}));
    assert_eq!(
        version["subresources"]["scale"],
        json!({
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        })
    );
    assert_eq!(version["selectableFields"], json!([{"jsonPath": ".spec.host"}]));
    assert_eq!((&version["served"], &version["storage"]), (&json!(true), &json!(false)));
    assert_eq!((&version["deprecated"], &version["deprecationWarning"]), (&json!(true), &json!("use v1")));
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(schema["description"], "A gateway.");
    assert_eq!(schema["required"], json!(["spec"]));
    assert_eq!(schema["properties"]["metadata"], json!({"type": "object"}));
}

#[test]
fn the_hardened_profile_adds_names_and_columns() {
    let document = custom_resource_definition(&[Declared::of::<Gateway>()], Profile::Hardened);
    assert_eq!(document["spec"]["names"]["shortNames"], json!(["gw", "gate", "hgw"]));
    assert_eq!(document["spec"]["versions"][0]["additionalPrinterColumns"][1]["name"], "Age");
}

#[test]
fn permissions_come_with_the_kind() {
    let [all, status] = Gateway::RBAC else { panic!() };
    assert_eq!((all.resource, status.resource, status.verbs), ("gateways", "gateways/status", &["get", "patch"][..]));
}

/// A kind whose names no rule makes, with permissions for others.
#[derive(Clone, Deserialize, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(kind = "Datum", list_kind = "DataList", plural = "data", singular = "datum")]
#[koord(rbac(group = "example.com", resource = "data", verbs = [get], role = "viewer"))]
#[koord(rbac(urls = ["/data"], verbs = [get]))]
struct Record {
    metadata: ObjectMeta,
}

#[test]
fn names_of_a_kind_are_those_that_the_root_gives() {
    let info = Record::INFO;
    assert_eq!([info.kind, info.list_kind, info.plural, info.singular], ["Datum", "DataList", "data", "datum"]);
}

#[test]
fn a_rule_that_names_a_role_stands_in_it() {
    let documents = roles("operator", Record::RBAC, "system");
    let shown = documents.iter().map(|role| (role["metadata"]["name"].clone(), role["rules"].clone()));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            (json!("operator"), json!([{"nonResourceURLs": ["/data"], "verbs": ["get"]}])),
            (json!("viewer"), json!([{"apiGroups": ["example.com"], "resources": ["data"], "verbs": ["get"]}])),
        ]
    );
}

#[test]
fn objects_carry_their_kind_and_come_back() {
    let gateway = Gateway {
        metadata: ObjectMeta { name: Some("g".to_owned()), ..ObjectMeta::default() },
        spec: GatewaySpec { host: "h".to_owned(), replicas: 2 },
        status: None,
    };
    let json = serde_json::to_value(&gateway).unwrap();
    assert_eq!(
        json,
        json!({
            "apiVersion": "example.com/v1beta1",
            "kind": "Gateway",
            "metadata": {"name": "g"},
            "spec": {"host": "h", "replicas": 2},
        })
    );
    assert_eq!(serde_json::from_value::<Gateway>(json).unwrap(), gateway);
    assert_eq!(<Gateway as k8s_openapi::Resource>::URL_PATH_SEGMENT, "gateways");
    assert_eq!(Gateway::INFO.url_path(Some("n")), "/apis/example.com/v1beta1/namespaces/n/gateways");
}
