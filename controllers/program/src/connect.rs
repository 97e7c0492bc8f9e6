//! A client for the cluster that the flags name.

use std::{io, path::Path, time::Duration};

use http::{HeaderMap, StatusCode, header};
use jiff::{Timestamp, fmt::rfc2822};
use kube::{Client, Config, client::Body};
use rustls::{CertificateError, pki_types::UnixTime};
use serde_json::Value;

use crate::{
    in_one_line,
    kubeconfig::{self, ConfigError, Selection},
    names::question,
};

/// How long a server may take to answer the first question.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Which cluster a command talks to.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterFlags<'a> {
    /// The value of `--kubeconfig`; without it $KUBECONFIG, ~/.kube/config or the pod's service account.
    pub kubeconfig: Option<&'a Path>,
    /// The value of `--context`; without it the current one.
    pub context: Option<&'a str>,
    /// What a user without a cluster can do instead, for errors: ``run `kind create cluster` ``.
    pub otherwise: Option<&'a str>,
}

/// Why there is no cluster to talk to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct Unreachable {
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Unreachable {
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

/// An API server that has answered.
#[derive(Clone)]
pub struct Server {
    /// For further questions.
    pub client: Client,
    /// Its URL, without a slash at the end.
    pub url: String,
    /// What time it is in the cluster, to the second: the machine of whoever asks may go wrong, and a cluster of
    /// `up --speed` has a time of its own. None where the server does not say.
    pub time: Option<Timestamp>,
    /// The body of `/version`; null where this user may not read it.
    pub version: Value,
}

/// Finds the server and asks it for its version, so that an unreachable server is one clear error.
pub async fn reach(cluster: &ClusterFlags<'_>) -> Result<Server, Unreachable> {
    let config = config(cluster).await?;
    let url = config.cluster_url.to_string();
    let url = url.trim_end_matches('/');
    let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone()).unwrap_or_default();
    let client = Client::try_from(config).map_err(|error| match error {
        kube::Error::Auth(error) => Unanswered::Credentials(format!("{plugin}: {}", in_one_line(&error))).at(url),
        error => Unreachable::new(
            format!("the kubeconfig's address or certificates cannot be used: {}", in_one_line(&error)),
            "name another with --kubeconfig or --context",
        ),
    })?;
    let answer = tokio::time::timeout(ANSWER_MAX, version(&client)).await;
    let answer = answer.unwrap_or_else(|_| Err(Unanswered::Silent(format!("no answer within {ANSWER_MAX:?}"))));
    let (time, version) = answer.map_err(|why| why.at(url))?;
    Ok(Server { client, url: url.to_owned(), time, version })
}

/// A client of a server that has answered.
pub async fn client(cluster: &ClusterFlags<'_>) -> Result<Client, Unreachable> {
    reach(cluster).await.map(|server| server.client)
}

/// Why a server did not answer with its version.
enum Unanswered {
    /// Nothing came.
    Silent(String),
    /// No TLS connection.
    Tls(rustls::Error),
    /// The credentials could not be got.
    Credentials(String),
    /// It answers something else.
    Answered(StatusCode),
    /// It is something else.
    Foreign,
}

/// What is wrong with a certificate, with times as people read them.
fn of_certificate(problem: &CertificateError) -> String {
    let date = |time: UnixTime| {
        let seconds = i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
        seconds.map_or_else(|| "a time that cannot be written".to_owned(), |time| time.to_string())
    };
    match problem {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("certificate expired: it was valid until {}", date(*not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("certificate not valid yet: it is from {} on", date(*not_before))
        }
        other => other.to_string(),
    }
}

impl Unanswered {
    fn at(self, url: &str) -> Unreachable {
        let anew = "get a kubeconfig anew, or name another with --kubeconfig or --context";
        let look = "see that the server runs and that kubeconfig and context are right: kubectl cluster-info";
        match self {
            Self::Silent(why) => Unreachable::new(format!("{url} does not answer: {why}"), look),
            Self::Tls(rustls::Error::InvalidCertificate(problem)) => {
                let problem = of_certificate(&problem);
                let words = format!("{url} presents a certificate that the kubeconfig does not trust: {problem}");
                Unreachable::new(words, anew)
            }
            Self::Tls(error @ rustls::Error::AlertReceived(_)) => {
                Unreachable::new(format!("{url} does not take the kubeconfig's certificate: {error}"), anew)
            }
            Self::Tls(error) => Unreachable::new(format!("{url} speaks no TLS that is understood: {error}"), look),
            Self::Credentials(why) => Unreachable::new(
                format!("the kubeconfig's credentials cannot be got: {why}"),
                "log in as its user's exec or auth-provider wants it, or name another with --context",
            ),
            Self::Answered(StatusCode::UNAUTHORIZED) => Unreachable::new(
                format!(
                    "{url} does not know who asks (401): the kubeconfig's token or certificate is wrong or has ended"
                ),
                "log in anew, or name another with --kubeconfig or --context",
            ),
            Self::Answered(code) => Unreachable::new(format!("{url} answers {code} to /version"), look),
            Self::Foreign => Unreachable::new(format!("what answers at {url} is no Kubernetes API server"), look),
        }
    }
}

impl From<kube::Error> for Unanswered {
    fn from(error: kube::Error) -> Self {
        let mut cause: &(dyn std::error::Error + 'static) = &error;
        loop {
            if let Some(tls) = of_handshake(cause) {
                return Self::Tls(tls.clone());
            }
            if cause.is::<kube::client::AuthError>() {
                return Self::Credentials(cause.to_string());
            }
            match cause.source() {
                Some(deeper) => cause = deeper,
                None => return Self::Silent(cause.to_string()),
            }
        }
    }
}

/// Why a handshake failed: it is wrapped, once or twice, where no source leads to.
fn of_handshake<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.downcast_ref().or_else(|| wrapped.and_then(|wrapped| of_handshake(wrapped)))
}

async fn version(client: &Client) -> Result<(Option<Timestamp>, Value), Unanswered> {
    let request = http::Request::get("/version").body(Body::empty()).map_err(|_| Unanswered::Foreign)?;
    let response = client.send(request).await?;
    let (code, time) = (response.status(), date(response.headers()));
    match code {
        // Who may not ask for this may still ask for the rest.
        StatusCode::FORBIDDEN => Ok((time, Value::Null)),
        code if code.is_success() => {
            let body = response.into_body().collect_bytes().await?;
            let version: Option<Value> = serde_json::from_slice(&body).ok();
            let version = version.filter(|version| version["gitVersion"].is_string()).ok_or(Unanswered::Foreign)?;
            Ok((time, version))
        }
        code => Err(Unanswered::Answered(code)),
    }
}

/// The configuration that the flags name.
async fn config(cluster: &ClusterFlags<'_>) -> Result<Config, Unreachable> {
    let ClusterFlags { kubeconfig, context, otherwise } = *cluster;
    let config = kubeconfig::config(&Selection { file: kubeconfig, context }).await;
    config.map_err(|error| unconfigured(&error, otherwise))
}

/// That no configuration names a server, or one that cannot be used.
fn unconfigured(error: &ConfigError, otherwise: Option<&str>) -> Unreachable {
    let otherwise = otherwise.map(|otherwise| format!(", or {otherwise}")).unwrap_or_default();
    let remedy = match error {
        ConfigError::NotFound(_) => format!("name a kubeconfig with --kubeconfig or $KUBECONFIG{otherwise}"),
        ConfigError::Read { .. } => "name another with --kubeconfig".to_owned(),
        ConfigError::NoContexts(_) => format!("name another with --kubeconfig{otherwise}"),
        ConfigError::NoCurrentContext { contexts, .. } => {
            format!("choose one with --context: {}", contexts.join(", "))
        }
        ConfigError::UnknownContext { context, contexts, .. } => question(context, contexts.iter().map(String::as_str))
            .unwrap_or_else(|| format!("it has: {}", contexts.join(", "))),
        ConfigError::UnknownCluster { .. } => "choose another context with --context".to_owned(),
        ConfigError::Invalid { .. } => "name another with --kubeconfig or --context".to_owned(),
    };
    Unreachable::new(error.to_string(), remedy)
}

/// The time in the header of an answer.
pub fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}
