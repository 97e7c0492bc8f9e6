//! The pages beside the resources: discovery, OpenAPI, version, health.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::discovery;
use crate::negotiate::{self, Format, Route};
use crate::openapi::{Documents, Merged, v2};
use crate::request::ApiRequest;
use crate::server::{ApiResponse, ApiServer};
use crate::shell::{Pages, respond};
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
        let path = request.path.strip_suffix('/').unwrap_or(&request.path);
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let registry = &core.registry;
        let page = match parts[..] {
            [endpoint @ ("healthz" | "livez" | "readyz")] if request.parameter("verbose").is_some() => {
                let excluded: Vec<&str> = request.parameters("exclude").collect();
                text(StatusCode::OK, TEXT, discovery::health_in_words(endpoint, &excluded))
            }
            ["healthz" | "livez" | "readyz", ..] if discovery::is_healthy(path) => text(StatusCode::OK, TEXT, "ok"),
            [] | [""] => json(&discovery::index(registry)),
            ["version"] => routed(Route::Json, request, |_| json(&discovery::version())),
            ["version", ..] => failure(&ApiError::no_such_resource(), request),
            ["api"] => routed(Route::Object, request, |accepted| match accepted {
                Discovery::Aggregated(format) => aggregated(&discovery::aggregated(registry, true), format, headers),
                Discovery::Plain(format) => {
                    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
                    written(&discovery::core_versions(registry, host), format)
                }
            }),
            ["apis"] => match negotiated(request, !request.path.ends_with('/')) {
                Ok(Discovery::Aggregated(format)) => {
                    aggregated(&discovery::aggregated(registry, false), format, headers)
                }
                Ok(Discovery::Plain(format)) => written(&discovery::group_list(registry), format),
                Err(error) => failure(&error, request),
            },
            ["apis", group] => plain(&discovery::group(registry, group)?, request),
            ["api", version] => group_version(core, request, "", version)?,
            ["apis", group, version] => group_version(core, request, group, version)?,
            // An unknown version of a group that every server has is a `Status`; other unknown paths are plain text.
            ["api", version, ..] if !registry.serves("", version) => failure(&ApiError::no_such_resource(), request),
            ["apis", group, version, ..] if discovery::is_built_in(group) && !registry.serves(group, version) => {
                failure(&ApiError::no_such_resource(), request)
            }
            ["openapi", "v2"] => {
                let mut documents = self.documents.lock();
                documents.refresh(registry);
                merged_document(documents.merged(), request, headers)
            }
            ["openapi", "v3"] => {
                let mut documents = self.documents.lock();
                documents.refresh(registry);
                text(StatusCode::OK, TEXT, documents.index().to_string())
            }
            ["openapi", "v3", ref rest @ ..] => {
                let mut documents = self.documents.lock();
                documents.refresh(registry);
                document(&documents, &rest.join("/"), request, headers)
            }
            _ => return None,
        };
        Some(page)
    }
}

/// The resources of a group version. Custom ones are not routed: any method reads them.
fn group_version(core: &ApiServer, request: &ApiRequest, group: &str, version: &str) -> Option<Response> {
    match discovery::resource_list(&core.registry, group, version) {
        Some(list) if !discovery::is_built_in(group) => Some(plain(&list, request)),
        Some(list) => Some(routed(Route::Object, request, |accepted| match accepted {
            Discovery::Plain(format) => written(&list, format),
            Discovery::Aggregated(_) => failure(&not_acceptable(), request),
        })),
        None if discovery::is_built_in(group) => Some(failure(&ApiError::no_such_resource(), request)),
        None => None,
    }
}

/// A form of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discovery {
    /// Everything about all groups in one document.
    Aggregated(Format),
    /// A document of its own for each path.
    Plain(Format),
}

/// The form of discovery that the client accepts and the path has: where there is one document of all groups, it goes before
/// all others, whatever the client prefers.
fn negotiated(request: &ApiRequest, has_aggregated: bool) -> Result<Discovery, ApiError> {
    let clauses = negotiate::clauses(&request.accept);
    let format = |asks: fn(&str) -> bool| {
        clauses.iter().filter(|clause| asks(clause)).find_map(|clause| negotiate::format(clause))
    };
    if has_aggregated && let Some(format) = format(asks_aggregated) {
        return Ok(Discovery::Aggregated(format));
    }
    format(|clause| !negotiate::is_transformed(clause))
        .or_else(|| request.accept.trim().is_empty().then_some(Format::Json))
        .map(Discovery::Plain)
        .ok_or_else(not_acceptable)
}

fn asks_aggregated(clause: &str) -> bool {
    [("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2")]
        .iter()
        .all(|(name, value)| negotiate::parameter(clause, name) == Some(value))
}

/// A page that any method reads, in the text form that the client accepts.
fn plain(page: &Value, request: &ApiRequest) -> Response {
    match negotiated(request, false) {
        Ok(Discovery::Plain(format)) => written(page, format),
        Ok(Discovery::Aggregated(_)) => failure(&not_acceptable(), request),
        Err(error) => failure(&error, request),
    }
}

/// A page of a route, which checks the method and the media types before their parameters are looked at.
fn routed(route: Route, request: &ApiRequest, page: impl FnOnce(Discovery) -> Response) -> Response {
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return failure(&ApiError::method_not_allowed(), request);
    }
    if let Err(error) = route.accepts(&request.accept) {
        return failure(&error, request);
    }
    if route == Route::Json {
        return page(Discovery::Plain(Format::Json));
    }
    let is_group_list = request.path.trim_end_matches('/') == "/api";
    match negotiated(request, is_group_list) {
        Ok(accepted) => page(accepted),
        Err(error) => failure(&error, request),
    }
}

/// The first of these media types that the client accepts, in the client's order of preference.
fn preferred<'a>(accept: &str, served: &[&'a str]) -> Option<&'a str> {
    if accept.is_empty() {
        return served.first().copied();
    }
    let first = |clause: &str| served.iter().find(|served| negotiate::takes(clause, served)).copied();
    negotiate::clauses(accept).into_iter().find_map(first)
}

/// `/openapi/v2`, as protobuf where the client prefers that.
fn merged_document(document: &Merged, request: &ApiRequest, headers: &HeaderMap) -> Response {
    let mut response = match preferred(&request.accept, &[JSON, v2::PROTOBUF, v2::PROTOBUF_ALIAS]) {
        None => text(StatusCode::NOT_ACCEPTABLE, "", ""),
        Some(_) if is_known(&document.hash, headers) => known(&document.hash),
        Some(JSON) => tagged(text(StatusCode::OK, JSON, document.json.clone()), &document.hash),
        Some(_) => tagged(text(StatusCode::OK, v2::PROTOBUF, document.protobuf.clone()), &document.hash),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn document(documents: &Documents, path: &str, request: &ApiRequest, headers: &HeaderMap) -> Response {
    let Some(document) = documents.get(path) else {
        return text(StatusCode::NOT_FOUND, "", "");
    };
    let mut response = if preferred(&request.accept, &[JSON]).is_none() {
        text(StatusCode::NOT_ACCEPTABLE, "", "")
    } else {
        match request.parameter("hash") {
            // A client with an old hash is sent to the present one, so that what it keeps stays right.
            Some(hash) if hash != document.hash => {
                let mut response = text(StatusCode::MOVED_PERMANENTLY, "", "");
                if let Ok(location) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={}", document.hash)) {
                    response.headers_mut().insert(header::LOCATION, location);
                }
                response
            }
            _ if is_known(&document.hash, headers) => known(&document.hash),
            hash => {
                let mut response = text(StatusCode::OK, JSON, document.text().to_string());
                let caching = if hash.is_some() { "public, immutable" } else { "no-cache, private" };
                response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
                tagged(response, &document.hash)
            }
        }
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn aggregated(value: &Value, format: Format, headers: &HeaderMap) -> Response {
    let body = value.to_string();
    let etag = Sha256::digest(body.as_bytes()).iter().fold(String::new(), |text, byte| format!("{text}{byte:02X}"));
    let mut response = match format {
        _ if is_known(&etag, headers) => known(&etag),
        Format::Json => tagged(text(StatusCode::OK, discovery::AGGREGATED, body), &etag),
        Format::Yaml => {
            let body = crate::yaml::to_text(value);
            tagged(text(StatusCode::OK, discovery::AGGREGATED_YAML, body), &etag)
        }
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// Whether the client has the document of this hash.
fn is_known(etag: &str, headers: &HeaderMap) -> bool {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    known.is_some_and(|known| known.trim_matches('"') == etag)
}

fn known(etag: &str) -> Response {
    tagged(text(StatusCode::NOT_MODIFIED, "", ""), etag)
}

fn tagged(mut response: Response, etag: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{etag}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

fn json(value: &Value) -> Response {
    text(StatusCode::OK, JSON, value.to_string())
}

fn written(value: &Value, format: Format) -> Response {
    respond(&ApiResponse::value(200, value, format))
}

fn failure(error: &ApiError, request: &ApiRequest) -> Response {
    let format = negotiate::representation(&request.accept).map_or(Format::Json, |wanted| wanted.format);
    respond(&ApiResponse::value(error.code(), &error.to_status(), format))
}

fn not_acceptable() -> ApiError {
    let media_types = Route::Object.media_types();
    ApiError::not_acceptable(format!("only the following media types are accepted: {media_types}"))
}

fn text(code: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    if !content_type.is_empty() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}
