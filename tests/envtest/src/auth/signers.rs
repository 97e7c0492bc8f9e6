//! Who may approve CertificateSigningRequests, and who may sign them: users with the verbs `approve` and `sign` on the signer.

use super::authorizer;
use super::rbac::Action;
use crate::request::User;
use crate::server::{ApiServer, Attributes};
use crate::status::{ApiError, Subject};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";

/// Whether the user may store this approval, or this certificate; other writes are not checked here.
pub(super) fn check(core: &ApiServer, about: &Attributes<'_>) -> Result<(), ApiError> {
    let Some(old) = about.old_object.filter(|_| about.definition.group == GROUP && about.definition.plural == PLURAL)
    else {
        return Ok(());
    };
    let changes = |field: &str| old["status"][field] != about.object["status"][field];
    let verb = match about.subresource {
        "approval" => "approve",
        "status" if changes("certificate") || changes("conditions") => "sign",
        _ => return Ok(()),
    };
    // The signer of the stored object counts: a write cannot change it.
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    if may(core, about.user, verb, signer) {
        return Ok(());
    }
    let subject = Subject { group: GROUP, resource: PLURAL, name: about.name };
    Err(ApiError::forbidden(subject, &format!("user not permitted to {verb} requests with signerName {signer:?}")))
}

/// Whether the user has the verb on the signer, or on all signers of its domain.
fn may(core: &ApiServer, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let action = Action {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Action::default()
        };
        authorizer::decide(core, user, &action).allowed
    })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        environment::SeededEnvironment,
        kinds,
        request::ApiRequest,
        server::{Operation, Outcome},
        store::HistoryLimits,
    };

    fn create(core: &mut ApiServer, path: &str, object: &Value) {
        let Outcome::Done(answer) = core.handle(&ApiRequest::new(Method::POST, path, object.to_string())) else {
            panic!("no webhook is configured")
        };
        assert_eq!(answer.code, 201, "{}", String::from_utf8_lossy(&answer.body));
    }

    #[test]
    fn an_approval_needs_the_verb_on_the_signer_or_its_domain() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        let roles = "/apis/rbac.authorization.k8s.io/v1";
        for (user, signer) in [("one", "example.com/a"), ("domain", "example.com/*"), ("other", "example.org/*")] {
            let rule = json!({"apiGroups": [GROUP], "resources": ["signers"], "verbs": ["approve"], "resourceNames": [signer]});
            create(&mut core, &format!("{roles}/clusterroles"), &json!({"metadata": {"name": user}, "rules": [rule]}));
            let binding = json!({"metadata": {"name": user}, "subjects": [{"kind": "User", "name": user}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}});
            create(&mut core, &format!("{roles}/clusterrolebindings"), &binding);
        }
        let definition = core.registry.get(GROUP, "v1", PLURAL).unwrap().clone();
        let old = json!({"spec": {"signerName": "example.com/a"}, "status": {}});
        let new = json!({"spec": {"signerName": "example.com/a"}, "status": {"certificate": "eA=="}});
        let checked = |name: &str, subresource: &str| {
            let user = User { name: name.to_owned(), ..User::default() };
            let about = Attributes {
                operation: Operation::Update,
                definition: &definition,
                subresource,
                namespace: "",
                name: "csr",
                object: &new,
                old_object: Some(&old),
                dry_run: false,
                user: &user,
                options: &Value::Null,
            };
            check(&core, &about).map_err(|error| error.message().to_owned())
        };
        assert_eq!(checked("one", "approval"), Ok(()));
        assert_eq!(checked("domain", "approval"), Ok(()));
        assert!(
            checked("other", "approval")
                .unwrap_err()
                .ends_with(r#"user not permitted to approve requests with signerName "example.com/a""#)
        );
        assert!(checked("one", "status").unwrap_err().contains("not permitted to sign"));
        assert_eq!(checked("one", ""), Ok(()));
    }
}
