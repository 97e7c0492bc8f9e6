//! What a person does about a request that the API server refuses for want of a definition, a namespace or a permission.

use koord_resource::{controller::ResourceKind, rbac::RbacRule};

/// A request that was refused.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// The kind that it was about.
    pub kind: ResourceKind,
    /// The part of the object; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace in which a permission is enough; empty for all of them.
    pub namespace: &'a str,
    /// What was to be done, as RBAC calls it.
    pub verbs: &'a [&'a str],
    /// The HTTP status of the answer.
    pub code: u16,
    /// What the API server said.
    pub message: &'a str,
}

/// The refusal that a task meets again and again, so that it is reported once.
#[derive(Debug, Default)]
pub struct Obstacle(Option<Met>);

#[derive(Debug)]
struct Met {
    remedy: String,
    reason: String,
    code: u16,
}

impl Obstacle {
    /// A request was refused. Gives the reason with what helps, where something helps and it is not known already.
    pub fn met(&mut self, refused: Refused<'_>) -> Option<&str> {
        let remedy = refused.remedy()?;
        // What cannot be watched cannot be listed either: one remedy is enough.
        let is_known = self.0.as_ref().is_some_and(|met| met.remedy == remedy);
        let reason = format!("{}; {remedy}", refused.message);
        let met = self.0.insert(Met { remedy, reason, code: refused.code });
        (!is_known).then_some(&*met.reason)
    }

    /// The request succeeded. Says whether it was refused before.
    pub fn gone(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// The reason with what helps; none while nothing is refused.
    pub fn reason(&self) -> Option<&str> {
        self.0.as_ref().map(|met| &*met.reason)
    }

    /// Whether the API server does not serve what is asked for.
    pub fn is_absence(&self) -> bool {
        self.0.as_ref().is_some_and(|met| met.code == 404)
    }

    /// Whether the API server does not permit what is asked for.
    pub fn is_forbidden(&self) -> bool {
        self.0.as_ref().is_some_and(|met| met.code == 403)
    }
}

impl Refused<'_> {
    /// What helps; none where the refusal is about something else.
    pub fn remedy(&self) -> Option<String> {
        match self.code {
            404 if self.message.starts_with("namespaces ") => {
                let name = self.message.split('"').nth(1)?;
                Some(format!("create it: kubectl create namespace {name}"))
            }
            404 => Some(self.definition()),
            401 => Some(
                "the API server does not know who this is: look at the kubeconfig or the ServiceAccount".to_owned(),
            ),
            403 if self.message.contains("is being terminated") || self.message.contains("denied the request") => None,
            403 if self.is_custom() => {
                let ResourceKind { group, plural, .. } = self.kind;
                Some(format!("allow it, once the CustomResourceDefinition {plural}.{group} is there: {}", self.grant()))
            }
            403 => Some(format!("allow it: {}", self.grant())),
            500 if self.message.contains("failed calling webhook") => Some(
                "start what serves that webhook, which `kubectl get validatingwebhookconfigurations,\
                 mutatingwebhookconfigurations -o yaml` tells"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// The permission that is missing, as `patch databases.db.example.com/status`; none where the refusal is about something else.
    pub fn permission(&self) -> Option<String> {
        let is_missing = self.code == 403 && self.remedy().is_some();
        is_missing.then(|| format!("{} {}", self.verbs.join(","), self.resource()))
    }

    /// Whether one of these rules permits it.
    pub fn is_permitted_by(&self, rules: &[RbacRule]) -> bool {
        let ResourceKind { group, plural, .. } = self.kind;
        let resource = match self.subresource {
            "" => plural.to_owned(),
            subresource => format!("{plural}/{subresource}"),
        };
        let has = |words: &[&str], word: &str| words.contains(&word) || words.contains(&"*");
        self.verbs.iter().all(|verb| {
            rules
                .iter()
                .any(|rule| has(&[rule.group], group) && has(&[rule.resource], &resource) && has(rule.verbs, verb))
        })
    }

    /// Whether a definition makes the kind. Groups of Kubernetes itself have no dot, or end in `.k8s.io`.
    fn is_custom(&self) -> bool {
        let group = self.kind.group;
        group.contains('.') && (!group.ends_with(".k8s.io") || group.ends_with(".sigs.k8s.io"))
    }

    fn definition(&self) -> String {
        let ResourceKind { group, version, plural, .. } = self.kind;
        if !self.is_custom() {
            return format!(
                "this API server does not serve {plural} of {}: `kubectl api-resources` tells what it serves",
                self.kind.api_version()
            );
        }
        if !self.subresource.is_empty() && self.message.contains("could not find the requested resource") {
            return format!(
                "the CustomResourceDefinition {plural}.{group} must have the subresource {}",
                self.subresource
            );
        }
        format!(
            "apply the CustomResourceDefinition {plural}.{group} with version {version} from the program's manifests, and look \
             with `kubectl get crd {plural}.{group}`"
        )
    }

    /// The commands that make a role and bind it to the user whom the API server named.
    fn grant(&self) -> String {
        let (name, resource) = (format!("{}-{}", self.verbs.join("-"), self.kind.plural), self.resource());
        let verbs = self.verbs.join(",");
        let (cluster, of) = match self.namespace {
            namespace if self.kind.namespaced && !namespace.is_empty() => ("", format!("-n {namespace} ")),
            _ => ("cluster", String::new()),
        };
        let role = format!("kubectl {of}create {cluster}role {name} --verb={verbs} --resource={resource}");
        let to = match self.user() {
            Some(user) => match user.strip_prefix("system:serviceaccount:") {
                Some(account) => format!("--serviceaccount={account}"),
                None => format!("--user={user}"),
            },
            None => "--user=…".to_owned(),
        };
        format!("{role} && kubectl {of}create {cluster}rolebinding {name} --{cluster}role={name} {to}")
    }

    fn resource(&self) -> String {
        let ResourceKind { group, plural, .. } = self.kind;
        let dot = if group.is_empty() { "" } else { "." };
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{plural}{dot}{group}{slash}{}", self.subresource)
    }

    /// `pods is forbidden: User "system:serviceaccount:ns:name" cannot list resource …`
    fn user(&self) -> Option<&str> {
        let (_, rest) = self.message.split_once("User \"")?;
        let (user, _) = rest.split_once("\" cannot")?;
        // What a shell would read otherwise is left to the reader.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:@".contains(letter);
        user.chars().all(is_plain).then_some(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: ResourceKind = ResourceKind {
        group: "db.example.com",
        version: "v1",
        kind: "Database",
        plural: "databases",
        namespaced: true,
    };

    fn remedy(kind: ResourceKind, (subresource, namespace): (&str, &str), code: u16, message: &str) -> Option<String> {
        Refused { kind, subresource, namespace, verbs: &["list", "watch"], code, message }.remedy()
    }

    #[test]
    fn each_refusal_names_the_command_that_helps() {
        let forbidden = r#"databases is forbidden: User "system:serviceaccount:ops:pg" cannot list resource"#;
        assert_eq!(
            remedy(DATABASE, ("", ""), 403, forbidden).unwrap(),
            "allow it, once the CustomResourceDefinition databases.db.example.com is there: \
             kubectl create clusterrole list-watch-databases --verb=list,watch --resource=databases.db.example.com \
             && kubectl create clusterrolebinding list-watch-databases --clusterrole=list-watch-databases \
             --serviceaccount=ops:pg"
        );
        let forbidden = r#"pods is forbidden: User "jane" cannot list resource "pods/status""#;
        assert_eq!(
            remedy(ResourceKind::POD, ("status", "shop"), 403, forbidden).unwrap(),
            "allow it: kubectl -n shop create role list-watch-pods --verb=list,watch --resource=pods/status \
             && kubectl -n shop create rolebinding list-watch-pods --role=list-watch-pods --user=jane"
        );
        let strange = r#"nodes is forbidden: User "x; rm -rf /" cannot list resource"#;
        assert!(remedy(ResourceKind::NODE, ("", "shop"), 403, strange).unwrap().ends_with("--user=…"));
        let missing = remedy(DATABASE, ("", "shop"), 404, "404 page not found").unwrap();
        assert!(
            missing.starts_with("apply the CustomResourceDefinition databases.db.example.com with version v1"),
            "{missing}"
        );
        let namespace = remedy(DATABASE, ("", "shop"), 404, r#"namespaces "shop" not found"#).unwrap();
        assert_eq!(namespace, "create it: kubectl create namespace shop");
        let built_in = remedy(ResourceKind::LEASE, ("", ""), 404, "404 page not found").unwrap();
        assert!(built_in.starts_with("this API server does not serve leases of coordination.k8s.io/v1"), "{built_in}");
        let webhook = r#"Internal error occurred: failed calling webhook "v.example.com": connection refused"#;
        assert!(remedy(DATABASE, ("", ""), 500, webhook).unwrap().starts_with("start what serves that webhook"));
    }

    #[test]
    fn a_missing_permission_is_compared_with_what_is_declared() {
        let message = "databases is forbidden: User \"pg\" cannot patch resource";
        let refused = |code, subresource| Refused {
            kind: DATABASE,
            subresource,
            namespace: "",
            verbs: &["patch"],
            code,
            message,
        };
        assert_eq!(refused(403, "status").permission().unwrap(), "patch databases.db.example.com/status");
        assert_eq!((refused(409, "").permission(), refused(404, "").permission()), (None, None));
        let rules = [DATABASE.rule(&["list", "patch"])];
        assert!(refused(403, "").is_permitted_by(&rules) && !refused(403, "status").is_permitted_by(&rules));
        assert!(!Refused { verbs: &["create", "patch"], ..refused(403, "") }.is_permitted_by(&rules));
    }

    #[test]
    fn a_refusal_is_reported_once_until_it_is_over() {
        let refused =
            |message| Refused { kind: DATABASE, subresource: "", namespace: "", verbs: &["get"], code: 403, message };
        let mut obstacle = Obstacle::default();
        assert!(!obstacle.gone());
        assert!(obstacle.met(refused("no watch")).is_some_and(|reason| reason.starts_with("no watch; allow it")));
        assert_eq!(obstacle.met(refused("no list")), None, "the same remedy");
        assert!(obstacle.reason().is_some_and(|reason| reason.starts_with("no list; ")), "the last reason is shown");
        assert!(!obstacle.is_absence());
        assert!(obstacle.met(Refused { code: 404, ..refused("not found") }).is_some() && obstacle.is_absence());
        assert!(obstacle.gone() && obstacle.reason().is_none());
        assert!(obstacle.met(refused("no list")).is_some());
    }

    #[test]
    fn a_denial_of_the_object_itself_is_not_for_want_of_a_permission() {
        let denial = r#"admission webhook "v.example.com" denied the request: no"#;
        assert_eq!(remedy(DATABASE, ("", ""), 403, denial), None);
        assert_eq!(remedy(DATABASE, ("", ""), 409, "conflict"), None);
    }
}
