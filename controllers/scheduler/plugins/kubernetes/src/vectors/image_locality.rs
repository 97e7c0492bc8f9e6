use std::sync::Arc;

use koord_scheduler_framework::node::Node;
use koord_scheduler_testing::{node, scored};
use serde_json::json;

use crate::ImageLocality;

/// Nodes by their images and the sizes of these in MiB.
fn nodes(images: &[&[(&str, i64)]]) -> Vec<Arc<Node>> {
    let of_node = |(number, images): (usize, &&[(&str, i64)])| {
        let image = |(name, mib): &(&str, i64)| json!({"names": [format!("{name}:latest")], "sizeBytes": mib << 20});
        node(&format!("n{number}"), &json!({"status": {"images": images.iter().map(image).collect::<Vec<_>>()}}))
    };
    images.iter().enumerate().map(of_node).collect()
}

#[test]
fn images_count_by_size_and_by_how_many_nodes_have_them() {
    let (web, db, huge) = (("web", 600), ("db", 60), ("huge", 4000));
    let (x, y, z) = (("x", 900), ("y", 900), ("z", 900));
    for (what, on, containers, inits, expected) in [
        // 300 MiB of two times 1000, without the first 23; 30 MiB.
        ("one on each of two nodes", &[&[web][..], &[db]][..], &["web", "db"][..], &[][..], Some(vec![14, 0])),
        // 300 and 30 MiB.
        ("both on one node", &[&[web, db], &[]], &["web", "db"], &[], Some(vec![15, 0])),
        // 2000 MiB count as 1000.
        ("larger than what counts", &[&[huge], &[db]], &["huge"], &[], Some(vec![100, 0])),
        // 4000 / 8 of 1000.
        (
            "one of eight nodes",
            &[&[huge], &[], &[], &[], &[], &[], &[], &[]],
            &["huge"],
            &[],
            Some(vec![48, 0, 0, 0, 0, 0, 0, 0]),
        ),
        // 450 MiB, and twice that, of three times 1000.
        ("several large ones", &[&[x], &[y, z]], &["x", "y", "z"], &[], Some(vec![14, 29])),
        // On all nodes: 900 MiB of 1000.
        ("everywhere", &[&[x], &[x]], &["x"], &[], Some(vec![89, 89])),
        // Three times 7 MiB are less than 23.
        ("several small ones", &[&[("s", 14), ("t", 14), ("u", 14)], &[]], &["s", "t", "u"], &[], None),
        // An image that two containers have counts twice: 600 MiB of two times 1000.
        ("the same one twice", &[&[web], &[]], &["web", "web"], &[], Some(vec![29, 0])),
        ("of an init container", &[&[web], &[db]], &["db"], &["web"], Some(vec![14, 0])),
        ("nowhere", &[&[web], &[db]], &["none"], &[], None),
    ] {
        let of =
            |images: &[&str]| -> Vec<_> { images.iter().map(|image| json!({"name": "c", "image": image})).collect() };
        let spec = json!({"containers": of(containers), "initContainers": of(inits)});
        assert_eq!(scored(&ImageLocality, &nodes(on), &spec), expected, "{what}");
    }
}
