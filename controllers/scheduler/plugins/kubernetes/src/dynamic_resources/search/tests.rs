use koord_scheduler_framework::{columns::Row, dynamic::DeviceTaintRule};
use serde_json::{Value, json};

use crate::dynamic_resources::testing::{DRIVER, World, claimed, pod, request};

/// Two nodes: one with four devices of two models on two roots, one with a device.
fn world() -> World {
    let mut world = World::of(&["a", "b"]);
    let device = |model: &str, root: &str, memory: &str| {
        let attributes = json!({"model": {"string": model}, "example.org/root": {"string": root}});
        json!({"attributes": attributes, "capacity": {"memory": {"value": memory}}})
    };
    world.devices(
        "a",
        &[
            ("0", device("A", "r0", "40Gi")),
            ("1", device("B", "r0", "80Gi")),
            ("2", device("A", "r1", "40Gi")),
            ("3", device("B", "r1", "80Gi")),
        ],
    );
    world.devices("b", &[("0", device("A", "r0", "40Gi"))]);
    world
}

fn model(name: &str) -> String {
    format!("device.attributes['{DRIVER}'].model == '{name}'")
}

/// What a pod is given for a claim on the first node; why not otherwise.
fn given(world: &mut World, claim: &Value) -> String {
    world.claim("c", claim);
    let pod = pod("p", &["c"]);
    let answers = world.answers(&pod);
    let given = match world.reserve(&pod, "a") {
        Ok((given, _)) => given.join(" "),
        Err(words) => words,
    };
    world.cluster.remove_pod(&pod.uid);
    let expected = if given.contains('=') || given.is_empty() { String::new() } else { format!("UU {given}") };
    if let [first, _] = answers.as_slice() {
        assert_eq!(*first, expected, "filter and reserve agree");
    }
    given
}

fn with(mut claim: Value, member: &str, value: Value) -> Value {
    claim["spec"]["devices"][member] = value;
    claim
}

#[test]
fn the_first_devices_that_selectors_want_are_given() {
    let mut world = world();
    let large = format!("device.capacity['{DRIVER}'].memory.compareTo(quantity('80Gi')) >= 0");
    for (requests, expected) in [
        (json!([request("r", 1, &[])]), "r=0"),
        (json!([request("r", 2, &[&model("B")])]), "r=1 r=3"),
        (json!([request("r", 3, &[&model("B")])]), "cannot allocate all claims"),
        (json!([request("r", 1, &[&large]), request("s", 2, &[])]), "r=1 s=0 s=2"),
        (json!([request("any", 3, &[]), request("b", 1, &[&model("B")])]), "any=0 any=1 any=2 b=3"),
        (json!([request("any", 2, &[]), request("b", 2, &[&model("B")])]), "any=0 any=2 b=1 b=3"),
        (json!([]), ""),
    ] {
        assert_eq!(given(&mut world, &claimed(&requests)), expected, "{requests}");
    }
    world.claim("c", &claimed(&json!([request("r", 2, &[])])));
    assert_eq!(world.answers(&pod("p", &["c"])), ["", "UU cannot allocate all claims"]);
}

#[test]
fn alternatives_are_tried_in_their_order() {
    let mut world = world();
    let alternative = |name: &str, count: u32, of: &str| json!({"name": name, "deviceClassName": "gpu", "count": count, "selectors": [{"cel": {"expression": model(of)}}]});
    let claim = |alternatives: Value| claimed(&json!([{"name": "r", "firstAvailable": alternatives}]));
    let first = claim(json!([alternative("three", 3, "A"), alternative("two", 2, "B")]));
    assert_eq!(given(&mut world, &first), "r/two=1 r/two=3");
    assert_eq!(given(&mut world, &claim(json!([alternative("x", 3, "A")]))), "cannot allocate all claims");
    let rows: Vec<Row> = world.cluster.rows().map(|(row, _)| row).collect();
    let mut scores = |alternatives: Value| {
        world.claim("c", &claim(alternatives));
        koord_scheduler_testing::scored_pod(&world.plugin, &mut world.cluster, &pod("p", &["c"]), &rows)
    };
    let (large, small) = (alternative("large", 2, "A"), alternative("small", 1, "A"));
    assert_eq!(scores(json!([large, small])), Some(vec![100, 50]), "the second node has only one device");
    assert_eq!(scores(json!([small])), None);
}

#[test]
fn all_devices_are_given_or_none() {
    let mut world = world();
    let all = |selector: &str| {
        let selectors = json!([{"cel": {"expression": selector}}]);
        let exactly = json!({"deviceClassName": "gpu", "allocationMode": "All", "selectors": selectors});
        claimed(&json!([{"name": "all", "exactly": exactly}]))
    };
    assert_eq!(given(&mut world, &all("true")), "all=0 all=1 all=2 all=3");
    assert_eq!(given(&mut world, &all(&model("C"))), "cannot allocate all claims");
    world.claim("other", &claimed(&json!([request("r", 1, &[])])));
    world.reserve(&pod("other", &["other"]), "a").unwrap();
    assert_eq!(given(&mut world, &all("true")), "cannot allocate all claims");
    assert_eq!(given(&mut world, &all(&model("B"))), "all=1 all=3");
}

#[test]
fn constraints_hold_for_all_devices_of_their_requests() {
    let mut world = world();
    let root = "example.org/root";
    for (requests, constraints, expected) in [
        (json!([request("r", 2, &[])]), json!([{"matchAttribute": root}]), "r=0 r=1"),
        (json!([request("r", 2, &[])]), json!([{"distinctAttribute": root}]), "r=0 r=2"),
        (json!([request("r", 3, &[])]), json!([{"matchAttribute": root}]), "cannot allocate all claims"),
        (json!([request("r", 2, &[])]), json!([{"matchAttribute": format!("{DRIVER}/model")}]), "r=0 r=2"),
        (
            json!([request("r", 2, &[])]),
            json!([{"matchAttribute": format!("{DRIVER}/absent")}]),
            "cannot allocate all claims",
        ),
        (
            json!([request("r", 1, &[&model("B")]), request("s", 2, &[])]),
            json!([{"matchAttribute": root, "requests": ["r"]}, {"distinctAttribute": root, "requests": ["s"]}]),
            "r=1 s=0 s=2",
        ),
    ] {
        let claim = with(claimed(&requests), "constraints", constraints.clone());
        assert_eq!(given(&mut world, &claim), expected, "{constraints}");
    }
}

#[test]
fn a_tainted_device_is_given_to_those_who_tolerate_it() {
    let mut world = World::of(&["a", "b"]);
    let taint = |effect: &str| json!({"taints": [{"key": "k", "value": "v", "effect": effect}]});
    world.devices("a", &[("0", taint("NoSchedule")), ("1", taint("None"))]);
    let claim = |count: u32, toleration: Value| {
        let mut request = request("r", count, &[]);
        request["exactly"]["tolerations"] = toleration;
        claimed(&json!([request]))
    };
    assert_eq!(given(&mut world, &claim(1, json!([]))), "r=1");
    for (toleration, expected) in [
        (json!({"operator": "Exists"}), "r=0 r=1"),
        (json!({"key": "k", "value": "v", "effect": "NoSchedule"}), "r=0 r=1"),
        (json!({"key": "k", "value": "w"}), "cannot allocate all claims"),
        (json!({"key": "x", "operator": "Exists"}), "cannot allocate all claims"),
        (json!({"operator": "Exists", "effect": "NoExecute"}), "cannot allocate all claims"),
    ] {
        assert_eq!(given(&mut world, &claim(2, json!([toleration.clone()]))), expected, "{toleration}");
    }
}

#[test]
fn who_looks_after_devices_may_use_those_of_others() {
    let mut world = World::of(&["a", "b"]);
    world.plain("a", &["0", "1"]);
    world.claim("other", &claimed(&json!([request("r", 2, &[])])));
    world.reserve(&pod("other", &["other"]), "a").unwrap();
    let mut admin = request("r", 2, &[]);
    assert_eq!(given(&mut world, &claimed(&json!([admin]))), "cannot allocate all claims");
    admin["exactly"]["adminAccess"] = json!(true);
    assert_eq!(given(&mut world, &claimed(&json!([admin]))), "r=0 r=1");
    world.claim("admin", &claimed(&json!([admin])));
    world.reserve(&pod("admin", &["admin"]), "a").unwrap();
    world.cluster.remove_pod(&"other".into());
    assert_eq!(world.used(), [""; 0], "it keeps nobody from them");
}

#[test]
fn what_is_not_supported_is_named() {
    let mut world = World::of(&["a", "b"]);
    let one = claimed(&json!([request("r", 1, &[])]));
    for (device, lack) in [
        (json!({"consumesCounters": [{"counterSet": "s"}]}), "shares counters with others"),
        (json!({"allowMultipleAllocations": true}), "is given in parts"),
        (json!({"bindingConditions": ["x"]}), "has binding conditions"),
    ] {
        world.devices("a", &[("0", device.clone())]);
        let words = format!("cannot allocate all claims: device 0 {lack}, which is not supported");
        assert_eq!(given(&mut world, &one), words);
        world.devices("a", &[("0", device), ("1", json!({}))]);
        assert_eq!(given(&mut world, &one), "r=1");
    }
    world.plain("a", &["0", "0"]);
    let invalid = "resource pool gpu.example.com/a is currently invalid: duplicate device name 0";
    assert_eq!(given(&mut world, &one), format!("cannot allocate all claims: {invalid}"));
    let all = json!([{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]);
    let words = format!("claim ns/c, request r: asks for all devices, but {invalid}");
    assert_eq!(given(&mut world, &claimed(&all)), words);
}

#[test]
fn a_selector_that_fails_refuses_the_node_for_its_claim_alone() {
    let mut world = world();
    let absent = format!("device.attributes['{DRIVER}'].absent == 'x'");
    let failing = claimed(&json!([request("r", 1, &[&absent])]));
    let words = "claim ns/c: selector #0: CEL runtime error: no such key: absent";
    assert_eq!(given(&mut world, &failing), words);
    assert_eq!(given(&mut world, &claimed(&json!([request("r", 1, &[])]))), "r=0");
    let guarded = format!("'absent' in device.attributes['{DRIVER}'] && {absent}");
    assert_eq!(given(&mut world, &claimed(&json!([request("r", 1, &[&guarded])]))), "cannot allocate all claims");
}

#[test]
fn a_search_without_end_is_given_up() {
    let mut world = World::of(&["a", "b"]);
    let names: Vec<String> = (0..32).map(|number| format!("{number:02}")).collect();
    let devices: Vec<(&str, Value)> =
        names.iter().map(|name| (&**name, json!({"attributes": {"id": {"string": name}}}))).collect();
    world.devices("a", &devices);
    let never = format!("device.attributes['{DRIVER}'].id == 'x'");
    let claim = claimed(&json!([request("many", 12, &[]), request("never", 1, &[&never])]));
    let words = "cannot allocate all claims: more than 10000 choices of devices were tried";
    assert_eq!(given(&mut world, &claim), words);
}

#[test]
fn the_configuration_of_class_and_claim_and_the_node_selector_of_devices_are_written() {
    let mut world = World::of(&["a", "b"]);
    let parameters = |driver: &str, what: &str| json!({"opaque": {"driver": driver, "parameters": {"what": what}}});
    world.set::<koord_scheduler_framework::dynamic::DeviceClass>(
        "gpu",
        &json!({"spec": {"config": [parameters(DRIVER, "class")]}}),
    );
    let test = json!({"key": "host", "operator": "In", "values": ["a", "b"]});
    let reach = json!({"nodeSelectorTerms": [{"matchExpressions": [test]}]});
    let pool = json!({"name": "net", "generation": 1, "resourceSliceCount": 1});
    let spec =
        json!({"driver": DRIVER, "pool": pool, "nodeSelector": reach, "devices": [{"name": "x"}, {"name": "y"}]});
    world.set::<koord_scheduler_framework::dynamic::ResourceSlice>("net", &json!({ "spec": spec }));
    let mut of_claim = parameters(DRIVER, "claim");
    of_claim["requests"] = json!(["s"]);
    let config = json!([of_claim, {"requests": ["other"], "opaque": {}}]);
    let requests = json!([request("r", 1, &[]), request("s", 1, &[])]);
    world.claim("c", &with(claimed(&requests), "config", config));
    let (_, writes) = world.reserve(&pod("p", &["c"]), "b").unwrap();
    let claim = world.carry_out("c", &json!({}), &writes);
    let result =
        |request: &str, device: &str| json!({"request": request, "driver": DRIVER, "pool": "net", "device": device});
    let sourced = |mut config: Value, source: &str, requests: Value| {
        config["source"] = json!(source);
        config["requests"] = requests;
        config
    };
    let expected = json!({
        "devices": {
            "results": [result("r", "x"), result("s", "y")],
            "config": [
                sourced(parameters(DRIVER, "class"), "FromClass", json!(["r", "s"])),
                sourced(parameters(DRIVER, "claim"), "FromClaim", json!(["s"])),
            ],
        },
        "nodeSelector": reach,
    });
    assert_eq!(claim["status"]["allocation"], expected);
}

#[test]
fn rules_taint_devices_of_drivers_pools_and_classes_and_those_that_selectors_want() {
    let by = |selector: Value| {
        let mut world = world();
        let taint = json!({"key": "broken", "value": "yes", "effect": "NoExecute"});
        let mut spec = json!({ "taint": taint });
        if selector != Value::Null {
            spec["deviceSelector"] = selector;
        }
        world.set::<DeviceTaintRule>("rule", &json!({ "spec": spec }));
        given(&mut world, &claimed(&json!([request("r", 1, &[])])))
    };
    let none = "cannot allocate all claims";
    let all = json!({"driver": DRIVER, "pool": "a", "deviceClassName": "gpu"});
    for everything in [Value::Null, json!({}), all.clone()] {
        assert_eq!(by(everything.clone()), none, "{everything}");
    }
    for other in
        [json!({"driver": "x"}), json!({"pool": "b"}), json!({"deviceClassName": "none"}), json!({"device": "9"})]
    {
        assert_eq!(by(other.clone()), "r=0", "{other}");
    }
    let cel = |text: &str| json!({"driver": DRIVER, "selectors": [{"cel": {"expression": text}}]});
    assert_eq!([by(json!({"device": "0"})), by(cel(&model("A")))], ["r=1", "r=1"]);
    assert_eq!(by(cel("device.attributes['other'].model == 'x'")), "r=0", "what fails means no device");
    assert!(by(cel("1 +")).starts_with("DeviceTaintRule rule: selector #0: CEL compile error: "));
}

#[test]
fn a_request_may_tolerate_the_taint_of_a_rule_and_rules_that_only_inform_taint_nothing() {
    let with_effect = |effect: &str, tolerations: Value| {
        let mut world = world();
        let spec = json!({"taint": {"key": "broken", "value": "yes", "effect": effect}});
        world.set::<DeviceTaintRule>("rule", &json!({ "spec": spec }));
        let mut request = request("r", 1, &[]);
        request["exactly"]["tolerations"] = tolerations;
        given(&mut world, &claimed(&json!([request])))
    };
    let tolerated = json!([{"key": "broken", "operator": "Exists"}]);
    assert_eq!([with_effect("NoSchedule", tolerated), with_effect("None", json!([]))], ["r=0", "r=0"]);
    assert_eq!(
        with_effect("NoSchedule", json!([{"key": "other", "operator": "Exists"}])),
        "cannot allocate all claims"
    );
}
