use koord_scheduler_framework::{EnqueueExtensions as _, cluster::Cluster, event::Event, hold::Holds};
use koord_scheduler_testing::{cluster, filtered_in, node, pod};
use serde_json::{Value, json};

use crate::NodePorts;

/// A pod with ports of the host, such as `UDP 10.0.0.1 53` or `TCP * 80`; a first word says of which container.
fn spec(ports: &[&str]) -> Value {
    let mut spec = json!({"containers": [{"ports": []}], "initContainers": []});
    for port in ports {
        let (kind, port) = port.split_once(": ").unwrap_or(("", port));
        let [protocol, address, number] = *port.split(' ').collect::<Vec<_>>() else { panic!("{port}") };
        let address = if address == "*" { Value::Null } else { json!(address) };
        let number: u16 = number.parse().unwrap();
        let port = json!({"containerPort": number, "hostPort": number, "protocol": protocol, "hostIP": address});
        if kind.is_empty() {
            spec["containers"][0]["ports"].as_array_mut().unwrap().push(port);
        } else {
            let policy = if kind == "sidecar" { json!("Always") } else { Value::Null };
            let container = json!({"name": "i", "restartPolicy": policy, "ports": [port]});
            spec["initContainers"].as_array_mut().unwrap().push(container);
        }
    }
    spec
}

#[test]
fn a_port_of_an_address_and_protocol_is_free_or_taken() {
    for (what, requested, taken, fits) in [
        ("no port", &[][..], &["TCP 10.1.0.7 80"][..], true),
        ("another port", &["UDP 10.1.0.7 53"], &["UDP 10.1.0.7 54"], true),
        ("the same one, UDP", &["UDP 10.1.0.7 53"], &["UDP 10.1.0.7 53"], false),
        ("the same one, TCP", &["TCP 10.1.0.7 53"], &["TCP 10.1.0.7 53"], false),
        ("another address", &["TCP 10.1.0.7 53"], &["TCP 10.1.0.8 53"], true),
        ("another protocol", &["UDP 10.1.0.7 53"], &["TCP 10.1.0.7 53"], true),
        ("SCTP is a protocol of its own", &["SCTP 10.1.0.7 53"], &["TCP 10.1.0.7 53"], true),
        ("the second is taken", &["UDP 10.1.0.7 52", "UDP 10.1.0.7 53"], &["UDP 10.1.0.7 53"], false),
        (
            "the first is taken, of two",
            &["TCP 10.1.0.7 90", "UDP 10.1.0.7 53"],
            &["TCP 10.1.0.7 90", "UDP 10.1.0.7 54"],
            false,
        ),
        ("all addresses are wanted", &["TCP 0.0.0.0 80"], &["TCP 10.1.0.7 80"], false),
        ("all addresses, unsaid", &["TCP * 80"], &["TCP 10.1.0.7 80"], false),
        ("all addresses beside another", &["TCP 10.1.0.8 80", "TCP 0.0.0.0 80"], &["TCP 10.1.0.7 80"], false),
        ("all addresses are taken", &["TCP 10.1.0.7 80"], &["TCP 0.0.0.0 80"], false),
        ("all addresses are taken, of another protocol", &["UDP 10.1.0.7 80"], &["TCP 0.0.0.0 80"], true),
        ("all addresses are taken, of both", &["UDP 10.1.0.7 80"], &["TCP 0.0.0.0 80", "UDP 0.0.0.0 80"], false),
        ("of a container that ends", &["init: TCP * 80"], &["TCP * 80"], true),
        ("of a container that goes on", &["sidecar: TCP * 80"], &["TCP * 80"], false),
        ("several, all free", &["TCP 10.1.0.7 80", "TCP 10.1.1.7 81"], &["TCP 10.1.0.7 90", "TCP 10.1.1.7 80"], true),
        (
            "several, one taken",
            &["TCP 10.1.0.7 80", "TCP 10.1.1.7 81", "TCP 10.1.1.7 82"],
            &["TCP 10.1.0.7 90", "TCP 10.1.1.7 81"],
            false,
        ),
    ] {
        let mut cluster = cluster(&[node("n", &json!({}))]);
        cluster.place(pod("there", &spec(taken)), &"n".into(), Holds::default());
        let expected = if fits { "" } else { "U node(s) didn't have free ports for the requested pod ports" };
        assert_eq!(filtered_in(&NodePorts, &mut cluster, &spec(requested)), [expected], "{what}");
    }
}

#[test]
fn a_pod_that_goes_helps_where_it_had_such_a_port() {
    let waiting = pod("waiting", &spec(&["TCP * 80"]));
    for (gone, helps) in
        [(&[][..], false), (&["TCP * 81"], false), (&["UDP * 80"], false), (&["TCP 10.1.0.7 80"], true)]
    {
        let event = Event::PodRemoved(pod("gone", &spec(gone)));
        assert_eq!(NodePorts.is_helped_by(&waiting, &event, &Cluster::default()), helps, "{gone:?}");
    }
}
