//! Nodes that are not there: their pods run, they can be cordoned, tainted and drained.

use crate::suite::{Scene, on_every_server};

fn pod_on(node: &str, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  nodeName: {node}\n  \
         containers: [{{name: main, image: nginx, resources: {{requests: {{cpu: \"1\", memory: 1Gi}}}}}}]\n"
    )
}

fn phase(scene: &Scene, name: &str, phase: &str) {
    scene.comes_to_say(&["get", "pod", name, "-o", "jsonpath={.status.phase}"], phase);
}

#[test]
fn nodes_are_ready_and_renew_their_leases() {
    on_every_server(|scene| {
        let nodes = scene.says(&["get", "nodes", "--no-headers"]);
        let hollow = nodes.lines().filter(|line| line.starts_with("hollow-"));
        assert_eq!(hollow.filter(|line| line.contains(" Ready")).count(), 3, "{nodes}");
        let lease =
            ["get", "lease", "hollow-0", "--namespace=kube-node-lease", "-o", "jsonpath={.spec.holderIdentity}"];
        scene.comes_to_say(&lease, "hollow-0");
    });
}

#[test]
fn a_bound_pod_runs_and_a_deleted_one_is_gone() {
    on_every_server(|scene| {
        scene.accepts(&pod_on("hollow-0", "web"));
        phase(scene, "web", "Running");
        scene.says(&["wait", "pod/web", "--for=condition=Ready", "--timeout=10s"]);
        scene.says(&["delete", "pod", "web", "--timeout=20s"]);
        assert!(scene.fails(&["get", "pod", "web"]).contains("NotFound"));
    });
}

#[test]
fn a_pod_is_placed_and_one_that_fits_nowhere_waits() {
    on_every_server(|scene| {
        scene.says(&["run", "web", "--image=nginx"]);
        phase(scene, "web", "Running");
        scene.says(&["run", "picky", "--image=nginx", r#"--overrides={"spec":{"nodeSelector":{"disk":"fast"}}}"#]);
        let message = r#"jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}"#;
        let refused = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. \
                       no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
        scene.comes_to_say(&["get", "pod", "picky", "-o", message], refused);
        scene.says(&["label", "node", "hollow-1", "disk=fast"]);
        phase(scene, "picky", "Running");
        assert_eq!(scene.says(&["get", "pod", "picky", "-o", "jsonpath={.spec.nodeName}"]).trim(), "hollow-1");
    });
}

#[test]
fn a_node_is_cordoned_tainted_and_drained() {
    on_every_server(|scene| {
        // the last node; the other tests use the first ones
        let node = "hollow-2";
        scene.accepts(&pod_on(node, "web"));
        phase(scene, "web", "Running");
        assert!(scene.says(&["cordon", node]).contains("cordoned"));
        assert!(scene.says(&["get", "node", node]).contains("SchedulingDisabled"));
        scene.says(&["taint", "node", node, "team=a:NoSchedule"]);
        assert!(scene.says(&["describe", "node", node]).contains("team=a:NoSchedule"));
        scene.says(&["taint", "node", node, "team-"]);
        scene.says(&["drain", node, "--force", "--timeout=30s"]);
        assert!(scene.fails(&["get", "pod", "web"]).contains("NotFound"));
        assert!(scene.says(&["uncordon", node]).contains("uncordoned"));
    });
}
