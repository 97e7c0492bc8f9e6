//! What is found of permissions, leases and the configuration.

use super::*;

#[test]
fn permissions_that_are_missing_are_found() {
    let cluster = healthy("doctor-permissions");
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/koord-manager-role";
    let rules = cluster.get(role)["rules"].clone();
    let without = |group: &str, resource: &str, verb: &str| {
        let mut rules = rules.clone();
        for rule in rules.as_array_mut().unwrap() {
            let says = |field: &str, word: &str| rule[field].as_array().unwrap().contains(&word.into());
            if says("apiGroups", group) && says("resources", resource) {
                rule["verbs"].as_array_mut().unwrap().retain(|known| known != verb);
            }
        }
        cluster.patch(role, &json!({ "rules": rules }));
    };
    assert_eq!(findings(&cluster, &["--only=permissions"]), (vec![], 0));
    let with_gate = ["--only=permissions", "--feature-gates=ColocationProfileController=true"];
    let (found, _) = findings(&cluster, &with_gate);
    assert!(found.iter().any(|(_, _, why)| why == "it may not patch pods"), "{found:?}");
    without("slo.koordinator.sh", "nodeslos", "create");
    let (found, code) = findings(&cluster, &["--only=permissions"]);
    assert_eq!(code, 2);
    assert!(found.iter().any(|(_, _, why)| why == "it may not create nodeslos.slo.koordinator.sh"), "{found:?}");
    cluster.patch(role, &json!({"rules": rules}));

    // A role of an older installation grants events of the core group.
    for group in ["", "events.k8s.io"] {
        for verb in ["create", "patch"] {
            let mut rules = rules.clone();
            for rule in rules.as_array_mut().unwrap().iter_mut().filter(|rule| rule["resources"] == json!(["events"])) {
                rule["apiGroups"] = json!([group]);
                rule["verbs"] = json!([verb]);
            }
            cluster.patch(role, &json!({ "rules": rules }));
            finds(&cluster, "permissions", "error", "ServiceAccount", "events.events.k8s.io");
        }
    }
    let mut old = rules.clone();
    for rule in old.as_array_mut().unwrap().iter_mut().filter(|rule| rule["resources"] == json!(["events"])) {
        rule["apiGroups"] = json!([""]);
    }
    cluster.patch(role, &json!({ "rules": old }));
    finds(&cluster, "permissions", "note", "ServiceAccount", "it may write events of the core group alone");
    assert_eq!(findings(&cluster, &["--only=permissions"]).0.len(), 1, "and nothing is an error");
    cluster.patch(role, &json!({ "rules": rules }));

    let binding = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/rolebindings");
    for item in cluster.get(&binding)["items"].as_array().unwrap() {
        cluster.delete(&format!("{binding}/{}", item["metadata"]["name"].as_str().unwrap()));
    }
    let (found, _) = findings(&cluster, &["--only=permissions"]);
    for lacks in [
        "create leases.coordination.k8s.io in namespace koordinator-system",
        "get, update, watch leases.coordination.k8s.io koordinator-manager in namespace koordinator-system",
    ] {
        assert!(found.iter().any(|(_, _, why)| why == &format!("it may not {lacks}")), "{lacks}: {found:?}");
    }

    cluster.delete(&format!("/api/v1/namespaces/{SYSTEM}/serviceaccounts/koord-manager"));
    finds(&cluster, "permissions", "error", "ServiceAccount koordinator-system/koord-manager", "it is not there");
}

#[test]
fn an_older_role_that_does_not_grant_the_watch_of_leases_is_a_note() {
    let cluster = healthy("doctor-lease-watch");
    let role = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/roles/koord-manager-role");
    let rules = cluster.get(&role)["rules"].clone();
    let without = |verbs: &[&str]| {
        let mut rules = rules.clone();
        for rule in rules.as_array_mut().unwrap().iter_mut().filter(|rule| rule["resources"] == json!(["leases"])) {
            let granted = rule["verbs"].as_array_mut().unwrap();
            granted.retain(|verb| !verbs.contains(&verb.as_str().unwrap()));
        }
        cluster.patch(&role, &json!({ "rules": rules }));
    };
    without(&["watch"]);
    let note = "it may not watch leases.coordination.k8s.io koordinator-manager in namespace koordinator-system: a replica that waits reads the \
                Lease instead, and the hand-over takes up to 4.4 s longer";
    finds(&cluster, "permissions", "note", "ServiceAccount koordinator-system/koord-manager", note);
    without(&["update", "watch"]);
    finds(&cluster, "permissions", "error", "ServiceAccount", "it may not update, watch leases.coordination.k8s.io");
}

#[test]
fn who_may_read_little_is_told_so() {
    let cluster = healthy("doctor-forbidden");
    let stranger = cluster.seen_by_a_stranger("nobody");
    let (found, code) = findings(&stranger, &[]);
    assert_eq!(code, 1, "{found:#?}");
    let forbidden =
        found.iter().filter(|(how, _, why)| how == "warning" && why.contains("cannot be looked at: ")).count();
    assert!(forbidden >= 8 && forbidden == found.len(), "{found:#?}");

    // koord-manager asks about itself, which everybody may.
    let itself = cluster.seen_by(&cluster.token("koord-manager"));
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/koord-manager-role";
    let mut rules = cluster.get(role)["rules"].clone();
    rules.as_array_mut().unwrap().push(json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get"]}));
    rules.as_array_mut().unwrap().retain(|rule| rule["resources"] != json!(["events"]));
    cluster.patch(role, &json!({"rules": rules}));
    finds(
        &itself,
        "permissions",
        "error",
        "ServiceAccount koordinator-system/koord-manager",
        "it may not create, patch events",
    );
}

#[test]
fn a_leader_that_is_missing_late_or_not_alone_is_found() {
    let cluster = Cluster::installed("doctor-lease");
    let now = Timestamp::now();
    let ours = format!("{LEASES}/koordinator-manager");
    finds(&cluster, "lease", "error", "Lease koordinator-system/koordinator-manager", "no koord-manager has led here");
    cluster.create(LEASES, &lease("koordinator-manager", now));
    cluster.create(LEASES, &lease("another-program", now));
    assert_eq!(findings(&cluster, &["--only=lease"]), (vec![], 0));
    let with = |spec: Value| cluster.patch(&ours, &json!({ "spec": spec }));
    with(json!({"renewTime": format!("{:.6}", now - SignedDuration::from_secs(100))}));
    finds(&cluster, "lease", "error", "Lease", "one has not renewed it for ");
    with(json!({"renewTime": format!("{:.6}", now + SignedDuration::from_secs(1000))}));
    finds(&cluster, "lease", "warning", "Lease", "its clock is wrong");
    with(json!({"renewTime": null}));
    finds(&cluster, "lease", "warning", "Lease", "one holds it without a renewTime");
    with(json!({"holderIdentity": "", "renewTime": null}));
    finds(&cluster, "lease", "error", "Lease", "it has no holder");

    let elsewhere = LEASES.replace(SYSTEM, "default");
    cluster.create(&elsewhere, &lease("koordinator-manager", Timestamp::now() + SignedDuration::from_secs(3)));
    with(json!({"holderIdentity": "one", "renewTime": format!("{:.6}", Timestamp::now())}));
    finds(&cluster, "lease", "error", "Lease", "several koord-managers lead at once");
    cluster.delete(&ours);
    finds(&cluster, "lease", "warning", "Lease", "it is not there, but another is held: one in default");

    cluster.create(LEASES, &lease("koord-scheduler", Timestamp::now()));
    cluster.delete(&format!("{elsewhere}/koordinator-manager"));
    cluster.create(LEASES, &lease("koordinator-manager", Timestamp::now()));
    assert_eq!(findings(&cluster, &["--only=lease"]), (vec![], 0), "one of each");
    cluster.create(&elsewhere, &lease("koord-scheduler", Timestamp::now()));
    let both = "several koord-schedulers lead at once, each with a lease of its own: one in default, one in koordinator-system";
    finds(&cluster, "lease", "error", "Lease koord-scheduler", both);
}

#[test]
fn every_key_of_the_configuration_is_looked_at() {
    let cluster = Cluster::installed("doctor-configuration");
    let path = format!("/api/v1/namespaces/{SYSTEM}/configmaps/slo-controller-config");
    assert_eq!(findings(&cluster, &["--only=configuration"]), (vec![], 0));
    let with = |data: Value| cluster.patch(&path, &json!({ "data": data }));
    with(json!({"colocation-config": "{"}));
    finds(&cluster, "configuration", "error", "key colocation-config", "goes on with the key's last good value");
    with(
        json!({"colocation-config": "{}", "resource-threshold-config": r#"{"clusterStrategy":{"cpuSuppressThresholdPercent":500}}"#}),
    );
    finds(
        &cluster,
        "configuration",
        "warning",
        "key resource-threshold-config",
        "ResourceThresholdCfg.ClusterStrategy.CPUSuppressThresholdPercent: ",
    );
    with(json!({"resource-threshold-config": null, "colocation-confg": "{}"}));
    finds(&cluster, "configuration", "warning", "key colocation-confg", "unknown key");
    with(json!({"colocation-confg": null}));
    cluster.patch(&path, &json!({"metadata": {"labels": null}}));
    finds(&cluster, "configuration", "note", "ConfigMap", "it lacks the label koordinator.sh/configmap-type");
    cluster.delete(&path);
    finds(&cluster, "configuration", "warning", "ConfigMap", "it is not there");
}
