//! `/openapi/v2`: all schemas and paths in one Swagger document, made from the documents of version 3. As protobuf, which
//! kubectl asks for, it carries the schemas alone: no client reads paths from it.

use serde_json::{Map, Value, json};

/// The media type of the protobuf form.
pub const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The name of the same form in requests of older clients.
pub const PROTOBUF_ALIAS: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The document that says what these documents of version 3 say.
pub fn document<'a>(documents: impl Iterator<Item = &'a str>) -> Value {
    let (mut definitions, mut paths) = (Map::new(), Map::new());
    for text in documents {
        let text = text.replace(super::REFERENCE, "#/definitions/");
        let Ok(mut document) = serde_json::from_str::<Value>(&text) else { continue };
        if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
            definitions.extend(std::mem::take(schemas).into_iter().map(|(name, schema)| (name, plain(schema))));
        }
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            paths.insert(path.clone(), path_item(item));
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.34"},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header",
            },
        },
        "security": [{"BearerToken": []}],
    })
}

/// A schema without what version 2 cannot say. Fields that clients of version 2 refuse are dropped as kube-apiserver drops
/// them: combinations of schemas, the type of what may be null, what is below values with unknown fields.
fn plain(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else { return schema };
    let reference = fields.get("allOf").and_then(|all| match all.as_array()?.as_slice() {
        [only] => only.get("$ref").cloned(),
        _ => None,
    });
    if let Some(reference) = reference {
        fields.remove("default");
        fields.insert("$ref".to_owned(), reference);
    }
    for combination in ["allOf", "oneOf", "anyOf", "not"] {
        fields.remove(combination);
    }
    let is_nullable = fields.remove("nullable").is_some_and(|nullable| nullable == true);
    let takes_unknown = fields.get("x-kubernetes-preserve-unknown-fields").is_some_and(|takes| takes == true);
    if takes_unknown && let Some(kinds) = fields.remove("x-kubernetes-group-version-kind") {
        return json!({"type": "object", "x-kubernetes-group-version-kind": kinds});
    }
    if is_nullable || takes_unknown {
        fields.remove("items");
        fields.remove("properties");
    }
    let type_ = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    if is_nullable || (type_ == "array" && !fields.contains_key("items")) || (type_ == "object" && takes_unknown) {
        fields.remove("type");
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        let may_be_null: Vec<String> =
            properties.iter().filter(|(_, field)| field["nullable"] == true).map(|(name, _)| name.clone()).collect();
        for field in properties.values_mut() {
            *field = plain(std::mem::take(field));
        }
        if let Some(Value::Array(required)) = fields.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| !may_be_null.iter().any(|one| one == name)));
        }
    }
    if fields.get("additionalProperties").is_some_and(|values| values["nullable"] == true) {
        fields.remove("required");
    }
    if fields.get("required").is_some_and(|required| *required == json!([])) {
        fields.remove("required");
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(below) {
            *schema = plain(std::mem::take(schema));
        }
    }
    Value::Object(fields)
}

fn path_item(item: &Value) -> Value {
    let operations = item.as_object().into_iter().flatten();
    operations
        .map(|(name, value)| match name.as_str() {
            "parameters" => (name.clone(), parameters(value)),
            _ => (name.clone(), operation(value)),
        })
        .collect()
}

fn parameters(list: &Value) -> Value {
    let one = |parameter: &Value| {
        let mut parameter = parameter.clone();
        if let Some(fields) = parameter.as_object_mut()
            && let Some(Value::Object(schema)) = fields.remove("schema")
        {
            fields.extend(schema);
        }
        parameter
    };
    list.as_array().into_iter().flatten().map(one).collect()
}

fn operation(operation: &Value) -> Value {
    let Value::Object(mut fields) = operation.clone() else { return operation.clone() };
    let mut list = parameters(&fields.remove("parameters").unwrap_or_default());
    if let Some(body) = fields.remove("requestBody") {
        let contents = body["content"].as_object();
        fields.insert("consumes".to_owned(), contents.into_iter().flatten().map(|(name, _)| json!(name)).collect());
        let schema = contents.and_then(|contents| contents.values().next()).map(|content| &content["schema"]);
        let schema = plain(schema.cloned().unwrap_or_default());
        let parameter = json!({"name": "body", "in": "body", "required": body["required"], "schema": schema});
        if let Some(list) = list.as_array_mut() {
            list.push(parameter);
        }
    }
    fields.insert("parameters".to_owned(), list);
    let mut produces = Value::Null;
    let responses = fields.get("responses").and_then(Value::as_object).into_iter().flatten();
    let responses: Map<String, Value> = responses
        .map(|(code, response)| {
            let mut plain_response = json!({"description": response["description"].as_str().unwrap_or_default()});
            if let Some(contents) = response["content"].as_object() {
                produces = contents.keys().map(|name| json!(name)).collect();
                let schema = contents.values().next().map(|content| plain(content["schema"].clone()));
                plain_response["schema"] = schema.unwrap_or_default();
            }
            (code.clone(), plain_response)
        })
        .collect();
    fields.insert("responses".to_owned(), Value::Object(responses));
    if !produces.is_null() {
        fields.insert("produces".to_owned(), produces);
    }
    Value::Object(fields)
}

/// The document as the message `openapi.v2.Document`.
pub fn protobuf(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.message(2, &info);
    message.message(8, &Message::default());
    message.message(9, &named_schemas(&document["definitions"]));
    message.bytes
}

fn named_schemas(schemas: &Value) -> Message {
    let mut message = Message::default();
    for (name, value) in schemas.as_object().into_iter().flatten() {
        let mut named = Message::default();
        named.text(1, &json!(name));
        named.message(2, &schema(value));
        message.message(1, &named);
    }
    message
}

/// A value as YAML text within a message `Any`; JSON is YAML.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(2, &json!(format!("{value}\n")));
    message
}

fn schema(value: &Value) -> Message {
    const TEXTS: [(u64, &str); 5] = [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")];
    const NUMBERS: [(u64, &str); 3] = [(6, "multipleOf"), (7, "maximum"), (9, "minimum")];
    const COUNTS: [(u64, &str); 6] = [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ];
    const FLAGS: [(u64, &str); 3] = [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")];
    let mut message = Message::default();
    for (tag, field) in TEXTS {
        message.text(tag, &value[field]);
    }
    for (tag, number) in NUMBERS.iter().filter_map(|(tag, field)| Some((*tag, value[*field].as_f64()?))) {
        message.double(tag, number);
    }
    for (tag, count) in COUNTS.iter().filter_map(|(tag, field)| Some((*tag, value[*field].as_u64()?))) {
        message.number(tag, count);
    }
    for (tag, _) in FLAGS.iter().filter(|(_, field)| value[*field] == true) {
        message.number(*tag, 1);
    }
    if let Some(default) = value.get("default") {
        message.message(5, &any(default));
    }
    for name in list(&value["required"]) {
        message.text(19, name);
    }
    for one in list(&value["enum"]) {
        message.message(20, &any(one));
    }
    match &value["additionalProperties"] {
        Value::Bool(allowed) => {
            let mut item = Message::default();
            item.number(2, u64::from(*allowed));
            message.message(21, &item);
        }
        Value::Null => {}
        other => {
            let mut item = Message::default();
            item.message(1, &schema(other));
            message.message(21, &item);
        }
    }
    if value["type"].is_string() {
        let mut type_ = Message::default();
        type_.text(1, &value["type"]);
        message.message(22, &type_);
    }
    if value["items"].is_object() {
        let mut items = Message::default();
        items.message(1, &schema(&value["items"]));
        message.message(23, &items);
    }
    for one in list(&value["allOf"]) {
        message.message(24, &schema(one));
    }
    if value["properties"].is_object() {
        message.message(25, &named_schemas(&value["properties"]));
    }
    for (name, extension) in value.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        let mut named = Message::default();
        named.text(1, &json!(name));
        named.message(2, &any(extension));
        message.message(31, &named);
    }
    message
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A protobuf message as it is written.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

// === impl Message ===

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn number(&mut self, tag: u64, number: u64) {
        self.varint(tag << 3);
        self.varint(number);
    }

    fn double(&mut self, tag: u64, number: f64) {
        self.varint(tag << 3 | 1);
        self.bytes.extend(number.to_le_bytes());
    }

    /// A string field; nothing for any other value.
    fn text(&mut self, tag: u64, text: &Value) {
        if let Some(text) = text.as_str() {
            self.delimited(tag, text.as_bytes());
        }
    }

    fn message(&mut self, tag: u64, message: &Message) {
        self.delimited(tag, &message.bytes);
    }

    fn delimited(&mut self, tag: u64, bytes: &[u8]) {
        self.varint(tag << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V3: &str = r##"{
        "components": {"schemas": {"a.B": {
            "type": "object",
            "properties": {"c": {"allOf": [{"$ref": "#/components/schemas/a.C"}], "default": {}}},
            "x-kubernetes-group-version-kind": [{"group": "a", "version": "v1", "kind": "B"}]
        }, "a.C": {"type": "string"}, "a.List": {
            "type": "object", "required": ["items"],
            "properties": {"items": {"type": "array", "items": {"$ref": "#/components/schemas/a.D"}}}
        }, "a.D": {"type": "object", "required": ["maybe", "oneOf"], "properties": {
            "maybe": {"type": "object", "nullable": true, "properties": {"x": {"type": "string"}}},
            "nullable": {"type": "boolean", "nullable": false},
            "oneOf": {"type": "array", "items": {"type": "object", "oneOf": [{"required": ["a"]}], "properties": {"not": {"type": "string"}}}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"y": {"type": "string"}}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "anyOf": [{"pattern": "a"}]}},
            "either": {"type": "string", "enum": ["a"], "default": {"nullable": 1}, "x-kubernetes-validations": [{"rule": "true", "not": 1}]}
        }}}},
        "paths": {"/a": {"parameters": [{"name": "p", "in": "query", "schema": {"type": "string"}}], "post": {
            "requestBody": {"required": true, "content": {"*/*": {"schema": {"$ref": "#/components/schemas/a.B"}}}},
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/a.B"}}}}}
        }}}
    }"##;

    #[test]
    fn schemas_and_paths_are_said_in_the_older_way() {
        let document = document(std::iter::once(V3));
        assert_eq!(document["definitions"]["a.B"]["properties"]["c"], json!({"$ref": "#/definitions/a.C"}));
        assert_eq!(document["definitions"]["a.C"], json!({"type": "string"}));
        let path = &document["paths"]["/a"];
        assert_eq!(path["parameters"], json!([{"name": "p", "in": "query", "type": "string"}]));
        assert_eq!(path["post"]["parameters"][0]["schema"]["$ref"], "#/definitions/a.B");
        assert_eq!(path["post"]["responses"]["200"]["schema"]["$ref"], "#/definitions/a.B");
        assert_eq!(path["post"]["produces"], json!(["application/json"]));
    }

    #[test]
    fn keywords_go_and_properties_of_their_names_stay() {
        let document = document(std::iter::once(V3));
        let expected = json!({"type": "object", "required": ["oneOf"], "properties": {
            "maybe": {},
            "nullable": {"type": "boolean"},
            "oneOf": {"type": "array", "items": {"type": "object", "properties": {"not": {"type": "string"}}}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "either": {"type": "string", "enum": ["a"], "default": {"nullable": 1}, "x-kubernetes-validations": [{"rule": "true", "not": 1}]},
        }});
        assert_eq!(document["definitions"]["a.D"], expected);
        assert_eq!(
            document["definitions"]["a.List"]["properties"]["items"]["items"],
            json!({"$ref": "#/definitions/a.D"})
        );
    }

    #[test]
    fn the_protobuf_form_holds_the_same_schemas() {
        let bytes = protobuf(&json!({"swagger": "2.0", "definitions": {"a": {"maxLength": 300, "type": "string"}}}));
        // swagger, info, paths, then definitions: one named schema of maxLength 300 and type string
        let wanted = [
            &b"\x0a\x032.0\x12\x00\x42\x00\x4a\x15"[..],
            b"\x0a\x13\x0a\x01a\x12\x0e",
            b"\x58\xac\x02\xb2\x01\x08\x0a\x06string",
        ];
        assert_eq!(bytes, wanted.concat());
    }
}
