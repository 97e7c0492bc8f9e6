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
                Discovery::Aggregated => aggregated(&discovery::aggregated(registry, true), headers),
                Discovery::Plain(format) => {
                    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
                    written(&discovery::core_versions(registry, host), format)
                }
            }),
            ["apis"] => match negotiated(request, !request.path.ends_with('/')) {
                Ok(Discovery::Aggregated) => aggregated(&discovery::aggregated(registry, false), headers),
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
                merged_document(documents.merged(), request)
            }
            ["openapi", "v3"] => {
                let mut documents = self.documents.lock();
                documents.refresh(registry);
                text(StatusCode::OK, TEXT, documents.index().to_string())
            }
            ["openapi", "v3", ref rest @ ..] => {
                let mut documents = self.documents.lock();
                documents.refresh(registry);
                document(&documents, &rest.join("/"), request)
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
            Discovery::Aggregated => failure(&not_acceptable(), request),
        })),
        None if discovery::is_built_in(group) => Some(failure(&ApiError::no_such_resource(), request)),
        None => None,
    }
}

/// A form of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discovery {
    /// Everything about all groups in one document.
    Aggregated,
    /// A document of its own for each path.
    Plain(Format),
}

/// The first form of discovery that the client accepts and the path has.
fn negotiated(request: &ApiRequest, has_aggregated: bool) -> Result<Discovery, ApiError> {
    negotiate::clauses(&request.accept)
        .into_iter()
        .find_map(|clause| {
            let format = negotiate::format(clause)?;
            let parameter = |name: &str| negotiate::parameter(clause, name);
            match parameter("as") {
                None => Some(Discovery::Plain(format)),
                Some("APIGroupDiscoveryList")
                    if has_aggregated
                        && format == Format::Json
                        && parameter("g") == Some("apidiscovery.k8s.io")
                        && parameter("v") == Some("v2") =>
                {
                    Some(Discovery::Aggregated)
                }
                Some(_) => None,
            }
        })
        .or_else(|| request.accept.trim().is_empty().then_some(Discovery::Plain(Format::Json)))
        .ok_or_else(not_acceptable)
}

/// A page that any method reads, in the text form that the client accepts.
fn plain(page: &Value, request: &ApiRequest) -> Response {
    match negotiated(request, false) {
        Ok(Discovery::Plain(format)) => written(page, format),
        Ok(Discovery::Aggregated) => failure(&not_acceptable(), request),
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

/// Whether a client that accepts this takes a document in this media type.
fn takes(accept: &str, media_types: &[&str]) -> bool {
    accept.trim().is_empty()
        || negotiate::clauses(accept).iter().any(|clause| media_types.contains(&negotiate::media_type(clause)))
}

/// `/openapi/v2`, as protobuf where the client prefers that.
fn merged_document(document: &Merged, request: &ApiRequest) -> Response {
    let json: &[&str] = &["application/json", "application/*", "*/*"];
    let protobuf: &[&str] = &[v2::PROTOBUF, v2::PROTOBUF_ALIAS];
    let preferred = negotiate::clauses(&request.accept).into_iter().map(negotiate::media_type);
    let preferred = preferred.into_iter().find(|name| json.contains(name) || protobuf.contains(name));
    let mut response = match preferred {
        Some(name) if protobuf.contains(&name) => text(StatusCode::OK, v2::PROTOBUF, document.protobuf.clone()),
        Some(_) => text(StatusCode::OK, JSON, document.json.clone()),
        None if request.accept.trim().is_empty() => text(StatusCode::OK, JSON, document.json.clone()),
        None => return text(StatusCode::NOT_ACCEPTABLE, "", ""),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    set_etag(&mut response, &document.hash);
    response
}

fn document(documents: &Documents, path: &str, request: &ApiRequest) -> Response {
    let Some(document) = documents.get(path) else {
        return text(StatusCode::NOT_FOUND, "", "");
    };
    if !takes(&request.accept, &[JSON, "application/*", "*/*"]) {
        return text(StatusCode::NOT_ACCEPTABLE, "", "");
    }
    let hash = request.parameter("hash");
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
