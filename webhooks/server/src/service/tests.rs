use http_body_util::{BodyExt, Full};
use koord_resource::admission::WebhookEntry;
use koord_runtime::{
    clock::SystemClock,
    metrics::{self as registry, Audience},
    random::Random,
    recorder::Recorder,
};
use serde_json::Value;

use super::*;

const ENTRY: WebhookEntry = WebhookEntry { name: "v.example.com", ..WebhookEntry::BASE };

fn named(request: &Request<'_>, wanted: &str) -> Verdict {
    match request.name.as_ref() {
        "boom" => panic!("boom"),
        name if name == wanted => Verdict::allow(),
        name => Verdict::deny(Denial::forbidden(format!("{name} is not {wanted}"))),
    }
}

static HANDLER: Handler<str> =
    Handler { path: "/v", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: named };

#[tokio::test]
async fn a_table_of_a_program_has_its_metrics_and_all_handlers() {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "handlers take their snapshot by reference")]
    fn allowed(_: &Request<'_>, (): &()) -> Verdict {
        Verdict::allow()
    }
    const fn at(path: &'static str) -> Handler<()> {
        Handler { path, gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: allowed }
    }
    static BOTH: [Handler<()>; 2] = [at("/first"), at("/second")];
    let registry = registry::Metrics::new().unwrap();
    let (recorder, _events) = Recorder::new(SystemClock::shared());
    let core = Core::new("t", SystemClock::shared(), Random::seeded(1), registry.clone(), Arc::new(recorder));
    let service = ServiceBuilder::of(&core).unwrap().handlers(&BOTH).build();
    assert_eq!(service.paths().collect::<Vec<_>>(), ["/convert", "/first", "/healthz", "/second"]);
    let (_, answer) = send(&service, "POST", "/second", r#"{"request":{"uid":"u","operation":"CREATE"}}"#).await;
    assert!(answer.contains(r#""allowed":true"#), "{answer}");
    let text = registry.text(&[Audience::Runtime, Audience::Internal]);
    assert!(text.contains(r#"webhook_requests_total{code="200",webhook="/second"} 1"#), "{text}");
}

#[tokio::test]
async fn what_is_unlisted_is_answered_and_in_no_configuration() {
    let registry = registry::Metrics::new().unwrap();
    let builder = ServiceBuilder::new(Metrics::register(&registry).unwrap(), SystemClock::shared());
    let service = builder.handler(&HANDLER, || "good").unlisted(HANDLER.path).unlisted("/none").build();
    assert_eq!(service.paths().collect::<Vec<_>>(), ["/convert", "/healthz"]);
    let review = r#"{"request":{"uid":"u","operation":"CREATE","name":"good"}}"#;
    assert!(send(&service, "POST", HANDLER.path, review).await.1.contains(r#""uid":"u""#));
}

fn service(registry: &registry::Metrics) -> Service {
    ServiceBuilder::new(Metrics::register(registry).unwrap(), SystemClock::shared())
        .handler(&HANDLER, || "good")
        .build()
}

async fn send(service: &Service, method: &str, path: &str, body: &str) -> (StatusCode, String) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    let answer = service.answer(request).await.unwrap();
    let status = answer.status();
    (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test]
async fn paths_are_exact_and_everything_else_is_not_found() {
    let service = service(&registry::Metrics::new().unwrap());
    let not_found = (StatusCode::NOT_FOUND, "404 page not found\n".to_owned());
    assert_eq!(send(&service, "POST", "/v/", "{}").await, not_found);
    assert_eq!(send(&service, "GET", "/", "").await, not_found);
    assert_eq!(send(&service, "POST", "/healthz", "{}").await, (StatusCode::OK, String::new()));
    for (method, body) in [("GET", ""), ("POST", "{}"), ("POST", "no JSON")] {
        assert_eq!(send(&service, method, "/convert", body).await, (StatusCode::BAD_REQUEST, String::new()));
    }
    assert!(send(&service, "GET", "/v", "").await.1.contains("request body is empty"));
    let review = r#"{"request":{"uid":"u","operation":"CREATE","name":"good"}}"#;
    assert_eq!(send(&service, "GET", "/v", review).await, send(&service, "POST", "/v", review).await);
}

#[test]
fn entries_with_clients_of_their_own_are_known_by_their_names() {
    const fn entry(name: &'static str, client: Client) -> WebhookEntry {
        WebhookEntry { name, client, ..WebhookEntry::BASE }
    }
    const fn service(name: Option<&'static str>, namespace: Option<&'static str>) -> Client {
        Client::Service { name, namespace, port: Some(8443) }
    }
    static FIVE: Handler<str> = Handler {
        path: "/v",
        gate: None,
        rbac: &[],
        object_type: "pod",
        call: named,
        entries: &[
            ENTRY,
            entry("port.example.com", service(None, None)),
            entry("name.example.com", service(Some("policy"), None)),
            entry("namespace.example.com", service(None, Some("policies"))),
            entry("url.example.com", Client::Url("https://policy.example.com")),
        ],
    };
    let metrics = Metrics::register(&registry::Metrics::new().unwrap()).unwrap();
    let service = ServiceBuilder::new(metrics, SystemClock::shared()).handler(&FIVE, || "good").build();
    assert_eq!(service.elsewhere(), ["name.example.com", "namespace.example.com", "url.example.com"]);
}

#[tokio::test]
async fn a_panic_is_answered_counted_and_harms_nobody_else() {
    let registry = registry::Metrics::new().unwrap();
    let service = service(&registry);
    let answer = |name: &str| format!(r#"{{"request":{{"uid":"u","operation":"CREATE","name":"{name}"}}}}"#);
    let (_, boom) = send(&service, "POST", "/v", &answer("boom")).await;
    let boom: Value = serde_json::from_str(&boom).unwrap();
    assert_eq!(boom["response"]["status"]["code"], 500);
    assert_eq!(boom["response"]["status"]["message"], "panic: boom [recovered]");
    assert!(send(&service, "POST", "/v", &answer("good")).await.1.contains(r#""allowed":true"#));
    assert!(send(&service, "POST", "/v", &answer("bad")).await.1.contains("bad is not good"));

    let text = registry.text(&[Audience::Runtime, Audience::Internal]);
    assert!(text.contains(r#"koord_manager_webhook_panics_total{path="/v"} 1"#), "{text}");
    let counted = |status: &str, count: u32| {
        let line = format!(
            r#"milliseconds_count{{object_type="pod",operation="CREATE",plugin_name="v.example.com",status="{status}",webhook_type="validate"}} {count}"#
        );
        assert!(text.contains(&line), "{line} in {text}");
    };
    counted("allowed", 1);
    counted("rejected", 2);
    for line in [
        r#"controller_runtime_webhook_requests_total{code="200",webhook="/v"} 3"#,
        r#"controller_runtime_webhook_requests_in_flight{webhook="/v"} 0"#,
        r#"controller_runtime_webhook_latency_seconds_count{webhook="/v"} 3"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

/// Passes one part and refuses in the next.
fn in_parts(_: &Request<'_>, _: &str) -> Verdict {
    let mut watch = koord_resource::admission::Stopwatch::default();
    watch.begin("First");
    watch.begin("Second");
    Verdict { steps: watch.stop(), ..Verdict::deny(Denial::bad_request("no")) }
}

static IN_PARTS: Handler<str> =
    Handler { path: "/parts", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: in_parts };

#[tokio::test]
async fn the_parts_of_a_decision_are_timed_by_name_and_the_last_one_refuses() {
    let registry = registry::Metrics::new().unwrap();
    let builder = ServiceBuilder::new(Metrics::register(&registry).unwrap(), SystemClock::shared());
    let service = builder.handler(&IN_PARTS, || "").build();
    send(&service, "POST", "/parts", r#"{"request":{"uid":"u","operation":"UPDATE"}}"#).await;
    let text = registry.text(&[Audience::Runtime, Audience::Internal]);
    for (part, status) in [("First", "allowed"), ("Second", "rejected")] {
        let line = format!(
            r#"milliseconds_count{{object_type="pod",operation="UPDATE",plugin_name="{part}",status="{status}",webhook_type="validate"}} 1"#
        );
        assert!(text.contains(&line), "{line} in {text}");
    }
}

const INCOMPLETE: &str = r#""code":500"#;

fn started() -> SharedClock {
    koord_runtime::clock::ScaledClock::shared(jiff::Timestamp::UNIX_EPOCH, 1.0)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_what_is_waited_for() {
    let builder = ServiceBuilder::new(Metrics::register(&registry::Metrics::new().unwrap()).unwrap(), started());
    let service = builder.handler(&HANDLER, || "good").wait_for(|| false).build();
    let (_, answer) = send(&service, "POST", "/v", r#"{"request":{"uid":"u","name":"good"}}"#).await;
    assert!(answer.contains(INCOMPLETE) && answer.contains("are not complete yet; try again"), "{answer}");
}

#[derive(PartialEq, koord_resource::Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::POD)]
struct PodView {
    labels: koord_runtime::projection::Labels,
}

type Pods = koord_runtime::store::Store<PodView>;

/// Denies a pod whose name another has.
fn unique(request: &Request<'_>, pods: &Pods) -> Verdict {
    if pods.read().iter().any(|(key, _)| key.name() == request.name) {
        return Verdict::deny(Denial::forbidden("there is one already"));
    }
    Verdict::allow()
}

static UNIQUE: Handler<Pods> =
    Handler { path: "/unique", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: unique };
#[expect(clippy::trivially_copy_pass_by_ref, reason = "handlers take their snapshot by reference")]
fn allowed(_: &Request<'_>, (): &()) -> Verdict {
    Verdict::allow()
}
static ALONE: [Handler<()>; 1] =
    [Handler { path: "/alone", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: allowed }];

/// A program that never says what it waits for: its pods are not listed yet, and a cache of its controllers is asked for after the server.
#[tokio::test(start_paused = true)]
async fn a_handler_that_reads_caches_refuses_until_all_of_them_are_complete() {
    let (recorder, _events) = Recorder::new(started());
    let metrics = registry::Metrics::new().unwrap();
    let mut core = Core::new("t", started(), Random::seeded(1), metrics, Arc::new(recorder));
    let pods = core.store::<PodView>(&koord_runtime::reflector::Selection::default());
    let seen = Arc::clone(&pods);
    let builder = ServiceBuilder::of(&core).unwrap().handlers(&ALONE);
    let service = builder.handler(&UNIQUE, move || Arc::clone(&seen)).build();
    let later = koord_runtime::reflector::Selection { namespace: "later".to_owned(), ..Default::default() };
    core.store::<PodView>(&later);
    let asks = async |path: &str| send(&service, "POST", path, r#"{"request":{"uid":"u","name":"a"}}"#).await.1;

    let answer = asks("/unique").await;
    assert!(answer.contains(INCOMPLETE) && answer.contains("not complete yet (Pod); try again"), "{answer}");
    assert!(asks("/alone").await.contains(r#""allowed":true"#), "it sees nothing but the request");

    let listed = |index: usize, objects: &[&str]| {
        let watch = Arc::clone(&core.watches()[index]);
        watch.sink.begin_list(true);
        for object in objects {
            watch.sink.upsert(object).unwrap();
        }
        watch.sink.end_list();
    };
    listed(0, &[r#"{"metadata":{"name":"a","namespace":"n","uid":"1","resourceVersion":"1"}}"#]);
    assert!(asks("/unique").await.contains(INCOMPLETE), "the cache that was asked for later");
    let (start, answer) = tokio::join!(
        async {
            koord_runtime::clock::SystemClock::shared().sleep(Duration::from_millis(500)).await;
            listed(1, &[]);
        },
        asks("/unique")
    );
    let () = start;
    assert!(answer.contains("there is one already"), "it is waited for: {answer}");
}

#[tokio::test]
async fn an_advisory_handler_refuses_nothing_and_counts_what_it_would() {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "handlers take their snapshot by reference")]
    fn faulty(request: &Request<'_>, (): &()) -> Verdict {
        match request.name.as_ref() {
            "boom" => panic!("boom"),
            "quick" => Verdict::deny_provisionally(Denial::bad_request("no parent")),
            "fields" => {
                let mut errors = koord_resource::field::Errors::new();
                let spec = koord_resource::field::Path::root("spec");
                errors.invalid(&spec.child("ttl"), "1 day", "must be a duration");
                errors.required(&spec.child("owners"), "");
                Verdict::deny(Denial::invalid(&errors)).warn("its own")
            }
            _ => Verdict::allow(),
        }
    }
    const fn at(path: &'static str, entries: &'static [WebhookEntry]) -> Handler<()> {
        Handler { path, gate: None, entries, rbac: &[], object_type: "pod", call: faulty }
    }
    static FAULTY: Handler<()> = at("/v", &[ENTRY]);
    static CHANGING: Handler<()> = at("/m", &[WebhookEntry { kind: WebhookKind::Mutating, ..ENTRY }]);
    let registry = registry::Metrics::new().unwrap();
    let builder = || ServiceBuilder::new(Metrics::register(&registry).unwrap(), started());
    let service = builder().advisory(&FAULTY, || &()).advisory(&CHANGING, || &()).build();
    assert_eq!(service.advisory().collect::<Vec<_>>(), ["/v"], "what would be changed is left alone");
    assert_eq!(service.paths().collect::<Vec<_>>(), ["/convert", "/healthz", "/v"]);
    let warnings = async |service: &Service, name: &str| {
        let review = format!(r#"{{"request":{{"uid":"u","operation":"CREATE","name":"{name}"}}}}"#);
        let answer: Value = serde_json::from_str(&send(service, "POST", "/v", &review).await.1).unwrap();
        assert_eq!(answer["response"]["allowed"], true, "{answer}");
        answer["response"]["warnings"].as_array().cloned().unwrap_or_default()
    };
    assert_eq!(
        warnings(&service, "fields").await,
        [
            "its own",
            "would be denied where rules are enforced: spec.ttl: Invalid value: \"1 day\": must be a duration",
            "would be denied where rules are enforced: spec.owners: Required value",
        ]
    );
    assert_eq!(warnings(&service, "quick").await, ["would be denied where rules are enforced: no parent"]);
    assert!(warnings(&service, "good").await.is_empty());
    // What is no fault of the user.
    assert!(warnings(&service, "boom").await.is_empty());
    let text = registry.text(&[Audience::Internal]);
    assert!(text.contains(r#"koord_manager_webhook_unenforced_denials_total{path="/v"} 2"#), "{text}");
}

/// Refuses until it was asked as often as the request's name says.
fn after_some_asking(request: &Request<'_>, asked: &std::sync::atomic::AtomicU32) -> Verdict {
    let times = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
    match request.name.parse::<u32>() {
        Ok(enough) if times >= enough => Verdict::allow(),
        _ => Verdict::deny_provisionally(Denial::bad_request("no parent")),
    }
}

static PATIENT: Handler<std::sync::atomic::AtomicU32> =
    Handler { path: "/p", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: after_some_asking };

#[tokio::test(start_paused = true)]
async fn a_refusal_that_may_soon_be_none_is_thought_over_for_two_seconds() {
    let patient = || {
        let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let clock = koord_runtime::clock::ScaledClock::shared(jiff::Timestamp::UNIX_EPOCH, 1.0);
        ServiceBuilder::new(Metrics::register(&registry::Metrics::new().unwrap()).unwrap(), clock)
            .handler(&PATIENT, move || Arc::clone(&asked))
            .build()
    };
    let start = tokio::time::Instant::now();
    let (_, answer) = send(&patient(), "POST", "/p", r#"{"request":{"uid":"u","name":"51"}}"#).await;
    assert!(answer.contains(r#""allowed":true"#), "{answer}");
    assert_eq!(start.elapsed().as_millis(), 500);
    let (_, answer) = send(&patient(), "POST", "/p", r#"{"request":{"uid":"u","name":"never"}}"#).await;
    assert!(answer.contains("no parent (after waiting 2s for it to appear)"), "{answer}");
    assert_eq!(start.elapsed().as_millis(), 2500);
}

#[tokio::test]
async fn a_huge_body_is_refused_before_it_is_read_whole() {
    let service = service(&registry::Metrics::new().unwrap());
    let (status, _) = send(&service, "POST", "/v", &"x".repeat(BODY_BYTES_MAX + 1)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}
