use std::io::Write as _;

use axum::Router;
use envtest::cluster::{Cluster, Options};
use parity::Tokens;
use tempfile::NamedTempFile;

/// The embedded server with the users that recordings speak for.
pub(crate) async fn embedded(tokens: &Tokens) -> Router {
    let users = format!("{},admin,uid,system:masters\n{},dev,,devs\n", tokens.admin, tokens.dev);
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(users.as_bytes()).unwrap();
    let options = Options { token_file: Some(file.path().to_owned()), ..Options::default() };
    Cluster::bind(options).await.unwrap().router()
}
