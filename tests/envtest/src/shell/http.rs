//! HTTP requests to requests of the core, and its answers to responses.

use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts};
use koord_listen::ReadError;

use super::{Server, deadline, kubelet, stream};
use crate::{
    negotiate::{self, Format},
    request::{ApiRequest, User, parse_query},
    server::{ApiResponse, ApiServer, kubelet::may_be_for_kubelet},
    status::ApiError,
};

/// The largest body that is read, as in the real server.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

pub(super) async fn serve(State(server): State<Server>, request: Request) -> Response {
    let mut response = serve_undated(&server, request).await;
    if let Some(date) = date(server.with_core(ApiServer::now)) {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}

async fn serve_undated(server: &Server, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (parts, body) = match pass_to_kubelet(server, parts, body).await {
        Ok(response) => return response,
        Err(request) => *request,
    };
    let body = match koord_listen::read(body, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(error) => return respond(&refusal(&error).into()),
    };
    let header =
        |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut request = ApiRequest::new(parts.method.clone(), parts.uri.path(), body);
    request.query = parse_query(parts.uri.query().unwrap_or_default());
    request.content_type = header(header::CONTENT_TYPE);
    request.accept = accept(&parts.headers);
    request.user_agent = header(header::USER_AGENT);
    if let Some(user) = parts.extensions.get::<User>() {
        request.user = user.clone();
    }
    for pages in &server.shared.pages {
        let page = server.with_core(|core| pages.page(core, &request, &parts.headers));
        if let Some(page) = page {
            return page;
        }
    }
    let answer = match deadline::of(&request) {
        Ok(None) => server.answer(&request).await,
        Ok(Some(limit)) => match tokio::time::timeout(limit, server.answer(&request)).await {
            Ok(answer) => answer,
            Err(_) => Ok(ApiResponse::error(&deadline::passed())),
        },
        Err(error) => Ok(ApiResponse::error(&error)),
    };
    match answer {
        Ok(answer) => respond(&as_accepted(answer, &request.accept)),
        Err(watch) => {
            let warnings = watch.warnings().to_vec();
            let mut response = Response::new(stream::body(server, watch));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            warn(response.headers_mut(), &warnings);
            response
        }
    }
}

/// What a kubelet answers, where one is asked; the request again where none is.
async fn pass_to_kubelet(server: &Server, parts: Parts, body: Body) -> Result<Response, Box<(Parts, Body)>> {
    let Some(kubelets) = server.shared.kubelets.as_deref().filter(|_| may_be_for_kubelet(parts.uri.path())) else {
        return Err(Box::new((parts, body)));
    };
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let mut request = ApiRequest::new(parts.method.clone(), path, "");
    request.query = parse_query(query);
    match server.with_core(|core| core.kubelet_call(&request, path, query)) {
        None => Err(Box::new((parts, body))),
        Some(Ok(call)) => {
            let answer = kubelet::pass(kubelets, &call, parts, body).await;
            Ok(answer.unwrap_or_else(|error| respond(&ApiResponse::error(&error))))
        }
        Some(Err(error)) => Ok(respond(&ApiResponse::error(&error))),
    }
}

/// Failures in the text form that the client prefers.
fn as_accepted(answer: ApiResponse, accept: &str) -> ApiResponse {
    let wants_yaml = negotiate::representation(accept).is_ok_and(|wanted| wanted.format == Format::Yaml);
    if answer.code < 400 || answer.content_type != "application/json" || !wants_yaml {
        return answer;
    }
    let status = serde_json::from_slice(&answer.body).unwrap_or_default();
    let ApiResponse { content_type, body, .. } = ApiResponse::value(answer.code, &status, Format::Yaml);
    ApiResponse { content_type, body, ..answer }
}

/// The answer to a body that could not be read.
fn refusal(error: &ReadError) -> ApiError {
    match error {
        ReadError::TooLarge(max) => {
            ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {max}"))
        }
        ReadError::Slow(message) => ApiError::new(408, "Timeout", message.clone()),
        ReadError::NoRoom(message) => ApiError::new(429, "TooManyRequests", message.clone()),
        ReadError::Broken(message) => ApiError::bad_request(message.clone()),
    }
}

/// The cluster's time, which need not be the machine's.
fn date(now: jiff::Timestamp) -> Option<HeaderValue> {
    let text = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()?;
    HeaderValue::from_str(&text).ok()
}

/// All `Accept` headers as one.
fn accept(headers: &HeaderMap) -> String {
    let values: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

/// The HTTP response of an answer.
pub fn respond(answer: &ApiResponse) -> Response {
    let mut response = Response::new(Body::from(answer.body.clone()));
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if answer.code != 204 {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    }
    if let Some(seconds) = answer.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    warn(headers, &answer.warnings);
    response
}

/// Runes of all warnings together; beyond it, each is cut.
const WARNINGS_RUNES_MAX: usize = 4096;
/// Runes of a warning that is cut.
const WARNING_RUNES_MAX: usize = 256;

/// Adds a `Warning` header for each text, each text once. Where they are too much together, long ones are cut and the
/// last ones are left out.
fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    let mut texts: Vec<&str> = Vec::new();
    for text in warnings.iter().map(String::as_str).filter(|text| !text.is_empty()) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.retain(|text| !text.chars().any(char::is_control));
    let runes = |text: &str| text.chars().count();
    let is_cut = texts.iter().map(|text| runes(text)).sum::<usize>() > WARNINGS_RUNES_MAX;
    let mut written = 0;
    for text in texts {
        if written >= WARNINGS_RUNES_MAX {
            break;
        }
        let text: String = text.chars().take(if is_cut { WARNING_RUNES_MAX } else { usize::MAX }).collect();
        written += runes(&text);
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(warnings: &[String]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        warn(&mut headers, warnings);
        headers.get_all(header::WARNING).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into()).collect()
    }

    #[test]
    fn each_warning_is_sent_once_and_none_with_control_characters() {
        let texts = ["a", "a", "", "new\nline", "say \"b\""].map(ToOwned::to_owned);
        assert_eq!(warned(&texts), ["299 - \"a\"", r#"299 - "say \"b\"""#]);
    }

    #[test]
    fn too_many_warnings_are_cut_and_the_last_left_out() {
        let long = "x".repeat(300);
        assert_eq!(warned(std::slice::from_ref(&long))[0].len(), 300 + "299 - \"\"".len());
        let many: Vec<String> = (0..20).map(|index| format!("{index:02}{}", "y".repeat(300))).collect();
        let sent = warned(&many);
        assert_eq!(sent.len(), 16);
        assert!(sent.iter().all(|text| text.len() == 256 + "299 - \"\"".len()));
    }
}
