//! The pages beside the resources: discovery, OpenAPI, version, health.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::discovery;
use crate::negotiate::Route;
use crate::openapi::Documents;
use crate::request::ApiRequest;
use crate::server::ApiServer;
use crate::shell::Pages;
use crate::status::ApiError;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Discovery, OpenAPI, version and health of one server.
#[derive(Debug, Default)]
pub struct StandardPages {
    documents: Mutex<Documents>,
}

impl Pages for StandardPages {
    fn page(&self, core: &mut ApiServer, request: &ApiRequest, headers: &HeaderMap) -> Option<Response> {
        if request.method != Method::GET && request.method != Method::HEAD {
            return None;
        }
        let path = request.path.strip_suffix('/').unwrap_or(&request.path);
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let registry = &core.registry;
        let page = match parts[..] {
            [endpoint @ ("healthz" | "livez" | "readyz")] if request.parameter("verbose").is_some() => {
                text(StatusCode::OK, TEXT, discovery::health_in_words(endpoint))
            }
            ["healthz" | "livez" | "readyz", ..] if discovery::is_healthy(path) => text(StatusCode::OK, TEXT, "ok"),
            [] | [""] => json(&discovery::index(registry)),
            ["version"] => offered(Route::Json, request, discovery::version),
            ["api"] if Route::Object.accepts(&request.accept).is_err() => {
                offered(Route::Object, request, || Value::Null)
            }
            ["api" | "apis"] => match accepted(&request.accept) {
                Accepted::Aggregated => aggregated(&discovery::aggregated(registry, parts == ["api"]), headers),
                Accepted::Nothing => not_acceptable(),
                Accepted::Plain if parts == ["apis"] => json(&discovery::group_list(registry)),
                Accepted::Plain => {
                    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
                    json(&discovery::core_versions(registry, host))
                }
            },
            ["apis", group] => {
                let group = discovery::group(registry, group)?;
                if accepts_json(&request.accept) { json(&group) } else { not_acceptable() }
            }
            ["api", version] => self.group_version(core, request, "", version)?,
            ["apis", group, version] => self.group_version(core, request, group, version)?,
            // An unknown version of a group that every server has is a `Status`; other unknown paths are plain text.
            ["api", version, ..] if !registry.serves("", version) => failure(&ApiError::no_such_resource()),
            ["apis", group, version, ..] if discovery::is_built_in(group) && !registry.serves(group, version) => {
                failure(&ApiError::no_such_resource())
            }
            ["openapi", "v3"] => {
                let mut documents = self.documents.lock();
                documents.refresh(registry);
                text(StatusCode::OK, TEXT, documents.index().to_string())
            }
            ["openapi", "v3", ref rest @ ..] => {
                let mut documents = self.documents.lock();
                documents.refresh(registry);
                document(&documents, &rest.join("/"), request.parameter("hash"))
            }
            _ => return None,
        };
        Some(page)
    }
}

// === impl StandardPages ===

impl StandardPages {
    #[allow(clippy::unused_self)]
    fn group_version(&self, core: &ApiServer, request: &ApiRequest, group: &str, version: &str) -> Option<Response> {
        match discovery::resource_list(&core.registry, group, version) {
            Some(list) => Some(offered(Route::Object, request, || list)),
            None if discovery::is_built_in(group) => Some(failure(&ApiError::no_such_resource())),
            None => None,
        }
    }
}

enum Accepted {
    Aggregated,
    Plain,
    Nothing,
}

/// The first form of discovery that the client accepts and the server has.
fn accepted(accept: &str) -> Accepted {
    if accept.trim().is_empty() {
        return Accepted::Plain;
    }
    for clause in accept.split(',') {
        let mut parameters = clause.split(';').map(str::trim);
        let media_type = parameters.next().unwrap_or_default();
        let parameter =
            |name: &str| clause.split(';').find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
        match (media_type, parameter("as")) {
            ("application/json", Some("APIGroupDiscoveryList"))
                if parameter("g") == Some("apidiscovery.k8s.io") && parameter("v") == Some("v2") =>
            {
                return Accepted::Aggregated;
            }
            ("application/json" | "*/*" | "application/*", None) => return Accepted::Plain,
            _ => {}
        }
    }
    Accepted::Nothing
}

fn document(documents: &Documents, path: &str, hash: Option<&str>) -> Response {
    let Some(document) = documents.get(path) else {
        return text(StatusCode::NOT_FOUND, "", "");
    };
    match hash {
        // A client with an old hash is sent to the present one, so that what it keeps stays right.
        Some(hash) if hash != document.hash => {
            let mut response = text(StatusCode::MOVED_PERMANENTLY, "", "");
            if let Ok(location) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={}", document.hash)) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            response
        }
        _ => {
            let mut response = text(StatusCode::OK, JSON, document.text().to_string());
            let caching = if hash.is_some() { "public, immutable" } else { "no-cache, private" };
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
            set_etag(&mut response, &document.hash);
            response
        }
    }
}

fn aggregated(value: &Value, headers: &HeaderMap) -> Response {
    let body = value.to_string();
    let etag = Sha256::digest(body.as_bytes()).iter().fold(String::new(), |text, byte| format!("{text}{byte:02X}"));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = known.is_some_and(|known| known.trim_matches('"') == etag);
    let mut response = if is_known {
        text(StatusCode::NOT_MODIFIED, "", "")
    } else {
        text(StatusCode::OK, discovery::AGGREGATED, body)
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    set_etag(&mut response, &etag);
    response
}

fn set_etag(response: &mut Response, etag: &str) {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{etag}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
}

fn json(value: &Value) -> Response {
    text(StatusCode::OK, JSON, value.to_string())
}

fn failure(error: &ApiError) -> Response {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    text(code, JSON, error.to_status().to_string())
}

fn not_acceptable() -> Response {
    let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    failure(&ApiError::not_acceptable(message))
}

/// A page of a route that looks at the media type first and at its parameters after.
fn offered(route: Route, request: &ApiRequest, page: impl FnOnce() -> Value) -> Response {
    if let Err(error) = route.accepts(&request.accept) {
        return failure(&error);
    }
    if route == Route::Object && !accepts_json(&request.accept) {
        return not_acceptable();
    }
    json(&page())
}

fn accepts_json(accept: &str) -> bool {
    matches!(accepted(accept), Accepted::Plain)
}

fn text(code: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    if !content_type.is_empty() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}
