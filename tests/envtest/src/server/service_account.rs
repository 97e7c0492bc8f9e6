//! The account that a new pod runs as, and how its containers come to the account's token: the admission plugin
//! ServiceAccount of kube-apiserver. A server does so after [`ApiServer::admit_service_accounts`].

use serde_json::{Value, json};

use super::{
    ApiServer,
    pod_references::{Referred, is_mirror, refers_to},
    subject,
    write::Write,
};
use crate::{environment, metadata, status::ApiError};

/// The account of pods that name none.
const DEFAULT: &str = "default";
/// What names of volumes with the token begin with.
const VOLUME_PREFIX: &str = "kube-api-access-";
/// Where programs look for the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Seconds after which a token is renewed; those who do not read it again have a year.
const TOKEN_SECONDS: u32 = 3607;
/// An account whose pods may mount the Secrets alone that it lists.
const ENFORCES_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

impl ApiServer {
    /// Gives new pods an account and its token from now on; the account must exist.
    pub fn admit_service_accounts(&mut self) {
        self.admits_service_accounts = true;
    }

    /// Sets the account of a new pod, its token and its Secrets for registries.
    pub(super) fn admit_service_account(&mut self, write: &mut Write) -> Result<(), ApiError> {
        if !self.admits_service_accounts {
            return Ok(());
        }
        if is_mirror(&write.object) {
            return check_mirror(&write.object).map_err(|why| forbidden(write, why));
        }
        let spec = &mut write.object["spec"];
        let name = match spec["serviceAccountName"].as_str().unwrap_or_default() {
            "" => DEFAULT,
            name => name,
        }
        .to_owned();
        // The field's old name says the same.
        spec["serviceAccountName"] = json!(name);
        spec["serviceAccount"] = json!(name);
        let namespace = write.target.namespace.clone();
        let accounts = self.registry.any_version("", "serviceaccounts").ok_or_else(ApiError::no_such_resource)?;
        let Some(account) = self.object(accounts, &namespace, &name) else {
            let why = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
            return Err(forbidden(write, &why));
        };
        // What the pod says counts more than what the account says.
        let automount = [&write.object["spec"], &account]
            .into_iter()
            .find_map(|from| from["automountServiceAccountToken"].as_bool());
        if automount.unwrap_or(true) {
            let suffix = environment::name_suffix(self.environment.as_mut());
            mount_token(&mut write.object["spec"], &suffix);
        }
        let spec = &mut write.object["spec"];
        if spec["imagePullSecrets"].as_array().is_none_or(Vec::is_empty)
            && let Some(secrets) = account["imagePullSecrets"].as_array().filter(|secrets| !secrets.is_empty())
        {
            spec["imagePullSecrets"] = secrets.iter().map(|secret| json!({"name": secret["name"]})).collect();
        }
        let enforces = account["metadata"]["annotations"][ENFORCES_SECRETS].as_str();
        if matches!(enforces, Some("1" | "t" | "T" | "true" | "TRUE" | "True")) {
            check_secrets(&write.object["spec"], &account).map_err(|why| forbidden(write, &why))?;
        }
        Ok(())
    }
}

fn forbidden(write: &Write, why: &str) -> ApiError {
    ApiError::forbidden(subject(&write.definition, &write.target.name), why)
}

/// A kubelet makes up mirror pods: they give no access to an account.
fn check_mirror(pod: &Value) -> Result<(), &'static str> {
    if pod["spec"]["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty()) {
        return Err("a mirror pod may not reference service accounts");
    }
    if refers_to(pod, Referred::Secret, None) {
        return Err("a mirror pod may not reference secrets");
    }
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let mut sources = volumes.flat_map(|volume| volume["projected"]["sources"].as_array().into_iter().flatten());
    if sources.any(|source| source["serviceAccountToken"].is_object()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// Mounts a volume with the token wherever nothing is mounted in its place.
fn mount_token(spec: &mut Value, suffix: &str) {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let known = volumes.filter_map(|volume| volume["name"].as_str()).find(|name| name.starts_with(VOLUME_PREFIX));
    let known = known.map(str::to_owned);
    let name = known.clone().unwrap_or_else(|| format!("{VOLUME_PREFIX}{suffix}"));
    let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            container["volumeMounts"] = mounts.into_iter().chain([mount.clone()]).collect();
            is_needed = true;
        }
    }
    if known.is_none() && is_needed {
        let mut volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
        volumes.push(token_volume(&name));
        spec["volumes"] = Value::Array(volumes);
    }
}

/// A volume with a token, the certificate of the server and the pod's namespace.
fn token_volume(name: &str) -> Value {
    let namespace = json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}})
}

/// The pod may use the Secrets alone that its account lists.
fn check_secrets(spec: &Value, account: &Value) -> Result<(), String> {
    let account_name = metadata::text(account, "name");
    let lists =
        |list: &str, name: &Value| account[list].as_array().into_iter().flatten().any(|secret| secret["name"] == *name);
    let items = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for volume in items(&spec["volumes"]) {
        let name = &volume["secret"]["secretName"];
        if volume["secret"].is_object() && !lists("secrets", name) {
            let name = text(name);
            return Err(format!(
                "volume with secret.secretName={name:?} is not allowed because service account {account_name} does not reference that secret"
            ));
        }
    }
    for (list, kind) in [("initContainers", "init container"), ("containers", "container")] {
        for container in items(&spec[list]) {
            let container_name = text(&container["name"]);
            for variable in items(&container["env"]) {
                let reference = &variable["valueFrom"]["secretKeyRef"];
                if reference.is_object() && !lists("secrets", &reference["name"]) {
                    let (name, variable) = (text(&reference["name"]), text(&variable["name"]));
                    return Err(format!(
                        "{kind} {container_name} with envVar {variable} referencing secret.secretName={name:?} is not allowed because service account {account_name} does not reference that secret"
                    ));
                }
            }
            for source in items(&container["envFrom"]) {
                let reference = &source["secretRef"];
                if reference.is_object() && !lists("secrets", &reference["name"]) {
                    let name = text(&reference["name"]);
                    return Err(format!(
                        "{kind} {container_name} with envFrom referencing secret.secretName={name:?} is not allowed because service account {account_name} does not reference that secret"
                    ));
                }
            }
        }
    }
    for (index, secret) in items(&spec["imagePullSecrets"]).iter().enumerate() {
        if !lists("imagePullSecrets", &secret["name"]) {
            let name = text(&secret["name"]);
            return Err(format!(
                "imagePullSecrets[{index}].name={name:?} is not allowed because service account {account_name} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::{environment::SeededEnvironment, kinds, request::ApiRequest, server::Outcome, store::HistoryLimits};

    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

    fn core() -> ApiServer {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        core.maintain_default_objects("PEM");
        core.admit_service_accounts();
        core
    }

    fn create(core: &mut ApiServer, path: &str, object: &Value) -> (u16, Value) {
        match core.handle(&ApiRequest::json(Method::POST, path, object)) {
            Outcome::Done(answer) => (answer.code, serde_json::from_slice(&answer.body).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    fn pod(core: &mut ApiServer, spec: &Value) -> (u16, Value) {
        let mut object = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        create(core, "/api/v1/namespaces/default/pods?dryRun=All", &object)
    }

    fn refused(core: &mut ApiServer, spec: &Value) -> String {
        let (code, status) = pod(core, spec);
        assert_eq!(code, 403, "{status}");
        status["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_pod_runs_as_the_default_account_with_a_token_that_the_kubelet_projects() {
        let mut core = core();
        let (code, pod) = pod(&mut core, &json!({}));
        assert_eq!(code, 201, "{pod}");
        let spec = &pod["spec"];
        assert_eq!((&spec["serviceAccountName"], &spec["serviceAccount"]), (&json!("default"), &json!("default")));
        let name = spec["volumes"][0]["name"].as_str().unwrap();
        assert!(name.starts_with(VOLUME_PREFIX) && name.len() == VOLUME_PREFIX.len() + 5, "{name}");
        let mount = &spec["containers"][0]["volumeMounts"][0];
        assert_eq!(
            (&mount["name"], &mount["mountPath"], &mount["readOnly"]),
            (&json!(name), &json!(MOUNT_PATH), &json!(true))
        );
        let projected = &spec["volumes"][0]["projected"];
        assert_eq!(projected["defaultMode"], 420);
        assert_eq!(projected["sources"][0]["serviceAccountToken"], json!({"expirationSeconds": 3607, "path": "token"}));
    }

    #[test]
    fn the_pod_and_then_its_account_say_whether_it_gets_a_token() {
        let mut core = core();
        let account = json!({"metadata": {"name": "quiet"}, "automountServiceAccountToken": false,
            "imagePullSecrets": [{"name": "registry"}]});
        assert_eq!(create(&mut core, ACCOUNTS, &account).0, 201);
        let has_token = |core: &mut ApiServer, spec: Value| {
            let (code, pod) = pod(core, &spec);
            assert_eq!(code, 201, "{pod}");
            (pod["spec"]["volumes"].is_array(), pod["spec"]["imagePullSecrets"].clone())
        };
        let registry = json!([{"name": "registry"}]);
        assert_eq!(has_token(&mut core, json!({"serviceAccountName": "quiet"})), (false, registry.clone()));
        let wanted = json!({"serviceAccountName": "quiet", "automountServiceAccountToken": true, "imagePullSecrets": [{"name": "own"}]});
        assert_eq!(has_token(&mut core, wanted), (true, json!([{"name": "own"}])));
        assert_eq!(has_token(&mut core, json!({"automountServiceAccountToken": false})), (false, Value::Null));
        let volumes = json!([{"name": "own", "emptyDir": {}}]);
        let mounted = json!([{"name": "c", "image": "i", "volumeMounts": [{"name": "own", "mountPath": MOUNT_PATH}]}]);
        let (_, pod) = pod(&mut core, &json!({"volumes": volumes, "containers": mounted}));
        assert_eq!(pod["spec"]["volumes"].as_array().unwrap().len(), 1, "something else is mounted there");
    }

    #[test]
    fn an_account_that_is_not_there_or_lists_its_secrets_refuses_a_pod() {
        let mut core = core();
        let why =
            r#"pods "p" is forbidden: error looking up service account default/none: serviceaccount "none" not found"#;
        assert_eq!(refused(&mut core, &json!({"serviceAccountName": "none"})), why);
        let account = json!({"metadata": {"name": "strict", "annotations": {ENFORCES_SECRETS: "true"}}, "secrets": [{"name": "mine"}]});
        assert_eq!(create(&mut core, ACCOUNTS, &account).0, 201);
        let with = |secret: &str| json!({"serviceAccountName": "strict", "volumes": [{"name": "v", "secret": {"secretName": secret}}]});
        assert_eq!(pod(&mut core, &with("mine")).0, 201);
        let why = refused(&mut core, &with("foreign"));
        assert!(why.ends_with(r#"volume with secret.secretName="foreign" is not allowed because service account strict does not reference that secret"#), "{why}");
    }

    #[test]
    fn a_mirror_pod_stays_as_its_kubelet_has_made_it() {
        let mut core = core();
        let mut mirror = json!({
            "metadata": {"name": "m", "annotations": {"kubernetes.io/config.mirror": "h"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        });
        let (code, pod) = create(&mut core, "/api/v1/namespaces/default/pods?dryRun=All", &mirror);
        assert_eq!(
            (code, &pod["spec"]["serviceAccountName"], &pod["spec"]["volumes"]),
            (201, &Value::Null, &Value::Null)
        );
        mirror["spec"]["serviceAccountName"] = json!("default");
        let (code, status) = create(&mut core, "/api/v1/namespaces/default/pods", &mirror);
        assert_eq!(code, 403);
        assert!(status["message"].as_str().unwrap().ends_with("a mirror pod may not reference service accounts"));
    }

    #[test]
    fn without_the_switch_a_pod_stays_as_it_was_sent() {
        let mut core = core();
        core.admits_service_accounts = false;
        let (code, pod) = pod(&mut core, &json!({"serviceAccountName": "none"}));
        assert_eq!((code, &pod["spec"]["volumes"]), (201, &Value::Null));
    }
}
