//! What an installed program may do.

use super::*;
use crate::{
    controller::{RateLimit, ResourceKind},
    rbac::{self, webhook_server},
};

/// The rules of the roles of a kind, each as `groups/resources names: verbs`.
fn granted(installation: &Installation, kind: &str) -> Vec<String> {
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.collect::<Vec<_>>().join(",")
    };
    let line = |rule: &Value| {
        let [groups, resources, names, verbs] =
            ["apiGroups", "resources", "resourceNames", "verbs"].map(|part| words(&rule[part]));
        format!("{groups}/{resources} {names}: {verbs}")
    };
    let objects = install(installation);
    let roles = objects.iter().filter(|object| object["kind"] == kind);
    roles.flat_map(|role| role["rules"].as_array().unwrap()).map(line).collect()
}

const EVENTS: &str = "events.k8s.io/events : create,patch";
const CREATES_LEASES: &str = "coordination.k8s.io/leases : create";
const KEEPS_LEASE: &str = "coordination.k8s.io/leases waiter: get,update,watch";
const GROUP: &str = "admissionregistration.k8s.io";
/// What the webhook server may do with its own objects.
const OWN: &str = "get,list,patch,watch";

#[test]
fn every_program_may_record_events_and_only_one_with_leader_election_has_leases() {
    assert_eq!(granted(&waiter(), "ClusterRole"), [EVENTS]);
    assert_eq!(granted(&waiter(), "Role"), [CREATES_LEASES, KEEPS_LEASE]);
    let renamed = Installation { lease: "waiters".to_owned(), ..waiter() };
    assert_eq!(granted(&renamed, "Role")[1], KEEPS_LEASE.replace("waiter", "waiters"));
    let alone = Installation { leader_election: false, ..waiter() };
    assert_eq!(granted(&alone, "ClusterRole"), [EVENTS]);
    assert!(granted(&alone, "Role").is_empty());
}

#[test]
fn a_webhook_server_may_keep_the_objects_that_are_named() {
    let both = format!("{GROUP}/mutatingwebhookconfigurations,validatingwebhookconfigurations waiter: {OWN}");
    assert_eq!(granted(&served(), "ClusterRole"), [&*both, EVENTS]);
    let secret = format!("/secrets waiter-certs: {OWN}");
    assert_eq!(granted(&served(), "Role"), ["/secrets : create", &secret, CREATES_LEASES, KEEPS_LEASE]);

    let mut renamed = served();
    let webhooks = renamed.webhooks.as_mut().unwrap();
    (webhooks.secret, webhooks.mutating) = ("keys".to_owned(), "tables".to_owned());
    let mutating = format!("{GROUP}/mutatingwebhookconfigurations tables: {OWN}");
    let validating = format!("{GROUP}/validatingwebhookconfigurations waiter: {OWN}");
    assert_eq!(granted(&renamed, "ClusterRole"), [&*mutating, &validating, EVENTS]);
    let secret = format!("/secrets keys: {OWN}");
    assert_eq!(granted(&renamed, "Role"), ["/secrets : create", &secret, CREATES_LEASES, KEEPS_LEASE]);
}

#[test]
fn only_a_server_that_converts_may_change_definitions() {
    let definitions = format!("apiextensions.k8s.io/customresourcedefinitions : {OWN}");
    let mut installation = served();
    assert!(!granted(&installation, "ClusterRole").contains(&definitions));
    installation.webhooks.as_mut().unwrap().conversions = CONVERSIONS;
    assert!(granted(&installation, "ClusterRole").contains(&definitions));
}

#[test]
fn controllers_and_handlers_bring_their_permissions_and_what_is_declared_twice_stands_once() {
    const CONTROLLER: ControllerSpec = ControllerSpec {
        name: "waiter",
        for_kind: ResourceKind::CONFIG_MAP,
        owns: &[],
        watches: &[],
        concurrency: 1,
        rate_limit: RateLimit::DEFAULT,
        gate: None,
        rbac: &[],
    };
    let careful = Handler { rbac: &[PLAIN], ..handler(&[ENTRY]) };
    let with_rules = |rules: Vec<RbacRule>| Installation {
        controllers: &[CONTROLLER],
        rules,
        webhooks: Some(Webhooks::of("waiter", "restaurant", std::slice::from_ref(&careful))),
        ..waiter()
    };
    let once = with_rules(Vec::new());
    let found = granted(&once, "ClusterRole");
    for expected in ["/configmaps : list,watch", "example.com/cups : list", EVENTS] {
        assert!(found.iter().any(|rule| rule == expected), "{expected} in {found:?}");
    }
    let mut declared = webhook_server(&["waiter-certs"], &["waiter"], &["waiter"]).to_vec();
    declared.push(rbac::EVENTS);
    declared.extend(rbac::leader_election(&["waiter"]));
    let twice = with_rules(declared);
    for kind in ["ClusterRole", "Role"] {
        assert_eq!(granted(&twice, kind), granted(&once, kind));
    }
}

#[test]
fn variables_name_the_objects_of_the_server_unless_the_program_knows_them() {
    let named = |installation: &Installation| {
        let objects = install(installation);
        let variables = container(&objects)["env"].as_array().unwrap().clone();
        variables.iter().any(|variable| *variable == json!({"name": "SECRET_NAME", "value": "keys"}))
    };
    let mut installation = served();
    installation.webhooks.as_mut().unwrap().secret = "keys".to_owned();
    assert!(named(&installation));
    installation.webhooks.as_mut().unwrap().named_by_variables = false;
    assert!(!named(&installation));
}
