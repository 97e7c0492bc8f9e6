//! The program asks for what its roles grant, no more and no less.

use std::collections::BTreeSet;

use envtest::auth::recorder::{Recorder, Right};
use koord_descheduler::{rbac_rules, rules_by_scope};
use koord_resource::{document::roles, rbac::RbacRule};
use koord_testing::run;
use serde_json::{Value, json};

use crate::{
    occasions::{Occasions, configuration},
    process::leads_and_answers_at_its_secure_port,
};

/// The user that the program is.
pub(crate) const USER: &str = "descheduler";
pub(crate) const NAMESPACE: &str = "koordinator-system";

/// Rights that may stay unused here, each with the reason why they are needed all the same: resource (none for every one), verb.
const NEEDED_AT_TIMES: [(Option<&str>, &str, &str); 2] = [
    (None, "list", "a server that cannot stream the first look at a kind is asked for a list"),
    (Some("events"), "patch", "an event that occurs again is counted in the one that was recorded"),
];

fn is_explained(Right { resource, verb, .. }: &Right) -> bool {
    NEEDED_AT_TIMES.iter().any(|(of, known, _)| known == verb && of.is_none_or(|of| of == resource))
}

/// Nothing was refused, and everything that is granted was used.
fn is_exactly(granted: BTreeSet<Right>, recorder: &Recorder) {
    let asked = recorder.asked_by(USER);
    let refused: Vec<_> = asked.iter().filter(|asked| !asked.allowed).collect();
    assert!(refused.is_empty(), "it asks for what it may not: {refused:#?}");
    let is_used = |right: &Right| asked.iter().any(|asked| right.is_used_by(asked));
    let unused: Vec<_> = granted.into_iter().filter(|right| !is_used(right) && !is_explained(right)).collect();
    assert!(unused.is_empty(), "it may do what it never does: {unused:#?}");
}

/// The roles that an installation creates.
pub(crate) fn installed(rules: &[RbacRule]) -> Vec<Value> {
    roles("koord-descheduler-role", rules, NAMESPACE)
}

#[test]
fn what_the_roles_grant_is_what_the_program_asks_for() {
    let recorder = Recorder::default();
    run(async {
        let occasions = Occasions::with_roles(installed(&rbac_rules())).await?;
        occasions.play(&recorder, configuration(&json!({}), &["CustomPriority", "ScaleDownBinPack"])).await
    })
    .unwrap();
    leads_and_answers_at_its_secure_port(&recorder);
    is_exactly(Right::of_rules(&rbac_rules(), NAMESPACE), &recorder);
}

#[test]
fn where_the_configuration_selects_namespaces_rights_on_single_pods_in_these_are_enough() {
    let recorder = Recorder::default();
    let (elsewhere, of_pods) = rules_by_scope();
    run(async {
        let in_namespace =
            roles("koord-descheduler-evictions-role", &of_pods, NAMESPACE).into_iter().map(|mut role| {
                role["kind"] = json!("Role");
                role["metadata"]["namespace"] = json!("default");
                role
            });
        let occasions = Occasions::with_roles(installed(&elsewhere).into_iter().chain(in_namespace).collect()).await?;
        occasions.add_namespace_with_pods("other").await?;
        // ScaleDownBinPack ranks the pods of all namespaces, and writes it to them.
        occasions.play(&recorder, configuration(&json!({"include": ["default"]}), &["CustomPriority"])).await
    })
    .unwrap();
    let in_namespace = |right| Right { namespace: "default".to_owned(), ..right };
    is_exactly(Right::of_rules(&of_pods, NAMESPACE).into_iter().map(in_namespace).collect(), &recorder);
}
