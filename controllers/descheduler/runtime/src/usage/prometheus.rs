//! Usage that a query of Prometheus gives.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use koord_config::descheduler::{Prometheus as Configured, SecretReference};
use koord_runtime::{
    api::{Api, excerpt, refused},
    clock::Clock,
    error::in_one_line,
    write::Answer,
};
use kube::{Client, Config, client::Body};
use serde::Deserialize;
use serde_json::Value;

use super::{MeasureError, Measured, within};

const PATH: &str = "/api/v1/query";
/// The longest answer: five thousand nodes with some labels are 2 MiB.
const BYTES_MAX: usize = 32 << 20;
/// The longest file with a token or certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The key of the Secret that has the token.
const TOKEN: &str = "prometheusAuthToken";

/// The way to Prometheus.
pub(super) struct Prometheus {
    configured: Configured,
    account: ServiceAccount,
    client: Result<Client, String>,
}

/// The files of the service account of the pod, where there is one.
#[derive(Clone, Debug)]
pub(super) struct ServiceAccount {
    pub(super) token: PathBuf,
    /// The authority whose certificates are trusted, if there is a file.
    pub(super) authority: PathBuf,
}

impl Default for ServiceAccount {
    fn default() -> Self {
        let folder = PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount");
        Self { token: folder.join("token"), authority: folder.join("ca.crt") }
    }
}

#[derive(Deserialize)]
struct Response {
    status: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Data {
    result_type: String,
    result: Value,
}

#[derive(Deserialize)]
struct Sample {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

impl Prometheus {
    /// Nothing is contacted yet.
    pub(super) fn new(configured: Configured, account: ServiceAccount) -> Self {
        let client = client(&configured.url, &account);
        Self { configured, account, client }
    }

    #[cfg(test)]
    pub(super) fn answer_by(&mut self, client: Client) {
        self.client = Ok(client);
    }

    /// How much of each node is used, by a query: from 0 to 1.
    pub(super) async fn query(
        &self,
        api: &Api,
        clock: &dyn Clock,
        query: &str,
    ) -> Result<Measured<BTreeMap<Arc<str>, f64>>, MeasureError> {
        let body = within(clock, async {
            let token = self.token(api).await?;
            let form = form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
            match self.send(Method::POST, PATH, form.clone(), token.as_deref()).await? {
                // Some proxies let only reads pass.
                (StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED, _) => {
                    self.send(Method::GET, &format!("{PATH}?{form}"), String::new(), token.as_deref()).await
                }
                answer => Ok(answer),
            }
        });
        let (status, body) = body.await??;
        shares(status, &body)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        form: String,
        token: Option<&str>,
    ) -> Result<(StatusCode, Vec<u8>), MeasureError> {
        let client = self.client.as_ref().map_err(|reason| MeasureError::Request(reason.clone()))?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Body::from(form.into_bytes()));
        let request = request.map_err(|error| MeasureError::Request(error.to_string()))?;
        let answer = client.send(request).await.map_err(|error| MeasureError::Request(in_one_line(&error)))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), BYTES_MAX).collect().await;
        let body = body.map_err(|error| MeasureError::Request(in_one_line(&*error)))?;
        Ok((status, body.to_bytes().to_vec()))
    }

    /// The token of the configured Secret, or of the service account of the pod. Without TLS none is sent.
    async fn token(&self, api: &Api) -> Result<Option<String>, MeasureError> {
        if !self.configured.url.starts_with("https://") {
            return Ok(None);
        }
        match &self.configured.auth_token {
            Some(token) => of_secret(api, &token.secret_reference).await.map(Some),
            None => Ok(read(&self.account.token).map(|token| token.trim().to_owned())),
        }
    }
}

async fn of_secret(api: &Api, secret: &SecretReference) -> Result<String, MeasureError> {
    let SecretReference { namespace, name } = secret;
    let error = |reason: String| MeasureError::Token { secret: format!("{namespace}/{name}"), reason };
    let uri = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
    let answer = api.get_up_to(4 << 20, uri).await.map_err(|failure| error(failure.message))?;
    let body = match answer {
        Answer { code: 200, body, .. } => body,
        answer => return Err(error(refused(&answer).message)),
    };
    let secret: Value = serde_json::from_str(&body).map_err(|_| error("it is no Secret".to_owned()))?;
    let data = secret["data"][TOKEN].as_str().filter(|data| !data.is_empty());
    let data = data.ok_or_else(|| error(format!("it has no {TOKEN}")))?;
    let token = decoded(data).filter(|token| !token.is_empty() && token.is_ascii());
    token.ok_or_else(|| error(format!("its {TOKEN} is no token")))
}

fn decoded(data: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).ok()?;
    String::from_utf8(bytes).ok().map(|token| token.trim().to_owned())
}

/// A small file, if there is one that can be read.
fn read(file: &std::path::Path) -> Option<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(file).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn client(url: &str, account: &ServiceAccount) -> Result<Client, String> {
    let uri = url.trim_end_matches('/').parse::<http::Uri>().map_err(|error| format!("{url} is no URL: {error}"))?;
    let mut config = Config::new(uri);
    config.root_cert = read(&account.authority).and_then(|text| certificates(&text));
    config.default_retry = false;
    Client::try_from(config).map_err(|error| in_one_line(&error))
}

/// The certificates of a PEM text.
fn certificates(text: &str) -> Option<Vec<Vec<u8>>> {
    use rustls_pki_types::{CertificateDer, pem::PemObject as _};
    let found: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(text.as_bytes())
        .filter_map(Result::ok)
        .map(|certificate| certificate.to_vec())
        .collect();
    Some(found).filter(|found| !found.is_empty())
}

/// The shares that an answer has. A sample that names no node, or no share of it, is left out.
fn shares(status: StatusCode, body: &[u8]) -> Result<Measured<BTreeMap<Arc<str>, f64>>, MeasureError> {
    let response: Response = serde_json::from_slice(body).map_err(|error| match status {
        StatusCode::OK => MeasureError::Form(error.to_string()),
        _ => MeasureError::Request(format!("{status}: {}", excerpt(&String::from_utf8_lossy(body)))),
    })?;
    if response.status != "success" {
        return Err(MeasureError::Request(format!("{status}: {}", excerpt(&response.error))));
    }
    if response.data.result_type != "vector" {
        return Err(MeasureError::Form(format!(
            "the query gives a {}, not a vector: a number for each instance",
            excerpt(&response.data.result_type)
        )));
    }
    let Value::Array(samples) = response.data.result else {
        return Err(MeasureError::Form("the vector is no list".to_owned()));
    };
    let mut measured = Measured::<BTreeMap<Arc<str>, f64>>::default();
    let mut twice = Vec::new();
    for sample in samples {
        match share(sample) {
            Ok((node, share)) => {
                if measured.value.insert(Arc::clone(&node), share).is_some() {
                    twice.push(node);
                }
            }
            Err(reason) => measured.leave_out(reason),
        }
    }
    for node in twice {
        if measured.value.remove(&node).is_some() {
            measured.leave_out(format!("instance {node:?} has several samples; aggregate them by (instance)"));
        }
    }
    Ok(measured)
}

fn share(sample: Value) -> Result<(Arc<str>, f64), String> {
    let Sample { metric, value: (_, value) } =
        serde_json::from_value(sample).map_err(|error| format!("a sample cannot be read: {error}"))?;
    let Some(instance) = metric.get("instance") else {
        return Err("a sample has no label instance, which names the node".to_owned());
    };
    let share = value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    let share =
        share.ok_or_else(|| format!("instance {instance:?} has {}, not a number from 0 to 1", excerpt(&value)))?;
    Ok((Arc::from(&**instance), share))
}
