//! Access reviews, token reviews and token requests: objects that are answered and never stored.

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, Method};
use koord_schema::field::{Errors, Path};
use serde_json::{Map, Value, json};

use super::authorizer;
use super::rbac::{self, Action};
use super::tokens::{AccountToken, Tokens};
use crate::registry::ResourceDef;
use crate::request::{ApiRequest, Target, User, parse_path};
use crate::server::{ApiResponse, ApiServer};
use crate::shell::{Pages, respond};
use crate::status::{ApiError, Subject};
use crate::{decode, environment, options};

const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_DEFAULT: i64 = 3600;
/// 2^32 seconds.
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// Answers reviews of access and of tokens.
pub struct Reviews {
    tokens: Arc<Tokens>,
}

impl Pages for Reviews {
    fn page(&self, core: &mut ApiServer, request: &ApiRequest, _headers: &HeaderMap) -> Option<Response> {
        if request.method != Method::POST {
            return None;
        }
        let target = parse_path(&request.path)?;
        let review = match (target.group.as_str(), target.resource.as_str(), target.subresource.as_str()) {
            ("authorization.k8s.io", "selfsubjectaccessreviews", "") => Review::OwnAccess,
            ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews", "") => Review::Access,
            ("authorization.k8s.io", "selfsubjectrulesreviews", "") => Review::OwnRules,
            ("authentication.k8s.io", "selfsubjectreviews", "") => Review::OwnIdentity,
            ("authentication.k8s.io", "tokenreviews", "") => Review::Token,
            ("", "serviceaccounts", "token") => Review::TokenRequest,
            _ => return None,
        };
        let answer = self.answer(core, request, &target, review);
        Some(respond(&answer.unwrap_or_else(|error| ApiResponse::error(&error))))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Review {
    OwnAccess,
    Access,
    OwnRules,
    OwnIdentity,
    Token,
    TokenRequest,
}

// === impl Reviews ===

impl Reviews {
    /// Reviews over these tokens.
    pub fn new(tokens: Arc<Tokens>) -> Self {
        Self { tokens }
    }

    fn answer(
        &self,
        core: &mut ApiServer,
        request: &ApiRequest,
        target: &Target,
        review: Review,
    ) -> Result<ApiResponse, ApiError> {
        let definition = match review {
            Review::TokenRequest => token_request_definition(core),
            _ => core.registry.get(&target.group, &target.version, &target.resource).cloned(),
        };
        let definition = definition.ok_or_else(ApiError::no_such_resource)?;
        let options = options::WriteOptions::read(request, "CreateOptions", false)?;
        let decoded = decode::object(request, &definition, options.field_validation)?;
        let mut object = decoded.object;
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        if review == Review::TokenRequest && object["spec"]["expirationSeconds"].is_null() {
            object["spec"]["expirationSeconds"] = json!(TOKEN_SECONDS_DEFAULT);
        }
        let manager = options::manager(&options.field_manager, &request.user_agent);
        core.own_fields(&definition, &mut object, &manager, &target.subresource);
        let spec = object["spec"].clone();
        match review {
            Review::OwnAccess => {
                let mut errors = Errors::new();
                check_attributes(&spec, None, &mut errors);
                refused(&errors)?;
                object["status"] = decision(core, &request.user, &action_of(&spec));
            }
            Review::Access => {
                let mut errors = Errors::new();
                let local_namespace = Some(target.namespace.as_str()).filter(|namespace| !namespace.is_empty());
                if let Some(namespace) = local_namespace {
                    check_local(&object, namespace)?;
                    object["metadata"]["namespace"] = json!(namespace);
                }
                check_attributes(&spec, local_namespace, &mut errors);
                let user = reviewed_user(&spec, &mut errors);
                refused(&errors)?;
                object["status"] = decision(core, &user, &action_of(&spec));
            }
            Review::OwnRules => {
                let namespace = spec["namespace"].as_str().unwrap_or_default();
                if namespace.is_empty() {
                    return Err(ApiError::bad_request("no namespace on request"));
                }
                object["status"] = rules(core, &request.user, namespace);
                // QUIRK: the answer says nothing of what was asked.
                object["metadata"] = json!({});
                object["spec"] = json!({});
            }
            Review::OwnIdentity => {
                object["metadata"]["creationTimestamp"] = json!(environment::time_text(core.now()));
                object["status"] = json!({"userInfo": request.user.info()});
            }
            Review::Token => self.review_token(core, &spec, &mut object)?,
            Review::TokenRequest => self.issue(core, &request.user, target, &mut object)?,
        }
        let mut response = ApiResponse::json(201, object.to_string());
        response.warnings = decoded.warnings;
        Ok(response)
    }

    fn review_token(&self, core: &mut ApiServer, spec: &Value, object: &mut Value) -> Result<(), ApiError> {
        let token = spec["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        object["status"] = match self.tokens.user(token, core.now()) {
            Some(user) => {
                json!({"authenticated": true, "user": user.info(), "audiences": [super::tokens::ISSUER]})
            }
            None => json!({"user": {}, "error": "invalid bearer token"}),
        };
        Ok(())
    }

    fn issue(&self, core: &mut ApiServer, user: &User, target: &Target, object: &mut Value) -> Result<(), ApiError> {
        check_names(object, target)?;
        core.restrict_token(user, &target.namespace, &target.name, &object["spec"])?;
        let accounts =
            core.registry.get("", "v1", "serviceaccounts").cloned().ok_or_else(ApiError::no_such_resource)?;
        let missing = |resource, name| ApiError::not_found(Subject { group: "", resource, name });
        let account = core
            .object(&accounts, &target.namespace, &target.name)
            .ok_or_else(|| missing("serviceaccounts", &target.name))?;
        let spec = &object["spec"];
        let given_uid = object["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty());
        if let Some(uid) = given_uid.filter(|uid| account["metadata"]["uid"] != *uid) {
            let own = account["metadata"]["uid"].as_str().unwrap_or_default();
            let why =
                format!("the UID in the token request ({uid}) does not match the UID of the service account ({own})");
            let subject = Subject { group: "authentication.k8s.io", resource: "TokenRequest", name: &target.name };
            return Err(ApiError::conflict(subject, &why));
        }
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(TOKEN_SECONDS_DEFAULT);
        let mut errors = Errors::new();
        let root = Path::root("spec");
        let at = root.child("expirationSeconds");
        if seconds < TOKEN_SECONDS_MIN {
            errors.invalid(&at, seconds, "may not specify a duration less than 10 minutes");
        } else if seconds > TOKEN_SECONDS_MAX {
            errors.invalid(&at, seconds, "may not specify a duration larger than 2^32 seconds");
        }
        if !errors.is_empty() {
            let subject = Subject { group: "authentication.k8s.io", resource: "TokenRequest", name: "" };
            return Err(ApiError::invalid(subject, &errors));
        }
        let bound = bound_object(core, target, &spec["boundObjectRef"])?;
        let given: Vec<String> = spec["audiences"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect();
        let audiences = if given.is_empty() { vec![super::tokens::ISSUER.to_owned()] } else { given };
        let now = core.now();
        let ends = now.as_second().saturating_add(seconds);
        let token = self.tokens.issue(&AccountToken {
            namespace: &target.namespace,
            name: &target.name,
            uid: account["metadata"]["uid"].as_str().unwrap_or_default(),
            audiences: &audiences,
            issued_at: now.as_second(),
            expires_at: ends,
            bound,
        });
        let reference = spec["boundObjectRef"].clone();
        object["metadata"]["name"] = json!(target.name);
        object["metadata"]["namespace"] = json!(target.namespace);
        object["metadata"]["uid"] = account["metadata"]["uid"].clone();
        object["metadata"]["creationTimestamp"] = json!(environment::time_text(now));
        object["spec"] = json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference});
        let expiration = jiff::Timestamp::from_second(ends).unwrap_or(now);
        object["status"] = json!({"token": token, "expirationTimestamp": environment::time_text(expiration)});
        Ok(())
    }
}

/// The kind of a token request, which is no resource of its own.
fn token_request_definition(core: &ApiServer) -> Option<Arc<ResourceDef>> {
    let accounts = core.registry.get("", "v1", "serviceaccounts")?;
    let definition =
        ResourceDef::new("authentication.k8s.io", "v1", "TokenRequest", "serviceaccounts", true, accounts.collection);
    Some(Arc::new(definition))
}

/// A token request may name its account, which is that of the path.
fn check_names(object: &Value, target: &Target) -> Result<(), ApiError> {
    let given = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (name, namespace) = (given("name"), given("namespace"));
    if !namespace.is_empty() && namespace != target.namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    if !name.is_empty() && name != target.name {
        let mut errors = Errors::new();
        errors.invalid(&Path::root("metadata").child("name"), name, "must match the service account name if specified");
        let subject = Subject { group: "authentication.k8s.io", resource: "TokenRequest", name: &target.name };
        return Err(ApiError::invalid(subject, &errors));
    }
    Ok(())
}

/// The claim of the object that a token lives with, when the request names one.
fn bound_object(core: &ApiServer, target: &Target, reference: &Value) -> Result<Option<Value>, ApiError> {
    if !reference.is_object() {
        return Ok(None);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let (plural, claim) = match (group, text("kind")) {
        ("", "Pod") => ("pods", "pod"),
        ("", "Secret") => ("secrets", "secret"),
        ("", "Node") => ("nodes", "node"),
        (_, kind) => {
            let why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(ApiError::bad_request(why));
        }
    };
    let name = reference["name"].as_str().unwrap_or_default();
    let missing = || ApiError::not_found(Subject { group: "", resource: plural, name });
    let definition = core.registry.get("", "v1", plural).ok_or_else(missing)?;
    let namespace = if plural == "nodes" { "" } else { target.namespace.as_str() };
    let bound = core.object(definition, namespace, name).ok_or_else(missing)?;
    if plural == "pods" && bound["spec"]["serviceAccountName"].as_str() != Some(&target.name) {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            target.name
        )));
    }
    let uid = text("uid");
    if !uid.is_empty() && bound["metadata"]["uid"] != uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(Subject { group: "", resource: text("kind"), name }, &why));
    }
    let mut claims = json!({claim: {"name": name, "uid": bound["metadata"]["uid"]}});
    if let Some(node) = bound["spec"]["nodeName"].as_str().filter(|node| plural == "pods" && !node.is_empty()) {
        let known = core.registry.get("", "v1", "nodes").and_then(|nodes| core.object(nodes, "", node));
        claims["node"] = json!({"name": node});
        if let Some(known) = known {
            claims["node"]["uid"] = known["metadata"]["uid"].clone();
        }
    }
    Ok(Some(claims))
}

/// Checks what a review asks about; a local review asks about its own namespace alone.
fn check_attributes(spec: &Value, local_namespace: Option<&str>, errors: &mut Errors) {
    let resource = spec.get("resourceAttributes").filter(|found| found.is_object());
    let path = spec.get("nonResourceAttributes").filter(|found| found.is_object());
    let root = Path::root("spec");
    let (resource_at, path_at) = (root.child("resourceAttributes"), root.child("nonResourceAttributes"));
    // Go prints the struct with its own field names.
    let printed = |path: &Value| json!({"Path": path["path"], "Verb": path["verb"]});
    match (resource, path) {
        (Some(_), Some(path)) => {
            errors.invalid(&path_at, printed(path), "cannot be specified in combination with resourceAttributes");
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.invalid(&resource_at, Value::Null, detail);
        }
        _ => {}
    }
    for selector in ["fieldSelector", "labelSelector"] {
        let given = resource.map_or(&Value::Null, |resource| &resource[selector]);
        let raw = given["rawSelector"].as_str().unwrap_or_default();
        if !raw.is_empty() && given["requirements"].as_array().is_some_and(|list| !list.is_empty()) {
            let detail = "may not specified at the same time as requirements";
            errors.invalid(&resource_at.child(selector).child("rawSelector"), raw, detail);
        }
    }
    let Some(wanted) = local_namespace else { return };
    let namespace = resource.map(|resource| resource["namespace"].as_str().unwrap_or_default());
    if let Some(namespace) = namespace.filter(|namespace| *namespace != wanted) {
        errors.invalid(&resource_at.child("namespace"), namespace, "must match metadata.namespace");
    }
    if let Some(path) = path {
        errors.invalid(&path_at, printed(path), "disallowed on this kind of request");
    }
}

/// What a review asks about.
fn action_of(spec: &Value) -> Action {
    let text = |from: &Value, field: &str| from[field].as_str().unwrap_or_default().to_owned();
    let resource = &spec["resourceAttributes"];
    if resource.is_object() {
        return Action {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
            ..Action::default()
        };
    }
    let path = &spec["nonResourceAttributes"];
    Action { verb: text(path, "verb"), path: text(path, "path"), ..Action::default() }
}

fn refused(errors: &Errors) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    let subject = Subject { group: "authorization.k8s.io", resource: "", name: "" };
    Err(ApiError::invalid(subject, errors))
}

fn reviewed_user(spec: &Value, errors: &mut Errors) -> User {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    let name = spec["user"].as_str().unwrap_or_default().to_owned();
    let groups = texts(&spec["groups"]);
    if name.is_empty() && groups.is_empty() {
        let root = Path::root("spec");
        errors.invalid(&root.child("user"), "", "at least one of user or group must be specified");
    }
    let extra = spec["extra"].as_object().into_iter().flatten();
    let extra = extra.map(|(key, values)| (key.clone(), texts(values))).collect();
    User { name, uid: spec["uid"].as_str().unwrap_or_default().to_owned(), groups, extra }
}

fn check_local(object: &Value, namespace: &str) -> Result<(), ApiError> {
    let stated = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if stated.is_empty() || stated == namespace {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "namespace on object does not match namespace in request: {stated}!={namespace}"
    )))
}

fn decision(core: &ApiServer, user: &User, action: &Action) -> Value {
    let decision = authorizer::decide(core, user, action);
    let mut status = Map::new();
    status.insert("allowed".to_owned(), json!(decision.allowed));
    if !decision.reason.is_empty() {
        status.insert("reason".to_owned(), json!(decision.reason));
    }
    Value::Object(status)
}

fn rules(core: &ApiServer, user: &User, namespace: &str) -> Value {
    let (granted, broken) = rbac::granted(core, user, namespace);
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    if user.groups.iter().any(|group| group == "system:masters") {
        resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        paths.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    for granted in granted {
        let rule = &granted.rule;
        let pick = |fields: &[&str]| {
            let present = fields.iter().filter(|field| rule.get(**field).is_some_and(|list| !list.is_null()));
            Value::Object(present.map(|field| ((*field).to_owned(), rule[*field].clone())).collect())
        };
        if rule["nonResourceURLs"].as_array().is_some_and(|urls| !urls.is_empty()) {
            paths.push(pick(&["verbs", "nonResourceURLs"]));
        }
        if rule["resources"].as_array().is_some_and(|names| !names.is_empty()) {
            resources.push(pick(&["verbs", "apiGroups", "resources", "resourceNames"]));
        }
    }
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    if !broken.is_empty() {
        status["evaluationError"] = json!(broken.join(", "));
    }
    status
}
