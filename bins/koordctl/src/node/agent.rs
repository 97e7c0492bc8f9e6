//! The koordlet of a node: its pod is found by label and asked through the API server's proxy, or it is asked at an address.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use http::{StatusCode, Uri};
use koord_program::error_text::innermost;
use kube::{Client, Config, client::Body};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{cli::NodeAgentArgs, connect};

/// How long an agent may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
const LABEL: &str = "koord-app%3Dkoordlet";
/// The port of metrics, where the pod names none.
const PORT: u16 = 9316;

/// Where a document is asked for.
struct Source {
    client: Client,
    /// What stands before the path of the document.
    prefix: String,
    /// For errors: the agent.
    agent: String,
    /// For errors: how its port is reached otherwise.
    otherwise: String,
}

/// A document of the agent of a node.
pub(super) async fn ask<T: DeserializeOwned>(node: &str, args: &NodeAgentArgs, path: &str) -> Result<T> {
    let source = match &args.address {
        Some(address) => at_address(address)?,
        None => pod_of(node, args).await?,
    };
    let Source { client, prefix, agent, otherwise } = source;
    let request = http::Request::get(format!("{prefix}{path}")).body(Body::empty())?;
    let answer = async {
        let response = client.send(request).await?;
        let code = response.status();
        Ok::<_, kube::Error>((code, response.into_body().collect_bytes().await?))
    };
    let (code, body) = match tokio::time::timeout(ANSWER_MAX, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => bail!("{agent} does not answer: {}; {otherwise}", innermost(&error)),
        Err(_) => bail!("{agent} does not answer within {ANSWER_MAX:?}; {otherwise}"),
    };
    if code == StatusCode::OK {
        return serde_json::from_slice(&body)
            .map_err(|error| anyhow!("what answers as {agent} is no koordlet: {error}; {otherwise}"));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = body["message"].as_str().unwrap_or("it does not say why");
    match code {
        // The API server's refusal names the permission: get of pods/proxy.
        StatusCode::FORBIDDEN if body["kind"] == "Status" => {
            bail!("{message}; ask as a user who may get pods/proxy, or {otherwise}")
        }
        StatusCode::FORBIDDEN => bail!("{agent} refuses: {message}: {otherwise}"),
        StatusCode::NOT_FOUND => bail!("{agent} has no page {path}; it is older than this koordctl, or no koordlet"),
        code => bail!("{agent} answers {code}: {message}; {otherwise}"),
    }
}

fn at_address(address: &str) -> Result<Source> {
    let text = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let url = text.parse::<Uri>().ok().filter(|url| {
        url.scheme_str() == Some("http") && url.host().is_some_and(|host| !host.is_empty()) && url.path() == "/"
    });
    let url =
        url.with_context(|| format!("--address {address:?} is no address; write HOST:PORT, such as 127.0.0.1:{PORT}"))?;
    let mut config = Config::new(url);
    config.proxy_url = None;
    config.default_retry = false;
    Ok(Source {
        client: Client::try_from(config).with_context(|| format!("--address {address}"))?,
        prefix: String::new(),
        agent: format!("koordlet at {address}"),
        otherwise: "see that koordlet serves this port (--addr) and that it is forwarded where it is needed".to_owned(),
    })
}

async fn pod_of(node: &str, args: &NodeAgentArgs) -> Result<Source> {
    let server = connect::reach(&args.answer.cluster.flags()).await?;
    let namespace = &args.namespace;
    let uri = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={LABEL}&fieldSelector=spec.nodeName%3D{node}");
    let list = server.client.request::<Value>(http::Request::get(uri).body(Vec::new())?).await?;
    let pods = list["items"].as_array().into_iter().flatten();
    let mut pods: Vec<&Value> = pods.filter(|pod| pod["spec"]["nodeName"] == node).collect();
    // During an update one that ends may stand beside the new one.
    pods.sort_by_key(|pod| (pod["status"]["phase"] != "Running", pod["metadata"]["deletionTimestamp"].is_string()));
    let Some(pod) = pods.first() else {
        bail!(
            "no koordlet runs on {node} (pods with the label koord-app=koordlet in namespace {namespace}); name its namespace with --namespace, or its address with --address"
        )
    };
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let port = port(pod);
    Ok(Source {
        client: server.client,
        prefix: format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy"),
        agent: format!("{namespace}/{name} on {node}"),
        otherwise: format!(
            "kubectl -n {namespace} port-forward pod/{name} {port}, and ask with --address 127.0.0.1:{port}"
        ),
    })
}

/// The port of a pod that is called `metrics`.
fn port(pod: &Value) -> u64 {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|container| container["ports"].as_array().into_iter().flatten());
    let port = ports.find(|port| port["name"] == "metrics").and_then(|port| port["containerPort"].as_u64());
    port.unwrap_or_else(|| PORT.into())
}
