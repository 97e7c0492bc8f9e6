//! What a kubelet asks of ResourceSlices: those of its node and of one driver, as on a real kube-apiserver.

use http::Method;
use serde_json::{Value, json};

use crate::api_server::Core;

const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";

fn slice(name: &str, node: &str, driver: &str) -> Value {
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "driver": driver, "pool": pool, "devices": []}})
}

fn with_slices() -> Core {
    let mut core = Core::new();
    for (name, node, driver) in [("a", "n", "gpu.io"), ("b", "n", "nic.io"), ("c", "other", "gpu.io")] {
        core.create(SLICES, &slice(name, node, driver));
    }
    core
}

fn names(core: &mut Core, selector: &str) -> Vec<String> {
    let (code, list) = core.ask(Method::GET, &format!("{SLICES}?fieldSelector={selector}"), &Value::Null);
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn slices_are_selected_by_node_and_driver() {
    let mut core = with_slices();
    assert_eq!(names(&mut core, "spec.nodeName=n"), ["a", "b"]);
    assert_eq!(names(&mut core, "spec.driver=gpu.io"), ["a", "c"]);
    assert_eq!(names(&mut core, "spec.nodeName=n,spec.driver!=gpu.io"), ["b"]);
    assert_eq!(names(&mut core, "spec.nodeName="), [""; 0]);
    for version in ["v1beta1", "v1beta2"] {
        let path = format!("/apis/resource.k8s.io/{version}/resourceslices?fieldSelector=spec.nodeName=other");
        let (code, list) = core.ask(Method::GET, &path, &Value::Null);
        assert!(code == 404 || list["items"].as_array().unwrap().len() == 1, "{version}: {code} {list}");
    }
}

#[test]
fn a_starting_kubelet_removes_the_slices_of_its_node_alone() {
    let mut core = with_slices();
    let (code, removed) = core.ask(Method::DELETE, &format!("{SLICES}?fieldSelector=spec.nodeName=n"), &Value::Null);
    assert_eq!(code, 200, "{removed}");
    assert_eq!(names(&mut core, ""), ["c"]);
}

#[test]
fn a_watch_of_slices_follows_one_node() {
    let mut core = with_slices();
    let mut watch = core.watch(&format!("{SLICES}?watch=1&fieldSelector=spec.nodeName=n"), "application/json");
    assert_eq!(core.poll(&mut watch).len(), 2);
    core.create(SLICES, &slice("d", "other", "gpu.io"));
    core.create(SLICES, &slice("e", "n", "gpu.io"));
    let events = core.poll(&mut watch);
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["type"], &events[0]["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("e")));
}

#[test]
fn another_field_is_refused_with_the_kind() {
    let mut core = with_slices();
    let (code, refused) = core.ask(Method::GET, &format!("{SLICES}?fieldSelector=spec.pool.name=n"), &Value::Null);
    let message = "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool.name";
    assert_eq!((code, refused["message"].as_str()), (400, Some(message)));
}
