//! koord-manager's webhooks, called over TLS by the server under test: what they fill in, and what they refuse.

use crate::suite::{Scene, on_every_server};

/// An ElasticQuota named after the scene, because koord-manager knows quotas by name alone.
fn quota(scene: &Scene, spec: &str) -> String {
    format!(
        "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {{name: {}}}\nspec: {spec}\n",
        scene.namespace
    )
}

fn pod(name: &str, labels: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {labels}}}\nspec:\n  {spec}\n  containers:\n  \
         - {{name: main, image: nginx, resources: {{requests: {{cpu: \"2\", memory: 4Gi}}, limits: {{cpu: \"2\", memory: 4Gi}}}}}}\n"
    )
}

#[test]
fn a_quota_gets_its_parent_and_its_weight() {
    on_every_server(|scene| {
        scene.accepts(&quota(scene, r#"{min: {cpu: "10"}, max: {cpu: "40"}}"#));
        let parent = r"jsonpath={.metadata.labels.quota\.scheduling\.koordinator\.sh/parent}";
        assert_eq!(scene.says(&["get", "elasticquota", &scene.namespace, "-o", parent]), "koordinator-root-quota");
        let weight = r"jsonpath={.metadata.annotations.quota\.scheduling\.koordinator\.sh/shared-weight}";
        assert_eq!(scene.says(&["get", "elasticquota", &scene.namespace, "-o", weight]), r#"{"cpu":"40"}"#);
    });
}

#[test]
fn a_quota_that_promises_more_than_its_limit_is_refused() {
    on_every_server(|scene| {
        let more = quota(scene, r#"{min: {cpu: "50"}, max: {cpu: "40"}}"#);
        scene.rejects(&more, "min");
        scene.rejects(&more, "denied the request");
        scene.rejects(&quota(scene, r#"{min: {memory: 1Gi}, max: {cpu: "40"}}"#), "is not included in max");
        scene.rejects(&quota(scene, r#"{max: {cpu: "-1"}}"#), "value < 0");
    });
}

#[test]
fn a_profile_turns_a_pod_into_a_batch_pod() {
    on_every_server(|scene| {
        let name = &scene.namespace;
        scene.accepts(&format!(
            "apiVersion: config.koordinator.sh/v1alpha1\nkind: ClusterColocationProfile\nmetadata: {{name: {name}}}\nspec:\n  \
             selector: {{matchLabels: {{scene: {name}}}}}\n  qosClass: BE\n  priorityClassName: koord-batch\n  labels: {{by: profile}}\n"
        ));
        let labels = format!("{{scene: {name}}}");
        // The manager learns of the profile by a watch; pods before that are as they were written.
        let becomes_batch = || {
            let batch = scene.says(&[
                "create",
                "-f",
                &scene.file(&pod("probe", &labels, "")),
                "--dry-run=server",
                "-o",
                "yaml",
            ]);
            batch.contains("by: profile")
        };
        scene.comes_true("the profile is known", becomes_batch);
        scene.accepts(&pod("job", &labels, ""));
        let get = |path: &str| scene.says(&["get", "pod", "job", "-o", &format!("jsonpath={{{path}}}")]);
        assert_eq!(get(r".metadata.labels.koordinator\.sh/qosClass"), "BE");
        assert_eq!(get(".spec.priorityClassName"), "koord-batch");
        assert_eq!(get(".spec.priority"), "5000");
        assert_eq!(
            get(".spec.containers[0].resources.requests"),
            r#"{"kubernetes.io/batch-cpu":"2k","kubernetes.io/batch-memory":"4Gi"}"#
        );
        scene.says(&["delete", "clustercolocationprofile", name]);
    });
}

#[test]
fn a_pod_whose_words_contradict_each_other_is_refused() {
    on_every_server(|scene| {
        scene.rejects(
            &pod("both", "{koordinator.sh/qosClass: BE}", "priorityClassName: koord-prod"),
            "koordinator.sh/qosClass=BE and priorityClass=koord-prod cannot be used in combination",
        );
        scene.accepts(&pod("batch", "{koordinator.sh/qosClass: BE}", "priorityClassName: koord-batch"));
    });
}
