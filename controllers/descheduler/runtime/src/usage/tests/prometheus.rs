//! Prometheus, over HTTP and TLS.

use std::{net::SocketAddr, path::Path};

use axum::{Router, extract::State, routing};
use http::{HeaderMap, Method, StatusCode, Uri, header};
use rcgen::{CertificateParams, Issuer, KeyPair};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

use super::*;

const SECRET: &str = "/api/v1/namespaces/monitoring/secrets/prometheus";

fn query() -> UsageQuery {
    UsageQuery::Prometheus(Arc::from("1 - avg by (instance) (rate(idle[5m])) & x"))
}

fn no_account() -> ServiceAccount {
    ServiceAccount { token: "/nonexistent/token".into(), authority: "/nonexistent/ca".into() }
}

/// What a fake Prometheus answers, and what it was asked: method, URI, authorization, body.
#[derive(Clone, Default)]
struct Fake {
    answer: Arc<Mutex<(u16, String)>>,
    refuses_post: bool,
    asked: Arc<Mutex<Vec<[String; 4]>>>,
}

async fn answer(
    State(fake): State<Fake>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let token = headers.get(header::AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
    let is_post = method == Method::POST;
    fake.asked.lock().push([method.to_string(), uri.to_string(), token.to_owned(), body]);
    if fake.refuses_post && is_post {
        return (StatusCode::METHOD_NOT_ALLOWED, String::new());
    }
    let (code, body) = fake.answer.lock().clone();
    (StatusCode::from_u16(code).unwrap(), body)
}

impl Fake {
    async fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(routing::any(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    #[expect(clippy::needless_pass_by_value, reason = "texts and objects alike")]
    fn says(&self, code: u16, body: impl ToString) {
        *self.answer.lock() = (code, body.to_string());
    }
}

fn vector(samples: &[(&str, &str)]) -> Value {
    let samples: Vec<Value> = samples
        .iter()
        .map(|(node, value)| json!({"metric": {"instance": node, "job": "node"}, "value": [1_767_323_045.123, value]}))
        .collect();
    json!({"status": "success", "data": {"resultType": "vector", "result": samples}})
}

fn shares(stage: &Stage) -> Result<Vec<(String, f64)>, String> {
    let MeasuredUsage::Shares(shares) = stage.measured()? else { panic!() };
    Ok(shares.iter().map(|(node, share)| (node.to_string(), *share)).collect())
}

#[tokio::test]
async fn a_query_is_sent_as_a_form_without_any_token_where_there_is_no_tls() {
    let folder = tempfile::tempdir().unwrap();
    let account = ServiceAccount { token: folder.path().join("token"), ..no_account() };
    std::fs::write(&account.token, "secret").unwrap();
    let fake = Fake::default();
    let url = format!("http://{}/prefix/", fake.serve().await);
    let mut stage = Stage::new(query(), Some(&json!({ "url": url })), account);
    fake.says(200, vector(&[("n1", "0.75"), ("n2", "0"), ("elsewhere", "1")]));
    assert_eq!(stage.measure().await, []);
    let expected = [("elsewhere", 1.0), ("n1", 0.75), ("n2", 0.0)].map(|(node, share)| (node.to_owned(), share));
    assert_eq!(shares(&stage), Ok(expected.to_vec()));
    let form = "query=1+-+avg+by+%28instance%29+%28rate%28idle%5B5m%5D%29%29+%26+x";
    assert_eq!(*fake.asked.lock(), [["POST", "/prefix/api/v1/query", "", form].map(str::to_owned)]);
    assert_eq!(stage.collector.next(), None, "nothing is asked between passes");
}

#[tokio::test]
async fn where_only_reads_pass_the_query_is_sent_in_the_url() {
    let fake = Fake { refuses_post: true, ..Fake::default() };
    let url = format!("http://{}", fake.serve().await);
    let mut stage = Stage::new(query(), Some(&json!({ "url": url })), no_account());
    fake.says(200, vector(&[("n1", "0.5")]));
    assert_eq!(stage.measure().await, []);
    assert_eq!(shares(&stage), Ok(vec![("n1".to_owned(), 0.5)]));
    let asked = fake.asked.lock();
    assert!(asked[1][0] == "GET" && asked[1][1].starts_with("/api/v1/query?query=1+-+avg"), "{asked:?}");
}

#[tokio::test]
async fn a_sample_that_says_nothing_of_a_node_is_left_out_alone() {
    let fake = Fake::default();
    let url = format!("http://{}", fake.serve().await);
    for (samples, reason) in [
        (vector(&[("n1", "NaN"), ("n2", "0.1")]), "instance \"n1\" has NaN, not a number from 0 to 1"),
        (vector(&[("n1", "1.01"), ("n2", "0.1")]), "instance \"n1\" has 1.01, not a number from 0 to 1"),
        (vector(&[("n1", "-0.1"), ("n2", "0.1")]), "instance \"n1\" has -0.1, not a number from 0 to 1"),
        (vector(&[("n1", "+Inf"), ("n2", "0.1")]), "instance \"n1\" has +Inf, not a number from 0 to 1"),
        (
            vector(&[("n1", "0.9"), ("n2", "0.1"), ("n1", "0.2")]),
            "instance \"n1\" has several samples; aggregate them by (instance)",
        ),
        (
            json!({"status": "success", "data": {"resultType": "vector", "result": [
                {"metric": {"node": "n1"}, "value": [1, "0.5"]}, {"metric": {"instance": "n2"}, "value": [1, "0.1"]},
            ]}}),
            "a sample has no label instance, which names the node",
        ),
    ] {
        let mut stage = Stage::new(query(), Some(&json!({ "url": url })), no_account());
        fake.says(200, &samples);
        let left_out = UsageReport::LeftOut { query: query(), count: 1, reason: reason.to_owned() };
        assert_eq!(stage.measure().await, [left_out], "{samples}");
        assert_eq!(shares(&stage), Ok(vec![("n2".to_owned(), 0.1)]));
    }
}

#[tokio::test]
async fn an_answer_that_is_no_vector_is_a_failure_with_its_reason() {
    let fake = Fake::default();
    let url = format!("http://{}", fake.serve().await);
    for (code, body, reason) in [
        (400, r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#, "400 Bad Request: parse error"),
        (502, "bad gateway", "502 Bad Gateway: bad gateway"),
        (
            200,
            r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}"#,
            "the answer cannot be read: the query gives a scalar, not a vector: a number for each instance",
        ),
        (200, "{}", "the answer cannot be read: missing field `status` at line 1 column 2"),
    ] {
        let mut stage = Stage::new(query(), Some(&json!({ "url": url })), no_account());
        fake.says(code, body);
        let failed = UsageReport::Failed { query: query(), reason: Arc::from(reason) };
        assert_eq!(stage.measure().await, [failed]);
        assert_eq!(shares(&stage), Err(reason.to_owned()));
    }
    let mut stage = Stage::new(query(), Some(&json!({"url": "http://127.0.0.1:1"})), no_account());
    assert!(matches!(&stage.measure().await[..], [UsageReport::Failed { .. }]));
    assert!(stage.measured().unwrap_err().contains("onnect"), "{:?}", stage.measured());
}

/// A server with TLS that answers every request alike, and its authority in a file. What it gets is kept.
async fn with_tls(folder: &Path, body: String) -> (String, Arc<Mutex<String>>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("ca.crt"), authority.pem()).unwrap();
    let own_key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = own.signed_by(&own_key, &Issuer::new(params, key)).unwrap();
    let key = PrivateKeyDer::try_from(own_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(own.der().to_vec())];
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let got = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let Ok(mut connection) = acceptor.accept(connection).await else { continue };
            let mut bytes = vec![0; 4096];
            let count = connection.read(&mut bytes).await.unwrap_or(0);
            *kept.lock() = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let answer =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            let _ = connection.write_all(answer.as_bytes()).await;
            let _ = connection.shutdown().await;
        }
    });
    (url, got)
}

#[tokio::test]
async fn with_tls_the_token_of_the_secret_or_of_the_service_account_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (url, got) = with_tls(folder.path(), vector(&[("n1", "0.5")]).to_string()).await;
    let account = ServiceAccount { token: folder.path().join("token"), authority: folder.path().join("ca.crt") };
    std::fs::write(&account.token, "of-the-account\n").unwrap();
    let mut stage = Stage::new(query(), Some(&json!({ "url": url })), account.clone());
    assert_eq!(stage.measure().await, []);
    assert!(got.lock().contains("authorization: Bearer of-the-account\r\n"), "{}", got.lock());

    let secret = json!({"secretReference": {"namespace": "monitoring", "name": "prometheus"}});
    let mut stage = Stage::new(query(), Some(&json!({"url": url, "authToken": secret})), account);
    stage.server.set(SECRET, 403, json!({"kind": "Status", "message": "secrets \"prometheus\" is forbidden"}));
    let reason = "the token of Secret monitoring/prometheus cannot be read: secrets \"prometheus\" is forbidden; grant get on this Secret, and let it have the key prometheusAuthToken";
    assert_eq!(stage.measure().await, [UsageReport::Failed { query: query(), reason: Arc::from(reason) }]);
    stage.server.set(SECRET, 200, json!({"kind": "Secret", "data": {"prometheusAuthToken": "b2YtdGhlLXNlY3JldA=="}}));
    stage.collector.failed.clear();
    assert_eq!(stage.measure().await, [UsageReport::Recovered { query: query() }]);
    assert!(got.lock().contains("authorization: Bearer of-the-secret\r\n"), "{}", got.lock());
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (url, got) = with_tls(folder.path(), String::new()).await;
    let elsewhere = tempfile::tempdir().unwrap();
    with_tls(elsewhere.path(), String::new()).await;
    let account = ServiceAccount { token: folder.path().join("token"), authority: elsewhere.path().join("ca.crt") };
    std::fs::write(&account.token, "of-the-account").unwrap();
    let mut stage = Stage::new(query(), Some(&json!({ "url": url })), account);
    assert!(matches!(&stage.measure().await[..], [UsageReport::Failed { .. }]));
    assert!(stage.measured().unwrap_err().contains("ertificate"), "{:?}", stage.measured());
    assert_eq!(*got.lock(), "", "nothing was sent, and no token");
}

#[tokio::test(start_paused = true)]
async fn prometheus_that_never_answers_ends_the_wait() {
    let mut stage = Stage::new(query(), Some(&json!({"url": "http://127.0.0.1:9"})), no_account());
    let prometheus = stage.collector.prometheus.as_mut().unwrap();
    let silent = service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
    prometheus.answer_by(Client::new(silent, "default"));
    let began = stage.clock.moment();
    let failed = UsageReport::Failed { query: query(), reason: Arc::from("no answer within 5 s") };
    assert_eq!(stage.measure().await, [failed]);
    assert_eq!(stage.clock.moment().since(began).as_secs(), 5);
}
