//! Whole collections of a cluster, read once and page by page, and single objects.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use koord_core::list::Page;
use kube::Client;
use serde_json::{Value, value::RawValue};

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

/// Hands every object of a collection to `see`, as text. `query` is empty or comes from [`query`].
pub async fn each(
    client: &Client,
    path: &str,
    query: &str,
    part: Part,
    mut see: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut token = String::new();
    loop {
        let mut uri = format!("{path}?limit={PAGE}{query}");
        if !token.is_empty() {
            uri.push_str("&continue=");
            uri.push_str(&escaped(&token));
        }
        let accept = match part {
            Part::Whole => "application/json",
            Part::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        };
        let request = http::Request::get(&uri).header(http::header::ACCEPT, accept).body(Vec::new())?;
        let text = client.request_text(request).await?;
        let page = Page::<&RawValue>::parse(&text).with_context(|| format!("the answer to {path} is no list"))?;
        page.items.iter().try_for_each(|item| see(item.get()))?;
        if page.metadata.token.is_empty() {
            return Ok(());
        }
        token = page.metadata.token;
    }
}

/// The object at a path of the API; none where there is none.
pub async fn get(client: &Client, path: &str) -> Result<Option<Value>> {
    let request = http::Request::get(path).body(Vec::new())?;
    match client.request(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        result => result.map(Some).with_context(|| format!("{path} cannot be read")),
    }
}

/// Whether an error says that a collection does not exist, as where the definition of its kind is not installed.
pub fn is_absent(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
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
