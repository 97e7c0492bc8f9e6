//! Objects of a bench driver at an API server, as JSON.

use std::path::Path;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request, header};
use kube::Client;
use serde_json::Value;

/// An object to be created: the path of its collection and its content.
pub type Object = (String, Value);

/// A client with a connection of its own.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let config = koord_program::kubeconfig::from_file(kubeconfig, None).await?;
    Ok(Client::try_from(config)?)
}

/// Does something about many things, 32 at a time.
pub async fn each<T, F: Future<Output = Result<Value>>>(
    things: impl IntoIterator<Item = T>,
    act: impl Fn(T) -> F,
) -> Result<()> {
    const AT_ONCE: usize = 32;
    stream::iter(things.into_iter().map(act)).buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await
}

/// Creates an object.
pub async fn create(client: &Client, (path, object): Object) -> Result<Value> {
    send(client, Method::POST, &path, "application/json", &object).await
}

/// Sends a body, and gives the answer.
pub async fn send(client: &Client, method: Method, path: &str, content_type: &str, body: &Value) -> Result<Value> {
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
    Ok(client.request(request.body(serde_json::to_vec(body)?)?).await?)
}

/// Reads an object or a list.
pub async fn get(client: &Client, path: &str) -> Result<Value> {
    Ok(client.request(Request::get(path).body(Vec::new())?).await?)
}
