//! A collector for traces, and what a trace of koord-manager must show.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::any_value::Value as Attribute,
    trace::v1::Span,
};
use prost::Message as _;
use tokio::{net::TcpListener, sync::Mutex, task::JoinHandle};

/// Takes spans as a real collector does, and keeps them.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
    serving: JoinHandle<()>,
}

impl Collector {
    pub(crate) async fn start() -> Result<Self> {
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&spans));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Ok(Self { address, spans, serving })
    }

    /// The edit of slo-controller-config that was reviewed, the event that showed it, the decision about the node, and
    /// the write of its NodeSLO are one trace, each following from the one before.
    pub(crate) async fn shows_the_chain(&self) -> Result<()> {
        let spans = self.spans.lock().await;
        let links = ["patch NodeSLO", "reconcile nodeslo", "watch ConfigMap", "review /validate-configmap"];
        let mut last = String::new();
        'writes: for write in spans.iter().filter(|span| span.name == links[0]) {
            let mut chain = vec![write];
            for wanted in &links[1..] {
                let from = chain[chain.len() - 1];
                let parent = spans.iter().find(|span| span.span_id == from.parent_span_id);
                let Some(parent) = parent.filter(|parent| parent.name == *wanted) else {
                    last = format!("{:?} follows from {:?}", from.name, parent.map(|parent| &parent.name));
                    continue 'writes;
                };
                ensure!(parent.trace_id == write.trace_id, "{wanted} is in another trace");
                ensure!(parent.start_time_unix_nano <= from.end_time_unix_nano, "{wanted} begins too late");
                chain.push(parent);
            }
            let [_, reconcile, event, review] = chain[..] else { bail!("a chain of {}", chain.len()) };
            ensure!(text(reconcile, "k8s.object.key")? == "worker");
            ensure!(text(review, "koord.allowed")? == "true");
            ensure!(text(event, "k8s.object.uid")? == text(review, "k8s.object.uid")?);
            return Ok(());
        }
        let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
        bail!("no NodeSLO is written because of a review; {last}; {} spans: {names:?}", names.len())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(spans): State<Arc<Mutex<Vec<Span>>>>, headers: HeaderMap, body: Bytes) -> Vec<u8> {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    for resource in request.resource_spans {
        let service = resource.resource.unwrap_or_default().attributes;
        assert!(service.iter().any(|attribute| attribute.key == "service.name"), "{service:?}");
        spans.lock().await.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
    }
    ExportTraceServiceResponse::default().encode_to_vec()
}

fn text<'s>(span: &'s Span, key: &str) -> Result<&'s str> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    let value = found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
    match value.with_context(|| format!("{} has no {key}", span.name))? {
        Attribute::StringValue(text) => Ok(text),
        other => bail!("{key} is {other:?}"),
    }
}
