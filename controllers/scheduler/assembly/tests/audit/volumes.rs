//! The volumes of nodes, claims in use, and what is assumed of them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn with_volumes(volumes: Value) -> Value {
    let mut form = pod(json!({}), json!({}), json!({"cpu": "100m"}));
    form["spec"]["volumes"] = volumes;
    form
}

fn cast() -> Cast {
    let claim = |mode: &str, volume: Value| {
        let resources = json!({"requests": {"storage": "1Gi"}});
        json!({"spec": {"accessModes": [mode], "storageClassName": "late", "resources": resources, "volumeName": volume}})
    };
    let claims = vec![
        claim("ReadWriteOnce", json!(null)),
        claim("ReadWriteOncePod", json!(null)),
        claim("ReadWriteMany", json!("v0")),
        json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n0"}}, "spec": {}}),
    ];
    let volume = |claim: Value| {
        let source = json!({"driver": "d", "volumeHandle": "h"});
        json!({"spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"], "storageClassName": "late", "csi": source, "claimRef": claim}, "status": {"phase": "Available"}})
    };
    let volumes = vec![volume(json!(null)), volume(json!({"namespace": "ns", "name": "c0"}))];
    let class = |provisioner: &str| json!({"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"});
    let attachment =
        |node: &str| json!({"spec": {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": "v0"}}});
    let limit = json!({"spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 2}}]}});
    let of_claim = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let ephemeral = json!({"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
    let disk = json!({"name": "d", "gcePersistentDisk": {"pdName": "disk"}});
    Cast {
        nodes: vec![node("16", json!({}), json!({}))],
        pods: vec![
            with_volumes(json!([of_claim("c0")])),
            with_volumes(json!([of_claim("c1"), of_claim("c1"), disk])),
            with_volumes(json!([of_claim("c0"), of_claim("c1")])),
            with_volumes(json!([ephemeral])),
            with_volumes(json!([disk, {"name": "x", "emptyDir": {}}])),
            with_volumes(json!([])),
        ],
        objects: vec![
            ("claim", "c0", claims.clone()),
            ("claim", "c1", claims),
            ("volume", "v0", volumes.clone()),
            ("volume", "v1", volumes),
            ("class", "late", vec![class("d"), class("kubernetes.io/no-provisioner")]),
            ("attachment", "a0", vec![attachment("n0"), attachment("n1")]),
            ("attachment", "a1", vec![attachment("n0"), attachment("gone")]),
            ("csinode", "n0", vec![limit, json!({"spec": {"drivers": []}})]),
        ],
        gates: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn volumes_are_those_of_the_pods(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
