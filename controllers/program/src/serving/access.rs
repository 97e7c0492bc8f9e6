//! Who may read what: certificates, or the API server, say who asks, and the API server what that user may do.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use koord_runtime::{
    api::Api,
    clock::{Moment, SharedClock},
    write::WireRequest,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    clients::{Clients, Untrusted},
    port::SecurePort,
    user::User,
};

/// Requests for reviews per second and at once, beside those of the program.
const LIMIT: (f32, u32) = (20.0, 40);
/// Answers that are remembered.
const REMEMBERED_MAX: usize = 1024;
/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Decides about requests, and remembers what the API server said.
pub(super) struct Access {
    settings: SecurePort,
    clients: Arc<Clients>,
    api: Api,
    clock: SharedClock,
    users: Mutex<Remembered<String, Option<User>>>,
    permissions: Mutex<Remembered<(User, String, String), bool>>,
}

/// Answers that hold for a while.
struct Remembered<K, V>(BTreeMap<K, (V, Moment)>);

/// What becomes of a request.
enum Verdict {
    Allowed,
    /// Nobody knows the token, or the certificate.
    Unknown,
    Forbidden(User),
    /// The API server did not say.
    Unclear,
}

/// Lets a request pass, or answers it.
pub(super) async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let verb = verb(request.method());
    let path = request.uri().path().to_owned();
    let known = access.clients.user(request.extensions().get(), request.headers(), access.clock.now());
    match access.verdict(known, request.headers().get(header::AUTHORIZATION), verb, &path).await {
        Verdict::Allowed => next.run(request).await,
        Verdict::Unknown => status(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"),
        Verdict::Forbidden(user) => {
            let message = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.username);
            status(StatusCode::FORBIDDEN, "Forbidden", &message)
        }
        Verdict::Unclear => {
            status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "the API server does not say who may read this")
        }
    }
}

impl Access {
    pub(super) fn new(settings: SecurePort, clients: Arc<Clients>, api: Api, clock: SharedClock) -> Self {
        let api = api.with_own_limit(LIMIT);
        Self { settings, clients, api, clock, users: Mutex::default(), permissions: Mutex::default() }
    }

    /// What becomes of a request whose user is `known` by a certificate, or says by a token who it is.
    async fn verdict(
        &self,
        known: Result<Option<User>, Untrusted>,
        authorization: Option<&header::HeaderValue>,
        verb: &str,
        path: &str,
    ) -> Verdict {
        let token = authorization.and_then(|value| value.to_str().ok()).and_then(bearer);
        let user = match (known, token) {
            (Ok(Some(user)), _) => user.authenticated(),
            (Ok(None), None) => User::anonymous(),
            (Err(Untrusted), None) => return Verdict::Unknown,
            (_, Some(token)) if token.len() > TOKEN_BYTES_MAX => return Verdict::Unknown,
            (_, Some(token)) => match self.user(token).await {
                Some(Some(user)) => user.authenticated(),
                Some(None) => return Verdict::Unknown,
                None => return Verdict::Unclear,
            },
        };
        if is_open(&self.settings.open_paths, path) || user.is_master() {
            return Verdict::Allowed;
        }
        match self.is_permitted(&user, verb, path).await {
            Some(true) => Verdict::Allowed,
            Some(false) => Verdict::Forbidden(user),
            None => Verdict::Unclear,
        }
    }

    /// Whose a token is; nobody's, or not known because the API server did not say.
    async fn user(&self, token: &str) -> Option<Option<User>> {
        let now = self.clock.moment();
        if let Some(known) = self.users.lock().get(token, now) {
            return Some(known);
        }
        let status = self.review("authentication.k8s.io", "TokenReview", json!({"token": token})).await?;
        let is_authenticated = status["authenticated"].as_bool() == Some(true);
        let user = if is_authenticated { Some(User::deserialize(&status["user"]).ok()?) } else { None };
        self.users.lock().keep(token.to_owned(), user.clone(), now + self.settings.token_life, now);
        Some(user)
    }

    /// Whether a user may read a path; not known where the API server did not say.
    async fn is_permitted(&self, user: &User, verb: &str, path: &str) -> Option<bool> {
        let key = (user.clone(), verb.to_owned(), path.to_owned());
        let now = self.clock.moment();
        if let Some(known) = self.permissions.lock().get(&key, now) {
            return Some(known);
        }
        let User { username, uid, groups, extra } = user;
        let spec = json!({
            "user": username, "uid": uid, "groups": groups, "extra": extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        });
        let status = self.review("authorization.k8s.io", "SubjectAccessReview", spec).await?;
        let is_allowed = status["allowed"].as_bool()?;
        let life = if is_allowed { self.settings.permission_life } else { self.settings.refusal_life };
        self.permissions.lock().keep(key, is_allowed, now + life, now);
        Some(is_allowed)
    }

    /// The status of a review; none where the API server gave none.
    async fn review(&self, group: &str, kind: &str, spec: Value) -> Option<Value> {
        let request = WireRequest {
            method: "POST",
            uri: format!("/apis/{group}/v1/{}s", kind.to_lowercase()),
            content_type: "application/json",
            body: json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec}).to_string(),
        };
        let failed = |reason: &str| tracing::warn!(kind, reason, "a review was not answered");
        match self.api.call(&request).await {
            Ok(answer) if answer.is_success() => {
                let mut review: Value = serde_json::from_str(&answer.body).ok()?;
                Some(review["status"].take())
            }
            Ok(answer) => {
                failed(&answer.status().1);
                None
            }
            Err(failure) => {
                failed(&failure.message);
                None
            }
        }
    }
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Clone> Remembered<K, V> {
    fn get<Q: Ord + ?Sized>(&self, key: &Q, now: Moment) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    /// Remembers an answer. What is over goes, and all of it where too much is left.
    fn keep(&mut self, key: K, value: V, until: Moment, now: Moment) {
        if self.0.len() >= REMEMBERED_MAX {
            self.0.retain(|_, (_, until)| now < *until);
        }
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        self.0.insert(key, (value, until));
    }
}

/// The token of a header `Authorization`.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn is_open(open: &[String], path: &str) -> bool {
    open.iter().any(|known| known.strip_suffix('*').map_or(path == known, |begin| path.starts_with(begin)))
}

/// A method as RBAC calls it.
fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "HEAD" => "head",
        "OPTIONS" => "options",
        _ => "get",
    }
}

/// An answer as API servers give it.
fn status(code: StatusCode, reason: &str, message: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    (code, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn open_paths_are_whole_or_beginnings() {
        let open = ["/healthz".to_owned(), "/open/*".to_owned()];
        for (path, expected) in
            [("/healthz", true), ("/healthz/x", false), ("/open/a/b", true), ("/open", false), ("/metrics", false)]
        {
            assert_eq!(is_open(&open, path), expected, "{path}");
        }
    }

    #[test]
    fn a_token_stands_after_its_scheme() {
        assert_eq!((bearer("Bearer abc"), bearer("bearer  abc ")), (Some("abc"), Some("abc")));
        assert_eq!((bearer("Basic abc"), bearer("Bearer "), bearer("abc")), (None, None, None));
    }

    #[test]
    fn answers_hold_for_a_while_and_are_not_too_many() {
        let mut remembered = Remembered::default();
        let at = |seconds: u64| Moment::at(Duration::from_secs(seconds));
        remembered.keep(1_usize, "a", at(10), at(0));
        assert_eq!((remembered.get(&1, at(9)), remembered.get(&1, at(10))), (Some("a"), None));
        for key in 2..REMEMBERED_MAX + 10 {
            remembered.keep(key, "b", at(30), at(20));
        }
        assert!(remembered.0.len() <= REMEMBERED_MAX && remembered.get(&(REMEMBERED_MAX + 9), at(21)).is_some());
        assert_eq!(remembered.get(&1, at(5)), None, "what is over goes first");
    }
}
