//! Sends spans to an OpenTelemetry collector: OTLP over HTTP with protobuf bodies.

use std::{str::FromStr, time::Duration};

use futures::future::BoxFuture;
use http::Uri;
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks},
};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::SharedClock,
    trace::{Role, Span, Spans, Tracer},
};

/// Spans that go in one request.
const BATCH_MAX: usize = 512;
/// How long spans gather before they go.
const GATHER: Duration = Duration::from_secs(1);
/// How long the end of the process waits for the collector.
const LAST: Duration = Duration::from_secs(2);
/// How long a collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where the collector is: `http://HOST:PORT`, with the path of traces where it is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(String);

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uri: Uri = text.parse().map_err(|error| format!("{text:?} is no address: {error}"))?;
        match uri.scheme_str() {
            Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => {}
            Some("https") => {
                return Err(format!(
                    "{text:?}: TLS to the collector is the collector's agent's work; give the http:// address of an agent on this node or in this cluster"
                ));
            }
            _ => return Err(format!("{text:?} is no address such as http://localhost:4318")),
        }
        let path = if matches!(uri.path(), "" | "/") { "/v1/traces" } else { uri.path() };
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        Ok(Self(format!("http://{authority}{path}")))
    }
}

/// Sends spans until `stop`. What the collector does not take in time is counted and gone: nobody waits for it.
/// The clock must run in real time.
// A future in a box is compiled once, here, and not wherever it is awaited.
pub fn export(
    endpoint: Endpoint,
    service: (&'static str, &'static str),
    spans: Spans,
    tracer: Tracer,
    clock: SharedClock,
    stop: CancellationToken,
) -> BoxFuture<'static, ()> {
    Box::pin(export_all(endpoint, service, spans, tracer, clock, stop))
}

async fn export_all(
    endpoint: Endpoint,
    service: (&'static str, &'static str),
    mut spans: Spans,
    tracer: Tracer,
    clock: SharedClock,
    stop: CancellationToken,
) {
    let (name, version) = service;
    let built = SpanExporter::builder()
        .with_http()
        .with_http_client(HyperClient::with_default_connector(TIMEOUT, None))
        .with_endpoint(endpoint.0.as_str())
        .with_timeout(TIMEOUT)
        .build();
    let mut exporter = match built {
        Ok(exporter) => exporter,
        Err(error) => {
            tracing::error!(%error, "the exporter for --otlp-endpoint cannot be made; no traces are sent");
            return;
        }
    };
    let attributes = [KeyValue::new("service.version", version)];
    exporter.set_resource(&Resource::builder().with_service_name(name).with_attributes(attributes).build());
    let scope = InstrumentationScope::builder(name).with_version(version).build();
    let mut is_told = false;
    loop {
        let (mut batch, is_last) = tokio::select! {
            biased;
            () = stop.cancelled() => (spans.drain(), true),
            batch = spans.take(BATCH_MAX) => (batch, false),
        };
        if !is_last {
            tokio::select! { biased; () = stop.cancelled() => {}, () = clock.sleep(GATHER) => {} }
            batch.extend(spans.drain());
        }
        let patience = if is_last { LAST } else { TIMEOUT };
        for part in batch.chunks(BATCH_MAX) {
            let data = part.iter().map(|span| encoded(span, &scope)).collect();
            let sent = tokio::select! {
                biased;
                sent = exporter.export(data) => sent.map_err(|error| error.to_string()),
                () = clock.sleep(patience) => Err(format!("no answer within {} s", patience.as_secs())),
            };
            tracer.count(if sent.is_ok() { "sent" } else { "failed" }, part.len());
            match sent {
                Ok(()) => is_told = false,
                // Once; the metric counts the others.
                Err(reason) if !is_told => {
                    tracing::warn!(
                        endpoint = endpoint.0,
                        reason,
                        "the collector does not take spans; they are dropped"
                    );
                    is_told = true;
                }
                Err(_) => {}
            }
            if is_last && is_told {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}

fn encoded(span: &Span, scope: &InstrumentationScope) -> SpanData {
    let trace = TraceId::from_bytes(span.context.trace.to_be_bytes());
    let flags = TraceFlags::SAMPLED;
    let own = SpanId::from_bytes(span.context.span.to_be_bytes());
    SpanData {
        span_context: SpanContext::new(trace, own, flags, false, TraceState::NONE),
        parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.to_be_bytes())),
        parent_span_is_remote: false,
        span_kind: match span.role {
            Role::Server => SpanKind::Server,
            Role::Client => SpanKind::Client,
            Role::Consumer => SpanKind::Consumer,
            Role::Internal => SpanKind::Internal,
        },
        name: span.name.clone().into(),
        start_time: span.start.into(),
        end_time: span.end.into(),
        attributes: span.attributes.iter().map(|(key, value)| KeyValue::new(*key, value.clone())).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: span.error.as_ref().map_or(Status::Unset, |error| Status::error(error.clone())),
        instrumentation_scope: scope.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, time::Instant};

    use super::*;
    use crate::{
        clock::SystemClock,
        metrics::{Audience, Metrics},
        random::Random,
        trace::WAITING_MAX,
    };

    /// A collector that refuses connections, and one that takes them and never answers.
    #[tokio::test]
    async fn a_collector_that_is_gone_or_hangs_hinders_nobody() {
        let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for address in [gone, hangs.local_addr().unwrap()] {
            let (clock, metrics, stop) = (SystemClock::shared(), Metrics::new().unwrap(), CancellationToken::new());
            let (tracer, spans) = Tracer::new(clock.clone(), Random::seeded(1), &metrics);
            let endpoint = format!("http://{address}").parse().unwrap();
            let exporting = tokio::spawn(export(endpoint, ("test", "1"), spans, tracer.clone(), clock, stop.clone()));
            tokio::task::yield_now().await;
            let begin = Instant::now();
            for _ in 0..WAITING_MAX * 3 {
                let open = tracer.open(None).unwrap();
                tracer.close(open, "s".to_owned(), Role::Internal, Vec::new(), None);
            }
            assert!(begin.elapsed() < Duration::from_secs(2), "recording took {:?}", begin.elapsed());
            stop.cancel();
            exporting.await.unwrap();
            assert!(begin.elapsed() < LAST + Duration::from_secs(5), "the end took {:?}", begin.elapsed());
            let text = metrics.text(&[Audience::Runtime]);
            let count = |result: &str| {
                let start = format!(r#"koord_trace_spans_total{{result="{result}"}} "#);
                text.lines().find_map(|line| line.strip_prefix(&start)).unwrap().parse::<usize>().unwrap()
            };
            assert_eq!(count("recorded") + count("dropped"), WAITING_MAX * 3);
            assert!(count("dropped") > 0 && count("failed") > 0 && count("sent") == 0, "{text}");
        }
    }

    #[test]
    fn an_endpoint_is_an_http_address_with_the_usual_path() {
        let path = |text: &str| text.parse::<Endpoint>().map(|endpoint| endpoint.0);
        assert_eq!(path("http://collector:4318").unwrap(), "http://collector:4318/v1/traces");
        assert_eq!(path("http://[::1]:4318/").unwrap(), "http://[::1]:4318/v1/traces");
        assert_eq!(path("http://c:4318/otlp/v1/traces").unwrap(), "http://c:4318/otlp/v1/traces");
        assert!(path("https://c:4318").unwrap_err().contains("agent"));
        for wrong in ["", "collector:4318", "http://", "/v1/traces", "grpc://c:4317"] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }
}
