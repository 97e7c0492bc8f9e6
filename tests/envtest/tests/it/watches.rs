//! What watchers see.

use http::Method;
use serde_json::{Value, json};

use crate::{MAPS, api_server::Core};

#[test]
fn watchers_see_the_last_state_that_was_stored() {
    let mut core = Core::new();
    let held = json!({"metadata": {"name": "a", "finalizers": ["x.y/z"]}});
    core.create(MAPS, &held);
    let mut watch = core.watch(&format!("{MAPS}?watch=1"), "");
    core.poll(&mut watch);
    core.ask(Method::DELETE, &format!("{MAPS}/a"), &Value::Null);
    let (_, mut map) = core.ask(Method::GET, &format!("{MAPS}/a"), &Value::Null);
    map["metadata"]["finalizers"] = json!([]);
    core.ask(Method::PUT, &format!("{MAPS}/a"), &map);
    let events = core.poll(&mut watch);
    let [modified, deleted] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&modified["type"], &deleted["type"]), (&json!("MODIFIED"), &json!("DELETED")));
    assert_eq!(deleted["object"]["metadata"]["finalizers"], json!(["x.y/z"]));
    assert_ne!(deleted["object"]["metadata"]["resourceVersion"], modified["object"]["metadata"]["resourceVersion"]);
}

#[test]
fn bookmarks_of_a_table_are_tables() {
    let mut core = Core::new();
    core.create(MAPS, &json!({"metadata": {"name": "a"}}));
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&includeObject=None";
    let mut watch = core.watch(&format!("{MAPS}?{query}"), "application/json;as=Table;v=v1;g=meta.k8s.io");
    let events = core.poll(&mut watch);
    let [.., added, mark] = &events[..] else { panic!("{events:?}") };
    assert!(added["object"]["rows"][0]["object"].is_null());
    assert_eq!((&mark["type"], &mark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Table")));
    assert_eq!(mark["object"]["columnDefinitions"], Value::Null, "the first event had them");
    let row = &mark["object"]["rows"][0];
    assert_eq!(row["cells"], json!(["", 0, "<unknown>"]));
    let metadata = &row["object"]["metadata"];
    assert_eq!(
        metadata["annotations"],
        json!({"k8s.io/initial-events-end": "true"}),
        "also where no object was asked for"
    );
    assert_eq!(mark["object"]["metadata"]["resourceVersion"], metadata["resourceVersion"]);
}
