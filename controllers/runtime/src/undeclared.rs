//! What a controller writes and its attribute does not say, so that its role lacks the permission.

use koord_resource::controller::ControllerSpec;

use crate::{
    error::ReconcileError,
    refusal::Refused,
    write::{Action, Write},
};

/// The error of a write that was refused for want of a permission, with what to write where. Left as it is where the attribute says it: then the
/// role in the cluster is another one.
pub(crate) fn explained(error: ReconcileError, spec: &ControllerSpec, write: &Write) -> ReconcileError {
    let refused = write.refused(403, "");
    match &error.lacks {
        Some(missing) if !refused.is_permitted_by(&spec.rbac_rules()) => {
            let message = format!("{}; {}", missing.refusal, advice(spec, write, &refused));
            ReconcileError { message, ..error }
        }
        _ => error,
    }
}

/// The words that the attribute of the controller needs.
fn advice(spec: &ControllerSpec, write: &Write, refused: &Refused<'_>) -> String {
    let relation = if write.kind == spec.for_kind {
        Some("for")
    } else if spec.owns.contains(&write.kind) {
        Some("owns")
    } else if spec.watches.contains(&write.kind) {
        Some("watches")
    } else {
        None
    };
    let words = match (&write.action, refused.subresource) {
        (Action::Patch { .. } | Action::StrategicPatch { .. }, "status") => Some("status"),
        (Action::Patch { patch, .. }, "") if is_of_finalizers(patch) => Some("finalizers"),
        (Action::Patch { .. } | Action::StrategicPatch { .. }, "") => Some("patch"),
        (Action::Apply { .. }, "") => Some("create, patch"),
        (Action::Create(_), _) => Some("create"),
        (Action::Delete(_), _) => Some("delete"),
        _ => None,
    };
    let (group, plural) = (write.kind.group, write.kind.plural);
    let said = if let (Some(relation), Some(words)) = (relation, words) {
        format!("`writes = [{words}]` in `{relation}(…)`, which names {plural},")
    } else {
        let resource = match refused.subresource {
            "" => plural.to_owned(),
            subresource => format!("{plural}/{subresource}"),
        };
        format!("`rbac(group = \"{group}\", resource = \"{resource}\", verbs = [{}])`", refused.verbs.join(", "))
    };
    format!(
        "the attribute of the controller {} does not say so: write {said} there, and apply the manifests of the program again",
        spec.name
    )
}

/// Whether a patch changes the finalizers alone, preconditions aside.
fn is_of_finalizers(patch: &serde_json::Value) -> bool {
    let metadata = patch.get("metadata").and_then(serde_json::Value::as_object);
    let is_alone = patch.as_object().is_some_and(|patch| patch.len() == 1);
    is_alone && metadata.is_some_and(|metadata| metadata.contains_key("finalizers"))
}

#[cfg(test)]
mod tests {
    use koord_resource::controller::{RateLimit, ResourceKind};
    use serde_json::json;

    use super::*;
    use crate::{key::ObjectKey, write::Answer};

    const DATABASE: ResourceKind = ResourceKind {
        group: "db.example.com",
        version: "v1",
        kind: "Database",
        plural: "databases",
        namespaced: true,
    };
    const SPEC: ControllerSpec = ControllerSpec {
        name: "database",
        for_kind: DATABASE,
        owns: &[],
        watches: &[ResourceKind::SECRET],
        concurrency: 1,
        rate_limit: RateLimit::DEFAULT,
        gate: None,
        rbac: &[],
    };

    fn said(kind: ResourceKind, action: Action, spec: &ControllerSpec) -> String {
        let write = Write { kind, key: ObjectKey::new("shop", "d"), action };
        let message = r#"databases is forbidden: User "pg" cannot patch resource"#;
        let answer = Answer { code: 403, body: json!({"message": message}).to_string(), ..Answer::default() };
        explained(write.judge(answer).unwrap_err(), spec, &write).message
    }

    #[test]
    fn the_attribute_is_named_with_the_words_that_it_lacks() {
        let patch = |subresource, patch| Action::Patch { subresource, patch };
        let status = said(DATABASE, patch("status", json!({"status": {}})), &SPEC);
        assert!(
            status.ends_with(
                "cannot patch resource; the attribute of the controller database does not say so: write `writes = [status]` in `for(…)`, which names databases, there, and apply the manifests of the program again"
            ),
            "{status}"
        );
        assert!(!status.contains("kubectl"), "{status}");
        let finalizers = said(DATABASE, patch("", json!({"metadata": {"finalizers": [], "uid": "u"}})), &SPEC);
        assert!(finalizers.contains("`writes = [finalizers]` in `for(…)`"), "{finalizers}");
        let secret = said(ResourceKind::SECRET, Action::Create(json!({})), &SPEC);
        assert!(secret.contains("`writes = [create]` in `watches(…)`"), "{secret}");
        let node = said(ResourceKind::NODE, patch("status", json!({})), &SPEC);
        assert!(node.contains(r#"`rbac(group = "", resource = "nodes/status", verbs = [patch])`"#), "{node}");
    }

    #[test]
    fn where_the_attribute_says_it_the_role_is_what_lacks() {
        const RULES: &[koord_resource::rbac::RbacRule] = &[DATABASE.rule(&["patch"])];
        let message = said(
            DATABASE,
            Action::Patch { subresource: "", patch: json!({"spec": {}}) },
            &ControllerSpec { rbac: RULES, ..SPEC },
        );
        assert!(
            message.contains("kubectl create clusterrole patch-databases")
                || message.contains("create role patch-databases"),
            "{message}"
        );
    }
}
