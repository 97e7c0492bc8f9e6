//! Who asks, and whether they may: certificates, bearer tokens, impersonation, role-based access control, what kubelets need,
//! and the reviews about them.

pub mod authorizer;
pub mod bootstrap;
mod bootstrap_tokens;
pub mod certificates;
mod escalation;
mod node;
pub mod rbac;
pub mod recorder;
pub mod reviews;
mod signers;
pub mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use koord_listen::PeerCertificates;

use crate::request::{User, parse_path, parse_query};
use crate::server::{ApiResponse, ApiServer, Attributes, Authorizer};
use crate::shell::{Server, respond};
use crate::status::{ApiError, Subject};
use certificates::{Certificates, Untrusted};
use rbac::Action;
use recorder::Recorder;
use tokens::Tokens;

/// What the checks in front of the router need.
#[derive(Clone)]
struct Guard {
    server: Server,
    identities: Identities,
    recorder: Option<Recorder>,
}

/// By what users are known.
#[derive(Clone)]
pub struct Identities {
    /// By tokens that they send.
    pub tokens: Arc<Tokens>,
    /// By certificates that they show; none takes no certificate.
    pub certificates: Option<Certificates>,
}

/// A router that lets only those in who are known and allowed, and notes what they asked for.
pub fn guarded(server: &Server, identities: impl Into<Identities>, recorder: Option<Recorder>) -> Router {
    let guard = Guard { server: server.clone(), identities: identities.into(), recorder };
    server.router().layer(middleware::from_fn_with_state(guard, check))
}

async fn check(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let checked = guard.server.with_core(|core| guard.user_of(core, &request));
    match checked {
        Ok(user) => {
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        Err(Refusal::Denied(error)) => respond(&ApiResponse::error(&error)),
        Err(Refusal::Broken(why)) => {
            let mut response = Response::new(Body::from(format!(
                "Internal Server Error: {:?}: {why}\n",
                request.uri().path_and_query().map_or("/", PathAndQuery::as_str)
            )));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, text);
            response
        }
    }
}

/// Why a request does not go on.
#[derive(Debug)]
enum Refusal {
    /// The user is unknown or may not do it.
    Denied(ApiError),
    /// The request contradicts itself.
    Broken(String),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Denied(error)
    }
}

// === impl Guard ===

impl Guard {
    /// The user of a request that may go on.
    fn user_of(&self, core: &mut ApiServer, request: &Request) -> Result<User, Refusal> {
        let user = self.identities.user(core, request)?;
        let user = impersonated(core, user, request.headers())?;
        let action = action(request.method(), request.uri().path(), request.uri().query().unwrap_or_default());
        let permitted = permit(core, &user, &action);
        if let Some(recorder) = &self.recorder {
            recorder.note(&user.name, &action, permitted.is_ok());
        }
        permitted?;
        Ok(user)
    }
}

// === impl Identities ===

impl From<Arc<Tokens>> for Identities {
    fn from(tokens: Arc<Tokens>) -> Self {
        Self { tokens, certificates: None }
    }
}

impl Identities {
    /// Who sends a request. A certificate counts before a token, and a token where the certificate is not trusted.
    fn user(&self, core: &mut ApiServer, request: &Request) -> Result<User, ApiError> {
        let shown = request.extensions().get::<PeerCertificates>();
        let by_certificate = match (&self.certificates, shown) {
            // TLS goes by the time of the machine, whatever the cluster's is.
            (Some(certificates), Some(shown)) => certificates.user(shown, Timestamp::now()),
            _ => Ok(None),
        };
        if let Ok(Some(user)) = by_certificate {
            return Ok(user);
        }
        if let Some(token) = bearer_token(request.headers()) {
            let now = core.now();
            let user = self.tokens.user(token, now).or_else(|| bootstrap_tokens::user(core, token, now));
            return user.ok_or_else(ApiError::unauthorized);
        }
        by_certificate.map_err(|Untrusted| ApiError::unauthorized())?;
        Ok(User {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..User::default()
        })
    }
}

fn permit(core: &ApiServer, user: &User, action: &Action) -> Result<(), ApiError> {
    let decision = authorizer::decide(core, user, action);
    if decision.allowed {
        return Ok(());
    }
    let mut why = action.refusal(&user.name);
    if !decision.reason.is_empty() {
        why = format!("{why}: {}", decision.reason);
    }
    let subject = Subject { group: &action.group, resource: &action.resource, name: &action.name };
    Err(ApiError::forbidden(subject, &why))
}

/// Authorizes writes by roles and bindings.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoleBased;

impl Authorizer for RoleBased {
    fn check_create(&self, core: &ApiServer, about: &Attributes<'_>) -> Result<(), ApiError> {
        let action = Action {
            verb: "create".to_owned(),
            group: about.definition.group.clone(),
            resource: about.definition.plural.clone(),
            namespace: about.namespace.to_owned(),
            name: about.name.to_owned(),
            ..Action::default()
        };
        permit(core, about.user, &action)
    }

    fn check_store(&self, core: &ApiServer, about: &Attributes<'_>) -> Result<(), ApiError> {
        signers::check(core, about)?;
        escalation::check(core, about.user, about.definition, about.namespace, about.object)
    }

    fn may_request_certificate(&self, core: &ApiServer, user: &User, subresource: &str) -> bool {
        let action = Action {
            verb: "create".to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "certificatesigningrequests".to_owned(),
            subresource: subresource.to_owned(),
            ..Action::default()
        };
        authorizer::decide(core, user, &action).allowed
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user that the client wants to be, when it may.
fn impersonated(core: &ApiServer, user: User, headers: &HeaderMap) -> Result<User, Refusal> {
    const GROUP: &str = "authentication.k8s.io";
    let texts = |name: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.map(ToOwned::to_owned).collect::<Vec<String>>()
    };
    let name = texts("Impersonate-User").into_iter().next().unwrap_or_default();
    let mut groups = texts("Impersonate-Group");
    let uid = texts("Impersonate-Uid").into_iter().next().unwrap_or_default();
    let mut extra: Vec<(String, Vec<String>)> = Vec::new();
    for key in headers.keys().filter_map(|key| key.as_str().strip_prefix("impersonate-extra-")) {
        extra.push((unescaped(key), texts(&format!("impersonate-extra-{key}"))));
    }
    if name.is_empty() {
        // The real server lists them as object references: kind, namespace, name, uid, version, revision, field.
        let groups = groups.iter().map(|group| format!("{{Group  {group}    }}"));
        let extra = extra.iter().flat_map(|(key, values)| {
            values.iter().map(move |value| format!("{{UserExtra  {value}  {GROUP}/v1  {key}}}"))
        });
        let uid = Some(&uid).filter(|uid| !uid.is_empty()).map(|uid| format!("{{UID  {uid}  {GROUP}/v1  }}"));
        let requested: Vec<String> = groups.chain(extra).chain(uid).collect();
        if requested.is_empty() {
            return Ok(user);
        }
        let why = format!("requested [{}] without impersonating a user", requested.join(" "));
        return Err(Refusal::Broken(why));
    }
    let may = |group: &str, [resource, subresource]: [&str; 2], namespace: &str, name: &str| {
        let action = Action {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Action::default()
        };
        permit(core, &user, &action)
    };
    let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, account)) => may("", ["serviceaccounts", ""], namespace, account)?,
        None => may("", ["users", ""], "", &name)?,
    }
    for group in &groups {
        may("", ["groups", ""], "", group)?;
    }
    for (key, value) in extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value))) {
        may(GROUP, ["userextras", key], "", value)?;
    }
    if !uid.is_empty() {
        may(GROUP, ["uids", ""], "", &uid)?;
    }
    if let Some((namespace, _)) = account.filter(|_| groups.is_empty()) {
        groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    }
    let known = if name == "system:anonymous" { "system:unauthenticated" } else { "system:authenticated" };
    if !groups.iter().any(|group| group == known) {
        groups.push(known.to_owned());
    }
    Ok(User { name, uid, groups, extra })
}

/// The key of an extra field, which comes as an escaped part of a header's name.
fn unescaped(key: &str) -> String {
    parse_query(key).into_iter().next().map_or_else(|| key.to_owned(), |(key, _)| key)
}

/// What a request does, as rules name it.
pub fn action(method: &Method, path: &str, query: &str) -> Action {
    let target = parse_path(path).filter(|target| !target.resource.is_empty());
    let Some(target) = target else {
        return Action { verb: method.as_str().to_lowercase(), path: path.to_owned(), ..Action::default() };
    };
    let query = parse_query(query);
    let parameter = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let is_collection = target.name.is_empty();
    let watches = target.watch_prefix || parameter("watch").is_some_and(|value| !matches!(value, "0" | "false"));
    let verb = match *method {
        Method::GET | Method::HEAD if target.watch_prefix => "watch",
        Method::GET | Method::HEAD if is_collection && watches => "watch",
        Method::GET | Method::HEAD if is_collection => "list",
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if is_collection => "deletecollection",
        Method::DELETE => "delete",
        _ => "",
    };
    let mut name = target.name.clone();
    if is_collection && matches!(verb, "list" | "watch" | "deletecollection") {
        // A selector for one name is as good as the name.
        let selector = parameter("fieldSelector").unwrap_or_default();
        let wanted = selector.split(',').find_map(|part| part.trim().strip_prefix("metadata.name="));
        name = wanted.map_or_else(String::new, |name| name.trim_start_matches('=').to_owned());
    }
    let namespace =
        if target.group.is_empty() && target.resource == "namespaces" { &target.name } else { &target.namespace };
    let fields = match verb {
        "list" | "watch" | "deletecollection" => required_fields(parameter("fieldSelector").unwrap_or_default()),
        _ => Vec::new(),
    };
    Action {
        verb: verb.to_owned(),
        namespace: namespace.clone(),
        group: target.group,
        resource: target.resource,
        subresource: target.subresource.split('/').next().unwrap_or_default().to_owned(),
        name,
        path: String::new(),
        fields,
    }
}

/// The fields for which a selector wants one value.
fn required_fields(selector: &str) -> Vec<(String, String)> {
    let terms = selector.split(',').filter(|term| !term.contains("!="));
    let pairs = terms.filter_map(|term| term.split_once('='));
    pairs.map(|(field, value)| (field.trim().to_owned(), value.trim_start_matches('=').to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_actions() {
        let table = [
            (Method::GET, "/api/v1/namespaces/n/pods", "", "list", "pods", "n", ""),
            (Method::GET, "/api/v1/namespaces/n/pods", "watch=1", "watch", "pods", "n", ""),
            (Method::GET, "/api/v1/namespaces/n", "", "get", "namespaces", "n", "n"),
            (Method::POST, "/api/v1/namespaces", "", "create", "namespaces", "", ""),
            (Method::GET, "/api/v1/nodes", "fieldSelector=metadata.name%3Da", "list", "nodes", "", "a"),
            (Method::DELETE, "/apis/g.io/v1/things", "", "deletecollection", "things", "", ""),
        ];
        for (method, path, query, verb, resource, namespace, name) in table {
            let action = action(&method, path, query);
            let found = [action.verb.as_str(), &action.resource, &action.namespace, &action.name];
            assert_eq!(found, [verb, resource, namespace, name], "{method} {path}?{query}");
        }
        let path = action(&Method::GET, "/apis/apps", "");
        assert_eq!((path.verb.as_str(), path.path.as_str(), path.resource.as_str()), ("get", "/apis/apps", ""));
        assert_eq!(path.refusal("dev"), "User \"dev\" cannot get path \"/apis/apps\"");
    }
}
