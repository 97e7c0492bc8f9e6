//! What a user lacks who is refused with 403: the server's own sentence, taken apart into the rule that would grant it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::Result;

/// Rules that a user lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// As the server names who asks.
    user: String,
    /// Verbs by namespace (empty for all of them), API group and resource.
    rules: BTreeMap<(String, String, String), BTreeSet<String>>,
}

impl Missing {
    /// What a refusal says; none when it says something else.
    pub fn of(error: &kube::Error) -> Option<Self> {
        let kube::Error::Api(status) = error else { return None };
        if status.code != 403 {
            return None;
        }
        // `nodes is forbidden: User "x" cannot list resource "nodes" in API group "" at the cluster scope`
        let (_, rest) = status.message.split_once("User \"")?;
        let (user, rest) = rest.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let namespace = rest.strip_prefix(" in the namespace \"").and_then(|rest| rest.split_once('"'));
        let place = [namespace.map_or("", |(namespace, _)| namespace), group, resource].map(str::to_owned);
        let mut missing = Self { user: user.to_owned(), ..Self::default() };
        missing.rules.insert(place.into(), BTreeSet::from([verb.to_owned()]));
        Some(missing)
    }

    /// Takes a refusal that says what is missing, so that the rest can still be asked for; any other error comes back.
    pub fn note(&mut self, error: anyhow::Error) -> Result<()> {
        let Some(more) = error.downcast_ref().and_then(Self::of) else { return Err(error) };
        self.user = more.user;
        for (place, verbs) in more.rules {
            self.rules.entry(place).or_default().extend(verbs);
        }
        Ok(())
    }

    /// An error that names all of them, when there are any.
    pub fn none(self) -> Result<()> {
        if self.rules.is_empty() { Ok(()) } else { Err(self.into()) }
    }

    /// The rules, as they would stand in roles.
    pub fn rules(&self) -> String {
        let rules = self.rules.iter().map(|((namespace, group, resource), verbs)| {
            let verbs: Vec<String> = verbs.iter().map(|verb| format!("{verb:?}")).collect();
            let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
            format!("{{apiGroups: [{group:?}], resources: [{resource:?}], verbs: [{}]}}{place}", verbs.join(", "))
        });
        rules.collect::<Vec<_>>().join(", ")
    }
}

impl std::error::Error for Missing {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, rules) = (&self.user, self.rules());
        write!(
            f,
            "{user} may not ask for this: a role that grants it needs {rules}; or ask as another user (--context, --kubeconfig)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(kube::core::Status::failure(message, "Forbidden").with_code(code).boxed())
    }

    #[test]
    fn refusals_add_up_to_the_rules_that_are_missing() {
        let mut missing = Missing::default();
        for message in [
            r#"nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope"#,
            r#"nodes "n1" is forbidden: User "eve" cannot get resource "nodes" in API group "" at the cluster scope: RBAC: clusterrole "x" not found"#,
            r#"configmaps "c" is forbidden: User "eve" cannot get resource "configmaps" in API group "" in the namespace "koordinator-system""#,
            r#"x is forbidden: User "eve" cannot patch resource "nodes/status" in API group "a.b" at the cluster scope"#,
        ] {
            missing.note(refused(403, message).into()).unwrap();
        }
        let expected = concat!(
            r#"eve may not ask for this: a role that grants it needs {apiGroups: [""], resources: ["nodes"], verbs: ["get", "list"]}, "#,
            r#"{apiGroups: ["a.b"], resources: ["nodes/status"], verbs: ["patch"]}, "#,
            r#"{apiGroups: [""], resources: ["configmaps"], verbs: ["get"]} in namespace koordinator-system; "#,
            "or ask as another user (--context, --kubeconfig)",
        );
        assert_eq!(missing.none().unwrap_err().to_string(), expected);
        assert!(Missing::default().none().is_ok());
    }

    #[test]
    fn other_errors_come_back() {
        let sentence = r#"User "eve" cannot list resource "nodes" in API group "" at the cluster scope"#;
        let mut missing = Missing::default();
        for error in [refused(404, sentence), refused(403, "quota exceeded"), refused(403, "User \"eve\" cannot")] {
            assert!(missing.note(error.into()).is_err());
        }
        assert!(missing.none().is_ok());
    }
}
