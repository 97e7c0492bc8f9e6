//! Whole collections of a cluster, read once and page by page.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Objects per request.
const PAGE: u32 = 500;

/// What of each object is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Only its metadata.
    Metadata,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMetadata {
    r#continue: Option<String>,
}

/// Hands every object of a collection to `see`, as text. `query` is empty or comes from [`query`].
pub async fn each(
    client: &Client,
    path: &str,
    query: &str,
    part: Part,
    mut see: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut token: Option<String> = None;
    loop {
        let mut uri = format!("{path}?limit={PAGE}{query}");
        if let Some(token) = &token {
            uri.push_str("&continue=");
            uri.push_str(&escaped(token));
        }
        let accept = match part {
            Part::Whole => "application/json",
            Part::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        };
        let request = http::Request::get(&uri).header(http::header::ACCEPT, accept).body(Vec::new())?;
        let text = client.request_text(request).await?;
        let page: Page<'_> = serde_json::from_str(&text).with_context(|| format!("the answer to {path} is no list"))?;
        page.items.iter().try_for_each(|item| see(item.get()))?;
        match page.metadata.r#continue.filter(|token| !token.is_empty()) {
            Some(next) => token = Some(next),
            None => return Ok(()),
        }
    }
}

/// The part of a query that selects; what is empty selects all.
pub fn query(fields: &str, labels: &str) -> String {
    let mut query = String::new();
    for (name, selector) in [("fieldSelector", fields), ("labelSelector", labels)] {
        if !selector.is_empty() {
            query.extend(["&", name, "=", &escaped(selector)]);
        }
    }
    query
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
