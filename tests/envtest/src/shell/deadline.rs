//! The time that a client allows its request: `?timeout=`.

use std::time::Duration;

use crate::{request::ApiRequest, status::ApiError};

/// Subresources whose answers end when their client wants.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// How long a request may take; none when the client does not say, or asks for a stream.
pub(super) fn of(request: &ApiRequest) -> Result<Option<Duration>, ApiError> {
    let text = request.parameter("timeout").unwrap_or_default();
    if text.is_empty() || is_stream(request) {
        return Ok(None);
    }
    let given: koord_resource::Duration = text
        .parse()
        .map_err(|error| ApiError::bad_request(format!("invalid timeout specified in the request URL - {error}")))?;
    Ok(given.to_std().filter(|given| !given.is_zero()))
}

/// The answer to a request that took longer.
pub(super) fn passed() -> ApiError {
    let why = "Timeout: request did not complete within requested timeout - context deadline exceeded";
    ApiError::new(504, "Timeout", why)
}

fn is_stream(request: &ApiRequest) -> bool {
    let mut parts = request.path.split('/');
    let watches = matches!(request.parameter("watch"), Some("" | "1" | "true"));
    watches
        || parts.any(|part| part == "watch")
        || request.path.rsplit('/').next().is_some_and(|last| STREAMS.contains(&last))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn read(query: &[(&str, &str)]) -> Result<Option<Duration>, String> {
        let mut request = ApiRequest::new(Method::GET, "/api/v1/pods", "");
        request.query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        of(&request).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_timeout_is_a_duration_of_go() {
        assert_eq!(read(&[("timeout", "1m30s")]), Ok(Some(Duration::from_secs(90))));
        for unlimited in ["", "0s", "-1s"] {
            assert_eq!(read(&[("timeout", unlimited)]), Ok(None), "{unlimited}");
        }
        let invalid = |text: &str| format!("invalid timeout specified in the request URL - time: {text}");
        assert_eq!(read(&[("timeout", "abc")]), Err(invalid(r#"invalid duration "abc""#)));
        assert_eq!(read(&[("timeout", "5")]), Err(invalid(r#"missing unit in duration "5""#)));
        assert_eq!(read(&[("timeout", "abc"), ("watch", "true")]), Ok(None), "a watch has timeoutSeconds");
    }
}
