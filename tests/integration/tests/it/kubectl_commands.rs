//! kubectl's commands on our kinds and on those that every cluster has.

use crate::suite::{Scene, on_every_server};

/// An ElasticQuota. Names are the tree's, whatever the namespace, and all tests share one cluster.
fn quota(name: &str, cpu: u32) -> String {
    format!(
        "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata:\n  name: {name}\n\
         spec:\n  min: {{cpu: \"{cpu}\"}}\n  max: {{cpu: \"40\"}}\n"
    )
}

fn cpu(scene: &Scene, name: &str) -> String {
    scene.says(&["get", "elasticquota", name, "-o", "jsonpath={.spec.min.cpu}"])
}

#[test]
fn get_prints_every_format() {
    on_every_server(|scene| {
        scene.accepts(&quota("team-a", 4));
        assert_eq!(scene.says(&["get", "elasticquotas", "-o", "name"]), "elasticquota.scheduling.sigs.k8s.io/team-a\n");
        assert!(scene.says(&["get", "elasticquotas"]).starts_with("NAME"));
        assert!(scene.says(&["get", "elasticquotas", "-o", "wide"]).contains("team-a"));
        assert_eq!(cpu(scene, "team-a"), "4");
        assert!(scene.says(&["get", "elasticquotas", "team-a", "-o", "yaml"]).contains("kind: ElasticQuota\n"));
        assert!(scene.says(&["get", "elasticquotas", "team-a", "-o", "json"]).contains("\"kind\": \"ElasticQuota\""));
        let columns = scene.says(&["get", "elasticquotas", "-o", "custom-columns=N:.metadata.name,MIN:.spec.min.cpu"]);
        assert_eq!(columns, "N        MIN\nteam-a   4\n");
    });
}

#[test]
fn a_selector_chooses_and_a_watch_follows() {
    on_every_server(|scene| {
        scene.accepts(&quota("tier-a", 4));
        scene.accepts(&quota("tier-b", 4));
        scene.says(&["label", "elasticquotas", "tier-b", "tier=gold"]);
        let gold = scene.says(&["get", "elasticquotas", "-l", "tier=gold", "-o", "name"]);
        assert_eq!(gold, "elasticquota.scheduling.sigs.k8s.io/tier-b\n");
        let watched = scene.run(&["get", "elasticquotas", "tier-a", "-w", "--request-timeout=2s", "-o", "name"], None);
        assert!(watched.stdout.contains("tier-a"), "{watched:?}");
    });
}

#[test]
fn apply_creates_changes_and_leaves_alone() {
    on_every_server(|scene| {
        let apply = |manifest: &str, more: &[&str]| {
            let arguments: Vec<&str> = ["apply", "-f", "-"].iter().chain(more).copied().collect();
            let printed = scene.run(&arguments, Some(manifest));
            assert_eq!(printed.code, 0, "{}", printed.stderr);
            printed.stdout.trim().rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(apply(&quota("applied-a", 1), &[]), "created");
        assert_eq!(apply(&quota("applied-a", 1), &[]), "unchanged");
        assert_eq!(apply(&quota("applied-a", 2), &[]), "configured");
        assert_eq!(cpu(scene, "applied-a"), "2");
        assert_eq!(apply(&quota("applied-b", 3), &["--server-side"]), "serverside-applied");
        assert_eq!(apply(&quota("applied-b", 4), &["--server-side"]), "serverside-applied");
        assert_eq!(cpu(scene, "applied-b"), "4");
        let difference = scene.run(&["diff", "-f", "-"], Some(&quota("applied-a", 5)));
        assert_eq!(difference.code, 1, "{}", difference.stderr);
        assert!(difference.stdout.contains("-    cpu: \"2\"\n+    cpu: \"5\"\n"), "{}", difference.stdout);
    });
}

#[test]
fn patch_knows_merge_and_json_for_custom_kinds_and_strategic_for_built_in_ones() {
    on_every_server(|scene| {
        scene.accepts(&quota("patched", 1));
        scene.says(&["patch", "elasticquotas", "patched", "--type=merge", "-p", r#"{"spec":{"min":{"cpu":"2"}}}"#]);
        assert_eq!(cpu(scene, "patched"), "2");
        let json =
            r#"[{"op":"test","path":"/spec/min/cpu","value":"2"},{"op":"replace","path":"/spec/min/cpu","value":"3"}]"#;
        scene.says(&["patch", "elasticquotas", "patched", "--type=json", "-p", json]);
        assert_eq!(cpu(scene, "patched"), "3");
        let error = scene.fails(&["patch", "elasticquotas", "patched", "--type=strategic", "-p", "{}"]);
        assert!(error.contains("strategic-merge-patch+json is not supported"), "{error}");

        scene.says(&["run", "web", "--image=nginx", "--labels=a=1"]);
        let strategic = r#"{"metadata":{"labels":{"b":"2"}},"spec":{"containers":[{"name":"web","image":"nginx:2"}]}}"#;
        scene.says(&["patch", "pod", "web", "-p", strategic]);
        let image =
            scene.says(&["get", "pod", "web", "-o", "jsonpath={.metadata.labels.a}{.spec.containers[0].image}"]);
        assert_eq!(image, "1nginx:2");
    });
}

#[test]
fn labels_and_annotations_come_and_go() {
    on_every_server(|scene| {
        scene.accepts(&quota("labelled", 1));
        scene.says(&["label", "elasticquotas", "labelled", "tier=gold"]);
        let error = scene.fails(&["label", "elasticquotas", "labelled", "tier=silver"]);
        assert!(error.contains("already has a value (gold)"), "{error}");
        scene.says(&["label", "elasticquotas", "labelled", "tier=silver", "--overwrite"]);
        scene.says(&["annotate", "elasticquotas", "labelled", "note=hello"]);
        let both =
            ["get", "elasticquotas", "labelled", "-o", "jsonpath={.metadata.labels.tier} {.metadata.annotations.note}"];
        assert_eq!(scene.says(&both), "silver hello");
        scene.says(&["label", "elasticquotas", "labelled", "tier-"]);
        scene.says(&["annotate", "elasticquotas", "labelled", "note-"]);
        assert_eq!(scene.says(&both).trim(), "");
    });
}

#[test]
fn an_edit_is_saved() {
    on_every_server(|scene| {
        scene.accepts(&quota("edited", 1));
        let printed = scene
            .run_with(&["edit", "elasticquotas", "edited"], &[("KUBE_EDITOR", r#"sed -i 's/cpu: "1"/cpu: "7"/'"#)]);
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        assert_eq!(cpu(scene, "edited"), "7");
    });
}

#[test]
fn a_deleted_object_is_gone_and_wait_sees_it_go() {
    on_every_server(|scene| {
        scene.accepts(&quota("deleted", 1));
        scene.says(&["delete", "elasticquotas", "deleted"]);
        let error = scene.fails(&["get", "elasticquotas", "deleted"]);
        assert_eq!(error, "Error from server (NotFound): elasticquotas.scheduling.sigs.k8s.io \"deleted\" not found\n");
        scene.accepts(&quota("awaited", 1));
        scene.says(&["delete", "elasticquotas", "awaited", "--wait=false"]);
        scene.says(&["wait", "elasticquota/awaited", "--for=delete", "--timeout=10s"]);
    });
}

#[test]
fn explain_knows_our_fields() {
    on_every_server(|scene| {
        let text = scene.says(&["explain", "elasticquota.spec"]);
        assert!(text.contains("KIND:       ElasticQuota") && text.contains("max\t"), "{text}");
        let text = scene.says(&["explain", "reservation.spec.owners", "--recursive"]);
        assert!(text.contains("labelSelector"), "{text}");
    });
}

#[test]
fn api_resources_lists_our_kinds() {
    on_every_server(|scene| {
        let text = scene.says(&["api-resources", "--api-group=scheduling.koordinator.sh", "-o", "name"]);
        for plural in ["devices", "podmigrationjobs", "reservations"] {
            assert!(text.contains(&format!("{plural}.scheduling.koordinator.sh\n")), "{text}");
        }
    });
}

#[test]
fn a_deployment_is_scaled() {
    on_every_server(|scene| {
        scene.says(&["create", "deployment", "web", "--image=nginx"]);
        scene.says(&["scale", "deployment", "web", "--replicas=3"]);
        assert_eq!(scene.says(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]), "3");
        let error = scene.fails(&["scale", "deployment", "web", "--replicas=5", "--current-replicas=2"]);
        assert!(error.contains("Expected replicas to be 2, was 3"), "{error}");
    });
}

#[test]
fn describe_and_events_tell_what_happened() {
    on_every_server(|scene| {
        scene.accepts(&quota("described", 1));
        let uid = scene.says(&["get", "elasticquotas", "described", "-o", "jsonpath={.metadata.uid}"]);
        let event = format!(
            "apiVersion: v1\nkind: Event\nmetadata: {{name: described.1}}\ntype: Warning\nreason: Test\nmessage: something happened\n\
             involvedObject: {{apiVersion: scheduling.sigs.k8s.io/v1alpha1, kind: ElasticQuota, name: described, namespace: {}, uid: {uid}}}\n",
            scene.namespace
        );
        scene.accepts(&event);
        let description = scene.says(&["describe", "elasticquotas", "described"]);
        assert!(description.contains("Kind:         ElasticQuota"), "{description}");
        assert!(description.contains("something happened"), "{description}");
        let events = scene.says(&["events", "--for=elasticquota/described"]);
        assert!(events.contains("something happened"), "{events}");
    });
}

#[test]
fn can_i_is_answered() {
    on_every_server(|scene| {
        assert_eq!(scene.says(&["auth", "can-i", "create", "elasticquotas.scheduling.sigs.k8s.io"]), "yes\n");
        let nobody = scene.run(&["auth", "can-i", "delete", "nodes", "--as=nobody"], None);
        assert_eq!((nobody.stdout.as_str(), nobody.code), ("no\n", 1), "{}", nobody.stderr);
    });
}

#[test]
fn create_makes_objects_from_flags() {
    on_every_server(|scene| {
        let namespace = format!("{}-more", scene.namespace);
        assert_eq!(scene.says(&["create", "namespace", &namespace]), format!("namespace/{namespace} created\n"));
        scene.says(&["create", "configmap", "settings", "--from-literal=a=1"]);
        assert_eq!(scene.says(&["get", "configmap", "settings", "-o", "jsonpath={.data.a}"]), "1");
        scene.says(&["delete", "namespace", &namespace, "--wait=false"]);
    });
}
