//! A scheduler that runs, asked at one of its ports what it knows.

use std::{net::IpAddr, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use http::{StatusCode, Uri};
use koord_program::{
    error_text::innermost,
    kubeconfig::{Selection, config},
};
use kube::{Client, Config, client::Body};
use serde_json::Value;

/// How long a scheduler may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
const LOOK: &str = "name a port of the scheduler with --scheduler, after kubectl port-forward where it is needed";
const SECURE: &str = "forward its secure port (kubectl port-forward POD 10259) and ask there, as a user who may get these paths: --scheduler https://127.0.0.1:10259";

/// What a scheduler answers under `/apis/v1/`; none where it knows nothing of that. An answer without these members is not one of a
/// scheduler.
pub(crate) async fn ask(scheduler: &str, path: &str, members: &[&str]) -> Result<Option<Value>> {
    let mut config = reached_by(url(scheduler)?).await?;
    // It is asked directly, and once: a standby replica answers 503 as long as it is one.
    config.proxy_url = None;
    config.default_retry = false;
    let url = scheduler.trim_end_matches('/');
    let client = Client::try_from(config).with_context(|| format!("--scheduler {scheduler}"))?;
    let request = http::Request::get(format!("/apis/v1/{path}")).body(Body::empty())?;
    let answer = async {
        let response = client.send(request).await?;
        let code = response.status();
        Ok::<_, kube::Error>((code, response.into_body().collect_bytes().await?))
    };
    let (code, body) = match tokio::time::timeout(ANSWER_MAX, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => bail!("{url} does not answer: {}; {LOOK}", innermost(&error)),
        Err(_) => bail!("{url} does not answer within {ANSWER_MAX:?}; {LOOK}"),
    };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match code {
        StatusCode::OK if members.iter().all(|member| answer.get(member).is_some()) => Ok(Some(answer)),
        StatusCode::OK => Err(outdated(scheduler)),
        StatusCode::NOT_FOUND => Ok(None),
        StatusCode::SERVICE_UNAVAILABLE => bail!(
            "{url} does not schedule now ({}); ask the replica that holds the Lease",
            answer["message"].as_str().unwrap_or("503 Service Unavailable")
        ),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let why = answer["message"].as_str().unwrap_or("it does not say why");
            let remedy = if url.starts_with("https://") { "ask as another user" } else { SECURE };
            bail!("{url} answers {code} to /apis/v1/{path}: {why}; {remedy}")
        }
        code => bail!("{url} answers {code} to /apis/v1/{path}; {LOOK}"),
    }
}

/// How the scheduler is reached at a URL. At its secure port it is asked as the user of the kubeconfig. A scheduler that nobody gave a certificate
/// has made one that nobody can check, so any will do at the other end of kubectl port-forward, and elsewhere none but those that are trusted.
async fn reached_by(url: Uri) -> Result<Config> {
    if url.scheme_str() != Some("https") {
        return Ok(Config::new(url));
    }
    let known = config(&Selection { file: None, context: None }).await;
    let mut config = known.map_err(|error| anyhow!("{error}; {}", error.remedy()))?;
    config.accept_invalid_certs = url.host().is_some_and(is_here);
    (config.root_cert, config.tls_server_name) = (None, None);
    config.cluster_url = url;
    Ok(config)
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}

/// The URL of an address, which is one of HTTP where it names no scheme.
fn url(scheduler: &str) -> Result<Uri> {
    let text = if scheduler.contains("://") { scheduler.to_owned() } else { format!("http://{scheduler}") };
    let known = text.parse::<Uri>().ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    known.with_context(|| {
        format!("--scheduler {scheduler:?} is no address of a scheduler; write HOST:PORT, http://HOST:PORT or https://HOST:PORT, such as 127.0.0.1:10251")
    })
}

/// What answers is no scheduler, or is too old for the question.
pub(crate) fn outdated(scheduler: &str) -> anyhow::Error {
    anyhow!("what answers at {scheduler} knows no queue; name a port of koord-scheduler (--secure-port, 10259)")
}

/// A value of an answer as text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_not_checked_on_this_machine_alone() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("127.1.2.3", true),
            ("[::1]", true),
            ("localhost", true),
            ("10.0.0.1", false),
            ("scheduler", false),
            ("localhost.example.com", false),
        ] {
            assert_eq!(is_here(host), expected, "{host}");
        }
    }
}
