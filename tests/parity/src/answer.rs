//! One answer of the server.

use axum::{
    body::Body,
    http::{Response, response},
};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value};

use crate::Normaliser;

/// Status, headers and body of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn head(parts: &response::Parts) -> Self {
        let header = |name: &str| {
            parts.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            status: parts.status.as_u16(),
            content_type: header("content-type").next().unwrap_or_default(),
            warnings: header("warning").collect(),
            body: Value::Null,
        }
    }

    pub(crate) async fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let plain = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        let head = Self::head(&parts);
        let is_json = head.content_type.contains("json") || matches!(bytes.first(), Some(b'{' | b'['));
        let body = if is_json { serde_json::from_slice(&bytes).unwrap_or_else(|_| plain()) } else { plain() };
        Self { body, ..head }
    }

    pub(crate) fn headers(&self, normaliser: &mut Normaliser) -> Value {
        let mut headers = Map::new();
        if !self.content_type.is_empty() {
            headers.insert("Content-Type".to_owned(), Value::from(self.content_type.clone()));
        }
        if !self.warnings.is_empty() {
            let mut warnings: Vec<String> = self.warnings.iter().map(|warning| normaliser.text(warning)).collect();
            warnings.sort();
            headers.insert("Warning".to_owned(), Value::from(warnings));
        }
        Value::Object(headers)
    }
}
