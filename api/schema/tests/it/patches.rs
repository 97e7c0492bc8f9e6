//! Patches against the recordings. The recorded objects carry defaults that the requests do not: what the patch gives
//! must be part of what was recorded, lists in the same order and of the same length.

use std::collections::HashMap;

use koord_schema::patch::{PatchError, json, merge, strategic};
use serde_json::Value;

use crate::{
    openapi::Node,
    recordings::{cases, list},
};

fn is_within(found: &Value, recorded: &Value) -> bool {
    match (found, recorded) {
        (Value::Object(found), Value::Object(recorded)) => {
            found.iter().all(|(name, field)| recorded.get(name).is_some_and(|other| is_within(field, other)))
        }
        (Value::Array(found), Value::Array(recorded)) => {
            found.len() == recorded.len()
                && found.iter().zip(recorded).all(|(found, recorded)| is_within(found, recorded))
        }
        _ => found == recorded,
    }
}

fn at<'v>(object: &'v Value, path: &str) -> &'v Value {
    object.pointer(&format!("/{}", path.replace('.', "/"))).unwrap_or(&Value::Null)
}

fn patched(live: &Value, content_type: &str, body: &Value) -> Option<Result<Value, PatchError>> {
    Some(match content_type.split(';').next()? {
        "application/json-patch+json" => json::apply(live.clone(), body),
        "application/merge-patch+json" => Ok(merge::apply(live.clone(), body)),
        "application/strategic-merge-patch+json" => {
            let node = Node::of_kind(live["apiVersion"].as_str()?, live["kind"].as_str()?)?;
            strategic::apply(live.clone(), body, &node)
        }
        _ => return None,
    })
}

#[test]
fn patches_change_objects_as_recorded() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for (name, case) in cases("patch") {
        let mut objects: HashMap<String, Value> = HashMap::new();
        for request in list(&case, "setup") {
            let body = &request["body"];
            let object = format!(
                "{}/{}",
                request["path"].as_str().unwrap(),
                body["metadata"]["name"].as_str().unwrap_or_default()
            );
            objects.insert(object, body.clone());
        }
        for step in list(&case, "steps") {
            let path = step["path"].as_str().unwrap().split('?').next().unwrap().trim_end_matches("/status");
            let (Some(live), Some(content_type)) =
                (objects.get(path).cloned(), step["headers"]["Content-Type"].as_str())
            else {
                continue;
            };
            // What the server alone knows of the object, and what it refuses after the patch, is not compared.
            let server_side = [
                "rv",
                "kind",
                "rename",
                "namespace",
                "unknown",
                "invalid",
                "creation-timestamp",
                "wrong-value",
                "no-value",
                "null-map-key",
                "pod-tolerations",
            ];
            if server_side.iter().any(|part| name.contains(part))
                || step["recorded"]["headers"].get("Warning").is_some()
                || step["path"].as_str().unwrap().contains("fieldValidation")
            {
                continue;
            }
            let Some(result) = patched(&live, content_type, &step["body"]) else { continue };
            let (status, recorded) = (step["recorded"]["status"].as_u64().unwrap(), &step["recorded"]["body"]);
            compared += 1;
            let agrees = match (&result, status) {
                (Ok(new), 200) => match &step["project"] {
                    Value::Null => is_within(new, recorded),
                    Value::String(path) => is_within(at(new, path), recorded) || at(new, path).is_null(),
                    Value::Array(_) => recorded.as_object().unwrap().iter().all(|(path, recorded)| {
                        path == "metadata.generation"
                            || path == "spec.nodeName"
                            || at(new, path).is_null()
                            || is_within(at(new, path), recorded)
                    }),
                    _ => true,
                },
                (Err(PatchError::DoesNotApply(_)), 422) => true,
                (Err(error @ PatchError::Unmergeable(_)), 500) => recorded["message"] == error.to_string().as_str(),
                // Refused later, by validation.
                (Ok(_), 422) => recorded["details"].get("causes").is_some(),
                _ => false,
            };
            if !agrees {
                wrong.push(format!("{name}: {}\n  found    {result:?}\n  recorded {recorded}", step["body"]));
            }
            if let (Ok(new), 200) = (result, status) {
                objects.insert(path.to_owned(), new);
            }
        }
    }
    println!("{compared} patches compared");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}
