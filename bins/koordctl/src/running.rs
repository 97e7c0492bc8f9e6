//! A scheduler that runs, asked at its HTTP port what it knows.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use http::{StatusCode, Uri};
use koord_program::error_text::innermost;
use kube::{Client, Config, client::Body};
use serde_json::Value;

/// How long a scheduler may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
const LOOK: &str = "name the scheduler's HTTP port with --scheduler, after kubectl port-forward where it is needed";

/// What a scheduler answers under `/apis/v1/`; none where it knows nothing of that. An answer without these members is not one of a
/// scheduler.
pub(crate) async fn ask(scheduler: &str, path: &str, members: &[&str]) -> Result<Option<Value>> {
    let mut config = Config::new(url(scheduler)?);
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
        code => bail!("{url} answers {code} to /apis/v1/{path}; {LOOK}"),
    }
}

/// The URL of an address, which is one of HTTP where it names no scheme.
fn url(scheduler: &str) -> Result<Uri> {
    let text = if scheduler.contains("://") { scheduler.to_owned() } else { format!("http://{scheduler}") };
    let known = text.parse::<Uri>().ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    known.with_context(|| {
        format!("--scheduler {scheduler:?} is no address of a scheduler; write HOST:PORT or http://HOST:PORT, such as 127.0.0.1:10251")
    })
}

/// What answers is no scheduler, or is too old for the question.
pub(crate) fn outdated(scheduler: &str) -> anyhow::Error {
    anyhow!("what answers at {scheduler} knows no queue; name the HTTP port of koord-scheduler (--port, 10251)")
}

/// A value of an answer as text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
