//! Requests for certificates: those of kubelets are approved, and approved ones are signed.
//!
//! In a real cluster the controllers `csrapproving` and `csrsigning` of kube-controller-manager do so. A server does after
//! [`ApiServer::maintain_certificates`].

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use http::Method;
use serde_json::{Value, json};

use super::ApiServer;
use crate::{
    environment, metadata, registry::ResourceDef, request::User, store::CollectionId, x509::CertificateRequest,
};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET_CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";
const NODES: &str = "system:nodes";

/// Signs certificates.
pub trait Signer: Send + Sync {
    /// A certificate, PEM, for these usages; it holds for so many seconds, or as long as any does.
    ///
    /// # Errors
    ///
    /// Says why there is none.
    fn sign(&self, request: &CertificateRequest, usages: &[&str], seconds: Option<i64>) -> Result<String, String>;
}

/// The kind of requests, and who signs them.
#[derive(Clone)]
pub(super) struct Certificates {
    requests: Arc<ResourceDef>,
    signer: Arc<dyn Signer>,
}

impl ApiServer {
    /// Approves kubelets' requests for certificates and has approved ones signed from now on.
    pub fn maintain_certificates(&mut self, signer: Arc<dyn Signer>) {
        let Some(requests) = self.registry.any_version(GROUP, PLURAL).cloned() else { return };
        self.follow_all(&requests);
        self.certificates = Some(Certificates { requests, signer });
        self.follow_changes();
    }

    /// Decides about changed requests.
    pub(super) fn reconcile_certificates(&mut self, changed: &[(CollectionId, String)]) {
        let Some(known) = self.certificates.clone() else { return };
        for (_, name) in changed.iter().filter(|(collection, _)| *collection == known.requests.collection) {
            let Some(object) = self.object(&known.requests, "", name) else { continue };
            let has = |type_: &str| {
                let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
                conditions.into_iter().any(|condition| condition["type"] == type_)
            };
            if object["status"]["certificate"].as_str().is_some_and(|certificate| !certificate.is_empty()) {
                continue;
            }
            match (has("Approved"), has("Denied"), has("Failed")) {
                (false, false, _) => self.approve(object),
                (true, _, false) => self.sign(known.signer.as_ref(), object),
                _ => {}
            }
        }
    }

    /// Approves the request of a kubelet that may have its certificate.
    fn approve(&mut self, object: Value) {
        let spec = &object["spec"];
        let Some(request) = read(spec).filter(|request| {
            spec["signerName"] == KUBELET_CLIENT_SIGNER && check_kubelet_client(request, &usages(spec)).is_ok()
        }) else {
            return;
        };
        let user = requester(spec);
        let is_own = user.name == request.subject.common_name;
        let may = |subresource: &str| {
            self.authorizer
                .as_ref()
                .is_some_and(|authorizer| authorizer.may_request_certificate(self, &user, subresource))
        };
        let message = if is_own && may("selfnodeclient") {
            "Auto approving self kubelet client certificate after SubjectAccessReview."
        } else if may("nodeclient") {
            "Auto approving kubelet client certificate after SubjectAccessReview."
        } else {
            return;
        };
        let condition = json!({"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message});
        self.put_condition(object, condition, "approval");
    }

    fn sign(&mut self, signer: &dyn Signer, mut object: Value) {
        let spec = &object["spec"];
        let Some(request) = read(spec) else { return };
        let usages = usages(spec);
        let verdict = match spec["signerName"].as_str().unwrap_or_default() {
            CLIENT_SIGNER => check_client(&usages),
            KUBELET_CLIENT_SIGNER => check_kubelet_client(&request, &usages),
            KUBELET_SERVING_SIGNER => check_kubelet_serving(&request, &usages),
            // Others sign it.
            _ => return,
        };
        if let Err(why) = verdict {
            let now = environment::time_text(self.environment.now());
            let condition = json!({"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
                "lastUpdateTime": now});
            return self.put_condition(object, condition, "status");
        }
        match signer.sign(&request, &usages, spec["expirationSeconds"].as_i64()) {
            Ok(certificate) => {
                object["status"]["certificate"] = json!(BASE64.encode(certificate));
                self.put_request(&object, "status");
            }
            Err(error) => tracing::debug!(%error, "a certificate could not be signed"),
        }
    }

    fn put_condition(&mut self, mut object: Value, condition: Value, subresource: &str) {
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.push(condition);
        object["status"]["conditions"] = Value::Array(conditions);
        self.put_request(&object, subresource);
    }

    fn put_request(&mut self, object: &Value, subresource: &str) {
        let name = metadata::text(object, "name");
        self.write_own(Method::PUT, &format!("/apis/{GROUP}/v1/{PLURAL}/{name}/{subresource}"), object);
    }
}

fn read(spec: &Value) -> Option<CertificateRequest> {
    let pem = BASE64.decode(spec["request"].as_str()?).ok()?;
    CertificateRequest::from_pem(&pem).ok()
}

fn usages(spec: &Value) -> Vec<&str> {
    spec["usages"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Who has asked.
fn requester(spec: &Value) -> User {
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text("username"),
        uid: text("uid"),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

fn check_client(usages: &[&str]) -> Result<(), String> {
    const ALLOWED: [&str; 3] = ["client auth", "digital signature", "key encipherment"];
    if let Some(other) = usages.iter().find(|usage| !ALLOWED.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if !usages.contains(&"client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(())
}

fn check_kubelet_client(request: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    check_organization(request)?;
    for (count, what) in
        [(request.dns_names, "DNS"), (request.emails, "Email"), (request.ip_addresses, "IP"), (request.uris, "URI")]
    {
        if count > 0 {
            return Err(format!("{what} subjectAltNames are not allowed"));
        }
    }
    check_name(request)?;
    check_usages(usages, "client auth")
}

fn check_kubelet_serving(request: &CertificateRequest, usages: &[&str]) -> Result<(), String> {
    check_organization(request)?;
    if request.dns_names == 0 && request.ip_addresses == 0 {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    for (count, what) in [(request.emails, "Email"), (request.uris, "URI")] {
        if count > 0 {
            return Err(format!("{what} subjectAltNames are not allowed"));
        }
    }
    check_usages(usages, "server auth")?;
    check_name(request)
}

fn check_organization(request: &CertificateRequest) -> Result<(), String> {
    if request.subject.organizations == [NODES] {
        return Ok(());
    }
    Err("subject organization is not system:nodes".to_owned())
}

fn check_name(request: &CertificateRequest) -> Result<(), String> {
    if request.subject.common_name.starts_with(User::NODE_PREFIX) {
        return Ok(());
    }
    Err("subject common name does not begin with system:node:".to_owned())
}

/// The usages must be these, where that of RSA keys may be missing.
fn check_usages(usages: &[&str], purpose: &str) -> Result<(), String> {
    let mut required = [purpose, "digital signature", "key encipherment"];
    required.sort_unstable();
    let has = |usage: &str| usages.contains(&usage);
    let is_all = usages.iter().all(|usage| required.contains(usage)) && has(purpose) && has("digital signature");
    if is_all {
        return Ok(());
    }
    Err(format!("usages did not match [{}]", required.join(" ")))
}
