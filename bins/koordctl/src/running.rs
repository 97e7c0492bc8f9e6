//! A scheduler that runs, asked at its HTTP port what it knows.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use http::StatusCode;
use koord_program::in_one_line;
use kube::{Client, Config, client::Body};
use serde_json::Value;

/// How long a scheduler may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
const LOOK: &str = "name the scheduler's HTTP port with --scheduler, after kubectl port-forward where it is needed";

/// What a scheduler answers under `/apis/v1/`; none where it knows nothing of that.
pub(crate) async fn ask(scheduler: &str, path: &str) -> Result<Option<Value>> {
    let url = scheduler.trim_end_matches('/');
    let uri = url.parse().map_err(|error| anyhow!("--scheduler {scheduler:?} is no URL: {error}"))?;
    let mut config = Config::new(uri);
    // It is asked directly.
    config.proxy_url = None;
    let client = Client::try_from(config).with_context(|| format!("--scheduler {scheduler}"))?;
    let request = http::Request::get(format!("/apis/v1/{path}")).body(Body::empty())?;
    let answer = async {
        let response = client.send(request).await?;
        let code = response.status();
        Ok::<_, kube::Error>((code, response.into_body().collect_bytes().await?))
    };
    let (code, body) = match tokio::time::timeout(ANSWER_MAX, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => bail!("{url} does not answer: {}; {LOOK}", in_one_line(&error)),
        Err(_) => bail!("{url} does not answer within {ANSWER_MAX:?}; {LOOK}"),
    };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match code {
        StatusCode::OK => Ok(Some(answer)),
        StatusCode::NOT_FOUND => Ok(None),
        StatusCode::SERVICE_UNAVAILABLE => bail!(
            "{url} does not schedule now ({}); ask the replica that holds the Lease",
            answer["message"].as_str().unwrap_or_default()
        ),
        code => bail!("{url} answers {code} to /apis/v1/{path}; {LOOK}"),
    }
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
