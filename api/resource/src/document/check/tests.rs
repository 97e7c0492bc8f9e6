use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_macros::{Resource, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate as koord_resource;

/// A shop.
#[derive(Clone, Default, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", selectable(".spec.keeper"), crate = koord_resource)]
#[koord(column(name = "Keeper", type = "string", path = ".spec.keeper"))]
struct Shop {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ShopSpec,
}

/// A shop whose objects are stored in an older version.
#[derive(Clone, Default, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", crate = koord_resource)]
#[koord(older(version = "v1beta1", storage))]
struct Kiosk {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ShopSpec,
}

/// A shop whose older version warns in two lines.
#[derive(Clone, Default, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", crate = koord_resource)]
#[koord(older(version = "v1beta1", deprecated = "use v1\nor a Shop"))]
struct Booth {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ShopSpec,
}

#[derive(Clone, Default, Deserialize, Serialize, Schema)]
#[koord(crate = koord_resource)]
struct ShopSpec {
    /// Who keeps it.
    #[serde(default)]
    keeper: String,
}

/// A shop in which no object is stored.
#[derive(Clone, Default, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", storage = false, crate = koord_resource)]
struct Stall {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ShopSpec,
}

fn definition() -> Value {
    custom_resource_definition(&[Declared::of::<Shop>()], Profile::Hardened)
}

/// The definition with another value at one place.
fn with(pointer: &str, value: Value) -> Findings {
    let mut document = definition();
    *document.pointer_mut(pointer).unwrap() = value;
    check_definition(&document)
}

#[test]
fn a_kind_that_works_has_no_findings() {
    assert_legal::<Shop>();
    assert_eq!(check_definition(&definition()).to_string(), "");
}

#[test]
#[should_panic(expected = "must have exactly one version marked as storage version\n  Mark one version")]
fn a_kind_that_no_server_takes_fails_its_test() {
    assert_legal::<Stall>();
}

#[test]
fn the_older_versions_that_a_type_names_are_part_of_its_test() {
    assert_legal::<Kiosk>();
    assert_eq!(check(&[Declared::of::<Kiosk>()]).len(), 2, "no object is stored in the newest version");
}

#[test]
#[should_panic(expected = "spec.versions[1].deprecationWarning: ")]
fn a_mistake_of_an_older_version_fails_the_test_of_the_type() {
    assert_legal::<Booth>();
}

#[test]
fn both_profiles_are_checked_and_what_both_say_is_said_once() {
    let findings = check(&[Declared::of::<Stall>()]);
    let texts: Vec<String> = findings.iter().map(|finding| finding.error.detail.clone()).collect();
    assert_eq!(
        texts,
        ["must have exactly one version marked as storage version", "must have at least one stored version"]
    );
}

#[test]
fn all_findings_have_a_place_and_a_remedy() {
    let mut document = definition();
    let spec = &mut document["spec"];
    spec["names"]["plural"] = json!("Shops");
    spec["versions"][0]["selectableFields"] = json!([{"jsonPath": ".metadata.name"}, {"jsonPath": ".spec"}]);
    spec["versions"][0]["additionalPrinterColumns"] = json!([{"name": "A", "type": "text", "jsonPath": "spec"}]);
    spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["list"] = json!({"type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
    let findings = check_definition(&document);
    let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
    assert_eq!(
        places,
        [
            "metadata.name",
            "spec.names.plural",
            "spec.versions[*].schema.openAPIV3Schema.properties[list].items.properties[k].default",
            "spec.versions[*].additionalPrinterColumns[0].type",
            "spec.versions[*].additionalPrinterColumns[0].jsonPath",
            "spec.versions[*].selectableFields[0].jsonPath",
            "spec.versions[*].selectableFields[1].jsonPath",
        ]
    );
    let text = findings.to_string();
    for line in [
        r#"metadata.name: Invalid value: "shops.example.com": must be spec.names.plural+"."+spec.group"#,
        "  Name the definition PLURAL.GROUP.",
        "  Name scalar fields of the items that are required or have a default, each once.",
        r#"spec.versions[*].additionalPrinterColumns[0].jsonPath: Invalid value: "spec": must be a simple json path starting with ."#,
        "  Start the path with a dot, such as .status.phase.",
        "  Name declared strings, booleans and integers outside of metadata, each once, eight at most.",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(findings.iter().all(|finding| finding.is_refused));
}

#[test]
fn remedies_fit_what_is_wrong() {
    let field = |rules: Value| {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "f": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}, "x-kubernetes-validations": rules}}})
    };
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    let twice = "self.l.all(x, self.l.all(y, x == y))";
    let table = [
        (schema, field(json!([{"rule": twice}])), "Bound what the rule walks over"),
        (schema, field(json!([{"rule": "self.f"}])), "Write an expression of declared fields that gives true"),
        (
            schema,
            field(json!([{"rule": "true", "messageExpression": "1"}])),
            "Write an expression of declared fields that gives a text",
        ),
        (
            schema,
            field(json!([{"rule": "true", "fieldPath": ".x"}])),
            "Name a declared field below the place of the rule",
        ),
        (schema, field(json!([{"rule": "true", "optionalOldSelf": true}])), "Compare with oldSelf in the rule"),
        (
            schema,
            json!({"type": "object", "properties": {"f": {"type": "integer", "default": "x"}}}),
            "Give a default that the schema",
        ),
        (
            schema,
            json!({"type": "object", "properties": {"f": {"type": "object", "default": {"x": 1}, "properties": {"y": {"type": "integer"}}}}}),
            "Take from the default what the schema does not declare.",
        ),
        (schema, json!({"type": "object", "properties": {"f": {"type": "float"}}}), "Use one of the supported values."),
        (schema, json!({"type": "object", "properties": {"f": {"type": "array"}}}), "Add what is missing."),
        (
            schema,
            json!({"type": "object", "maxLength": "x", "properties": {"spec": {"type": "object", "properties": {"keeper": {"type": "string"}}}}}),
            "Change the value as the message says.",
        ),
        (schema, Value::Null, "Servers require a schema beside selectable fields"),
        ("/spec/group", json!("example"), "Name a domain with a dot"),
        ("/spec/scope", json!("Galaxy"), "Use one of the supported values."),
        ("/spec/versions/0/name", json!("1"), "Change the value as the message says."),
    ];
    for (pointer, value, remedy) in table {
        let findings = with(pointer, value.clone());
        assert!(findings.iter().any(|finding| finding.remedy.starts_with(remedy)), "{value}: {remedy}\n{findings}");
    }
}

#[test]
fn every_part_of_a_definition_has_its_remedy() {
    let (spec, version) = ("/spec", "/spec/versions/0");
    let with_status = |keyword: &str, value: Value| {
        let mut changed = definition()["spec"]["versions"][0].clone();
        changed["subresources"] = json!({"status": {}});
        changed["schema"]["openAPIV3Schema"][keyword] = value;
        json!([changed])
    };
    let with_field = |name: &str, schema: Value| {
        let mut changed = definition()["spec"]["versions"][0]["schema"].clone();
        changed["openAPIV3Schema"]["properties"][name] = schema;
        changed
    };
    let twice = json!([definition()["spec"]["versions"][0], definition()["spec"]["versions"][0]]);
    let stays = json!({"type": "array", "maxItems": 2, "items": {"type": "integer",
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}});
    let labels = json!({"type": "object", "properties": {"labels": {"type": "object"}}});
    let column = json!([{"name": "Keeper", "type": "text", "jsonPath": ".spec.keeper"}]);
    let scale = json!({"scale": {"specReplicasPath": ".status.size", "statusReplicasPath": ".status.size"}});
    let table = [
        (version, "schema", with_field("list", stays), "Give the lists above the rule the type map with keys"),
        (version, "schema", with_field("metadata", labels), "Restrict name and generateName of metadata alone."),
        (spec, "versions", with_status("maxProperties", json!(3)), "State the rule at spec, or as a CEL rule"),
        (version, "additionalPrinterColumns", column, "Give the column a name, a type and a path"),
        (version, "subresources", scale, "Name one field below .spec for what is wanted"),
        (spec, "conversion", json!({"strategy": "Later"}), "Name the webhook, by url or service"),
        (spec, "group", json!("shops.k8s.io"), "Annotate the definition with the URL of the approval"),
        (spec, "names", json!({"plural": "shops", "kind": "Shop of"}), "Use lowercase letters, digits and dashes"),
        (spec, "versions", twice, "Name each version once."),
        (version, "deprecationWarning", json!("use v2"), "Say in one printable line of 256 bytes at most"),
    ];
    for (parent, field, value, remedy) in table {
        let mut document = definition();
        document.pointer_mut(parent).unwrap()[field] = value;
        let findings = check_definition(&document);
        let found = findings.iter().find(|finding| finding.remedy.starts_with(remedy));
        assert!(found.is_some_and(|finding| finding.is_refused), "{field}: {remedy}\n{findings}");
    }
}

#[test]
fn what_a_server_accepts_without_effect_is_found_too() {
    let mut document = definition();
    let version = &mut document["spec"]["versions"][0];
    version["served"] = json!(false);
    version["additionalPrinterColumns"] = json!([
        {"name": "A", "type": "string", "jsonPath": ".spec[x]"},
        {"name": "B", "type": "string", "jsonPath": ".spec.kepper"},
    ]);
    version["subresources"] =
        json!({"scale": {"specReplicasPath": ".spec.pools[0].replicas", "statusReplicasPath": ".status.replicas"}});
    let findings = check_definition(&document);
    let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
    assert_eq!(
        places,
        [
            "spec.versions",
            "spec.versions[0].additionalPrinterColumns[0].jsonPath",
            "spec.versions[0].additionalPrinterColumns[1].jsonPath",
            "spec.versions[0].subresources.scale.specReplicasPath",
            "spec.versions[0].subresources.scale.statusReplicasPath",
        ]
    );
    let text = findings.to_string();
    for line in [
        r#"spec.versions[0].additionalPrinterColumns[1].jsonPath: Invalid value: ".spec.kepper": names no declared field, so that the column stays empty"#,
        r#"spec.versions[0].subresources.scale.statusReplicasPath: Invalid value: ".status.replicas": names no declared field, so that scaling has no effect"#,
        "  Name a field that the schema of the same version declares, or declare it.",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(findings.iter().all(|finding| !finding.is_refused), "{findings}");
}

#[test]
fn the_path_of_a_column_names_declared_fields() {
    let mut document = definition();
    let version = &mut document["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({
        "keeper": {"type": "string"},
        "shelves": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "prices": {"type": "object", "additionalProperties": {"type": "string"}},
        "notes": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}},
    });
    let table = [
        (".spec.keeper", true),
        (".spec['keeper']", true),
        (".metadata.labels['a.b/c']", true),
        (".kind", true),
        (".spec.shelves[0].name", true),
        (".spec.shelves[?(@.name=='*')].name", true),
        (".spec.shelves[*].name", true),
        (".spec.*", true),
        (".spec.prices.apples", true),
        (".spec.notes.anything.below", true),
        (".spec.template.kind", true),
        (".spec.template.spec.size", true),
        (".keeper", false),
        (".spec.kind", false),
        (".spec.keeper.name", false),
        (".spec.shelves.name", false),
        (".spec.shelves[0].title", false),
        (".spec.shelves[?(@.name=='a')].title", false),
        (".spec.shelfs[*].name", false),
        (".spec.template.status", false),
    ];
    for (path, is_declared) in table {
        document["spec"]["versions"][0]["additionalPrinterColumns"] =
            json!([{"name": "A", "type": "string", "jsonPath": path}]);
        let findings = check_definition(&document);
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        let expected: &[&str] =
            if is_declared { &[] } else { &["spec.versions[0].additionalPrinterColumns[0].jsonPath"] };
        assert_eq!(places, expected, "{path}\n{findings}");
    }
}

#[test]
fn another_document_is_no_definition() {
    let findings = check_definition(&json!({"apiVersion": "v1", "kind": "Pod"}));
    assert_eq!(
        findings.to_string(),
        "kind: Unsupported value: \"v1 Pod\": supported values: \"apiextensions.k8s.io/v1 CustomResourceDefinition\"\n  Use one of the supported values."
    );
    assert_eq!(check(&[]).len(), 1);
}
