//! Admission rules as a ValidatingAdmissionPolicy: a real server enforces what the webhook would refuse.

use koord_resource::{
    declare::Profile,
    document::{custom_resource_definition, validating_admission_policy},
};
use postgres_operator::DATABASE;

use crate::suite::on_every_server;

#[test]
fn a_policy_made_from_the_type_is_enforced_by_the_real_server_and_kept_by_ours() {
    on_every_server(|scene| {
        if !scene.is_since(30, "ValidatingAdmissionPolicy in v1") {
            return;
        }
        scene.accepts(&custom_resource_definition(&DATABASE[..1], Profile::Compatible).to_string());
        scene.says(&["wait", "--for=condition=Established", "crd/databases.db.example.com"]);
        for document in validating_admission_policy(&DATABASE[0]).unwrap() {
            scene.accepts(&document.to_string());
        }
        let manifest =
            "apiVersion: db.example.com/v1\nkind: Database\nmetadata: {name: d}\nspec: {release: 16, storage: 1Gi}\n";
        scene.comes_true("databases are served", || scene.run(&["apply", "-f", "-"], Some(manifest)).code == 0);
        let grow = |more: &[&str]| {
            let patch = ["patch", "database", "d", "--type=merge", "-p", r#"{"spec":{"storage":"2Gi"}}"#];
            scene.run(&[&patch, more].concat(), None)
        };
        if scene.is_real() {
            let message = "ValidatingAdmissionPolicy 'databases.db.example.com' with binding \
                           'databases.db.example.com' denied request: spec.storage: field is immutable";
            scene.comes_true("the policy is enforced", || grow(&["--dry-run=server"]).stderr.contains(message));
            scene.says(&["patch", "database", "d", "--type=merge", "-p", r#"{"spec":{"release":17}}"#]);
        } else {
            assert_eq!(grow(&[]).code, 0, "policies are stored and not enforced");
        }
        scene.says(&[
            "delete",
            "validatingadmissionpolicy,validatingadmissionpolicybinding",
            "databases.db.example.com",
        ]);
        scene.says(&["delete", "crd", "databases.db.example.com"]);
    });
}
