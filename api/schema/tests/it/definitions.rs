//! What is said about whole definitions.

use koord_schema::{
    definition::{begin_status, check_changed, check_new, check_status, set_defaults},
    field::Errors,
};
use serde_json::{Value, json};

use crate::recordings::{cases, is_crd, list};

fn widgets() -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", true, "a")],
        },
    })
}

/// A version whose schema has one field.
fn version(name: &str, is_stored: bool, field: &str) -> Value {
    json!({"name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {(field): {"type": "string"}}}}}}})
}

fn complete(mut definition: Value) -> Value {
    set_defaults(&mut definition);
    begin_status(&mut definition);
    definition
}

fn texts(errors: &Errors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn wrong(definition: Value) -> Vec<String> {
    let mut errors = Errors::new();
    check_new(&complete(definition), &mut errors);
    texts(&errors)
}

/// What is wrong after `value` was put at a place of a good definition.
fn with(pointer: &str, value: Value) -> Vec<String> {
    let mut definition = widgets();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    definition.pointer_mut(parent).unwrap()[field] = value;
    wrong(definition)
}

#[test]
fn a_good_definition_passes() {
    assert_eq!(wrong(widgets()), Vec::<String>::new());
}

#[test]
fn definitions_are_refused_as_recorded() {
    for (name, case) in cases("crd") {
        for step in list(&case, "steps").iter().filter(|step| is_crd(&step["body"]) && step["method"] == "POST") {
            if !matches!(step["recorded"]["status"].as_u64(), Some(201 | 422)) {
                continue;
            }
            let step: Value = serde_json::from_str(&step.to_string().replace("{UNIQ}", "1")).unwrap();
            let causes = step.pointer("/recorded/body/details/causes").and_then(Value::as_array);
            let recorded: Vec<String> = causes
                .into_iter()
                .flatten()
                .map(|cause| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
                // Which names an object may have is checked with its metadata.
                .filter(|cause| {
                    !cause.contains("a lowercase RFC 1123 subdomain") || !cause.starts_with("metadata.name")
                })
                .collect();
            assert_eq!(wrong(step["body"].clone()), recorded, "{name}");
        }
    }
}

#[test]
fn what_a_definition_says_is_checked() {
    let of_versions = r#"spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version"#;
    let no_stored = "status.storedVersions: Invalid value: null: must have at least one stored version";
    let label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    let preserves = "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    let table = [
        ("/spec/versions/0/storage", json!(false), vec![of_versions.to_owned(), no_stored.to_owned()]),
        ("/spec/versions/0/schema", json!({}), vec!["spec.versions[0].schema.openAPIV3Schema: Required value".to_owned()]),
        ("/spec/versions/0/name", json!("1a"), vec![
            format!(r#"spec.versions[0].name: Invalid value: "1a": {label}"#),
            format!(r#"spec.version: Invalid value: "1a": {label}"#),
        ]),
        ("/spec/names/shortNames", json!(["w", "W"]), vec![format!(r#"spec.names.shortNames[1]: Invalid value: "W": {label}"#)]),
        ("/spec/names/listKind", json!("Widget"), vec![
            r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#.to_owned(),
        ]),
        ("/spec/conversion", json!({"strategy": "Later", "webhook": {"conversionReviewVersions": ["v1"]}}), vec![
            r#"spec.conversion.strategy: Unsupported value: "Later": supported values: "None", "Webhook""#.to_owned(),
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook".to_owned(),
        ]),
        ("/spec/conversion", json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v2", "v2"], "clientConfig": {"url": "https://a/b", "caBundle": "eA=="}}}), vec![
            r#"spec.conversion.conversionReviewVersions[1]: Invalid value: "v2": duplicate version"#.to_owned(),
            r#"spec.conversion.conversionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1"#.to_owned(),
        ]),
        ("/spec/preserveUnknownFields", json!(true), vec![preserves.to_owned()]),
        ("/spec/versions/0/additionalPrinterColumns", json!([{"jsonPath": "spec.a", "type": "text", "format": "int8"}]), vec![
            "spec.additionalPrinterColumns[0].name: Required value".to_owned(),
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string"#.to_owned(),
            r#"spec.additionalPrinterColumns[0].format: Invalid value: "int8": must be one of byte,date,date-time,double,float,int32,int64,password"#.to_owned(),
            r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.a": must be a simple json path starting with ."#.to_owned(),
        ]),
        ("/spec/versions/0/additionalPrinterColumns", json!([{"name": "A", "type": "string", "jsonPath": ".spec[x"}]), Vec::new()),
        ("/spec/versions/0/subresources", json!({"scale": {"specReplicasPath": "spec.n", "labelSelectorPath": ".metadata.x"}}), vec![
            r#"spec.subresources.scale.specReplicasPath: Invalid value: "spec.n": must be a simple json path starting with ."#.to_owned(),
            "spec.subresources.scale.statusReplicasPath: Required value".to_owned(),
            r#"spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.x": should be a json path under either .spec or .status"#.to_owned(),
        ]),
        ("/spec/versions/0/selectableFields", json!([{"jsonPath": ".metadata.name"}]), vec![
            r#"spec.selectableFields[0].jsonPath: Invalid value: ".metadata.name": is an invalid path: does not refer to a valid field"#.to_owned(),
        ]),
    ];
    for (pointer, value, expected) in table {
        assert_eq!(with(pointer, value.clone()), expected, "{pointer}: {value}");
    }
}

#[test]
fn defaults_need_pruning() {
    let mut definition = widgets();
    definition["spec"]["preserveUnknownFields"] = json!(true);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a/b"}}});
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a";
    definition.pointer_mut(field).unwrap()["default"] = json!("x");
    let details = wrong(definition);
    assert_eq!(
        details[0],
        "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema"
    );
    assert_eq!(
        details[1],
        r#"spec.conversion.strategy: Invalid value: "Webhook": must be None if spec.preserveUnknownFields is true"#
    );
    assert_eq!(details.len(), 3, "{details:?}");
}

#[test]
fn deprecation_warnings_are_short_and_printable() {
    let warned = |is_deprecated: bool, warning: &str| {
        let mut definition = widgets();
        definition["spec"]["versions"][0]["deprecated"] = json!(is_deprecated);
        definition["spec"]["versions"][0]["deprecationWarning"] = json!(warning);
        let details = wrong(definition);
        details.iter().map(|detail| detail.rsplit_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(warned(true, "use v2"), Vec::<String>::new());
    assert_eq!(warned(false, ""), ["can only be set for deprecated versions"]);
    assert_eq!(warned(true, ""), ["must not be an empty string"]);
    assert_eq!(warned(true, &"x".repeat(257)), ["must be <= 256 characters long"]);
    let why = "must only contain printable UTF-8 characters; non-printable character found at index 2";
    assert_eq!(warned(true, "\u{e9}\n"), [why]);
}

#[test]
fn a_status_is_checked_by_its_own_schema_so_the_root_says_little() {
    let root = |keyword: &str, value: Value| {
        let mut definition = widgets();
        definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"][keyword] = value;
        wrong(definition)
    };
    assert_eq!(root("required", json!(["spec"])), Vec::<String>::new());
    assert_eq!(root("x-kubernetes-validations", json!([{"rule": "has(self.spec)"}])), Vec::<String>::new());
    let only = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled";
    for (keyword, value) in
        [("maxProperties", json!(0)), ("oneOf", json!([{"required": ["spec"]}])), ("not", json!({"required": ["x"]}))]
    {
        let found = root(keyword, value);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("spec.validation.openAPIV3Schema: Invalid value: {") && found[0].ends_with(only),
            "{found:?}"
        );
    }
    assert_eq!(
        root("type", json!("string"))[0],
        r#"spec.validation.openAPIV3Schema.type: Invalid value: "string": only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#
    );
}

#[test]
fn defaults_must_follow_the_rules() {
    let with_default = |default: i64| {
        let field = json!({"type": "object", "default": {"n": default}, "properties": {"n": {"type": "integer",
            "x-kubernetes-validations": [{"rule": "self > 0", "message": "must be positive"}]}}});
        with("/spec/versions/0/schema/openAPIV3Schema/properties/spec", field)
    };
    assert_eq!(with_default(1), Vec::<String>::new());
    assert_eq!(
        with_default(0),
        [r#"spec.validation.openAPIV3Schema.properties[spec].default.n: Invalid value: "integer": must be positive"#]
    );
    let optional = json!({"type": "integer", "default": 2,
        "x-kubernetes-validations": [{"rule": "oldSelf.hasValue() || self < 2", "optionalOldSelf": true}]});
    assert_eq!(
        with("/spec/versions/0/schema/openAPIV3Schema/properties/spec", optional),
        [
            r#"spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: "integer": failed rule: oldSelf.hasValue() || self < 2"#
        ]
    );
}

#[test]
fn rules_are_read_beside_keywords_that_are_wrong_but_not_above_them() {
    let rule = json!([{"rule": "self.zz"}]);
    let field = json!({"type": "object", "x-kubernetes-validations": rule, "properties": {
        "good": {"type": "object", "x-kubernetes-validations": rule},
        "list": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}}});
    let found = with("/spec/versions/0/schema/openAPIV3Schema/properties/spec", field);
    let at = "spec.validation.openAPIV3Schema.properties[spec].properties";
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with(&format!("{at}[list].uniqueItems: Forbidden: ")), "{found:?}");
    assert!(found[1].starts_with(&format!("{at}[good].x-kubernetes-validations[0].rule: ")), "{found:?}");
}

#[test]
fn parts_that_differ_are_spoken_of_by_version() {
    let mut definition = widgets();
    definition["spec"]["versions"] = json!([version("v1", true, "a"), version("v1", false, "b")]);
    definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = json!("array");
    let found = wrong(definition);
    assert_eq!(
        found[0],
        "spec.versions[1].schema.openAPIV3Schema.properties[spec].items: Required value: must be specified"
    );
    assert!(found[1].ends_with("must contain unique version names"), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn selectable_fields_need_their_schema_beside_them() {
    let two = |fields: [&str; 2], selectable: [&str; 2]| {
        let mut definition = widgets();
        let mut versions = [version("v1", true, fields[0]), version("v2", false, fields[1])];
        for (version, path) in versions.iter_mut().zip(selectable) {
            version["selectableFields"] = json!([{"jsonPath": path}]);
        }
        definition["spec"]["versions"] = json!(versions);
        wrong(definition)
    };
    assert_eq!(two(["a", "a"], [".spec.a", ".spec.a"]), Vec::<String>::new());
    assert_eq!(two(["a", "b"], [".spec.a", ".spec.b"]), Vec::<String>::new());
    let mut schemas_differ = widgets();
    let mut versions = [version("v1", true, "a"), version("v2", false, "a")];
    versions[1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["b"] = json!({"type": "string"});
    for version in &mut versions {
        version["selectableFields"] = json!([{"jsonPath": ".spec.a"}]);
    }
    schemas_differ["spec"]["versions"] = json!(versions);
    assert_eq!(
        wrong(schemas_differ),
        [r#"spec.selectableFields: Invalid value: "": may only be set when validations.schema is included"#]
    );
    let own =
        "selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included";
    assert_eq!(
        two(["a", "a"], [".spec.a", ".spec"]),
        [format!("spec.versions[0].{own}"), format!("spec.versions[1].{own}")]
    );
}

#[test]
fn community_groups_need_an_approval() {
    let approved = |reason: Value| {
        let mut definition = widgets();
        definition["metadata"] =
            json!({"name": "widgets.example.k8s.io", "annotations": {"api-approved.kubernetes.io": reason}});
        definition["spec"]["group"] = json!("example.k8s.io");
        wrong(definition).len()
    };
    for reason in ["https://github.com/kubernetes/kubernetes/pull/1", "unapproved, for a test"] {
        assert_eq!(approved(json!(reason)), 0, "{reason}");
    }
    for reason in [json!(null), json!("approved"), json!("://x"), json!("https://")] {
        assert_eq!(approved(reason.clone()), 1, "{reason}");
    }
}

#[test]
fn an_established_definition_keeps_kind_and_scope() {
    let old = complete(widgets());
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["names"]["kind"] = json!("Gadget");
    let changed = |is_established: bool| {
        let mut errors = Errors::new();
        check_changed(&new, &old, is_established, &mut errors);
        texts(&errors)
    };
    assert_eq!(changed(false), Vec::<String>::new());
    assert_eq!(
        changed(true),
        [
            r#"spec.scope: Invalid value: "Cluster": field is immutable"#,
            r#"spec.names.kind: Invalid value: "Gadget": field is immutable"#,
        ]
    );
}

#[test]
fn versions_that_were_stored_stay_until_they_are_dropped_from_the_status() {
    let old = complete(widgets());
    let mut new = old.clone();
    new["status"]["storedVersions"] = json!(["v0", "v1"]);
    let mut errors = Errors::new();
    check_changed(&new, &old, true, &mut errors);
    let why = "missing from spec.versions; v0 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v0 and removes v0 from status.storedVersions";
    assert_eq!(texts(&errors), [format!(r#"status.storedVersions[0]: Invalid value: "v0": {why}"#)]);
}

#[test]
fn accepted_names_must_have_their_shape() {
    let mut definition = complete(widgets());
    definition["status"]["acceptedNames"] = json!({"plural": "widgets", "kind": "wid get"});
    let mut errors = Errors::new();
    check_status(&definition, &mut errors);
    assert_eq!(errors.len(), 1, "{errors}");
    assert!(errors.to_string().starts_with("status.acceptedNames.kind: "), "{errors}");
}
