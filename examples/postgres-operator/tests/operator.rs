//! The operator, on an API server inside the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/plan.rs"]
mod plan;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use koord::{
    admission::{Operation, Request, Verdict},
    cel::Condition,
    convert::answer,
    declare::Profile,
    document::validating_admission_policy,
    envtest::{
        cluster::{Cluster, Options},
        environment::SeededEnvironment,
        kinds,
        request::ApiRequest,
        serve::{Kubeconfig, Owner},
        server::{ApiServer, Outcome},
        shell::{Parts, Server},
        store::HistoryLimits,
    },
    http::Method,
    jiff::Timestamp,
    kube::Client,
    program::{Dependencies, read_flags},
    runtime::{
        Core,
        clock::SystemClock,
        manager::{Manager, Settings},
        metrics::Metrics,
        random::Random,
        recorder::Recorder,
    },
    serde_json::{self, Value, json, value::RawValue},
    tokio::{
        self,
        io::{AsyncReadExt, AsyncWriteExt},
    },
    tokio_util::sync::CancellationToken,
    webhook::Environment,
};
use postgres_operator::{
    CONVERSIONS, DATABASE, HANDLERS, NAME, backups::BackupStore, controller::DatabaseController, manifests, operator,
};

// === rules, without a server ===

fn ask(path: &str, object: &Value, old: Option<&Value>) -> Verdict {
    let raw = |value: &Value| RawValue::from_string(value.to_string()).unwrap();
    let (object, old) = (raw(object), old.map(raw));
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let request = Request { operation, object: Some(&object), old_object: old.as_deref(), ..Request::default() };
    let handler = HANDLERS.iter().find(|handler| handler.path == path).unwrap();
    (handler.call)(&request, &())
}

fn database(spec: &Value) -> Value {
    json!({"apiVersion": "db.example.com/v1", "kind": "Database", "metadata": {"name": "d", "namespace": "default"}, "spec": spec})
}

#[track_caller]
fn accepts(spec: &Value, old: Option<&Value>) {
    let verdict = ask("/validate-database", &database(spec), old.map(database).as_ref());
    assert_eq!(verdict.denial, None);
}

#[track_caller]
fn rejects(spec: &Value, old: Option<&Value>, message: &str) {
    let verdict = ask("/validate-database", &database(spec), old.map(database).as_ref());
    assert_eq!(verdict.denial.unwrap().message, message);
}

#[test]
fn logs_fit_beside_the_data() {
    accepts(&json!({"release": 16, "storage": "10Gi", "logStorage": "10Gi"}), None);
    rejects(
        &json!({"release": 16, "storage": "10Gi", "logStorage": "11Gi"}),
        None,
        "spec.logStorage: Invalid value: \"11Gi\": must not be larger than storage",
    );
}

#[test]
fn releases_go_up_and_volumes_stay() {
    let old = json!({"release": 16, "storage": "10Gi"});
    accepts(&json!({"release": 17, "storage": "10Gi"}), Some(&old));
    rejects(
        &json!({"release": 15, "storage": "10Gi"}),
        Some(&old),
        "spec.release: Invalid value: 15: data of release 16 cannot be read by an older one",
    );
    rejects(
        &json!({"release": 16, "storage": "20Gi"}),
        Some(&old),
        "spec.storage: Invalid value: \"20Gi\": field is immutable",
    );
}

#[test]
fn a_schedule_is_written_with_single_spaces() {
    let object = database(&json!({"release": 16, "replicas": 1, "storage": "1Gi", "backup": " 0  3 * *   * "}));
    let patch: Value = serde_json::from_slice(ask("/mutate-database", &object, None).patch.as_bytes()).unwrap();
    assert_eq!(patch, json!([{"op": "replace", "path": "/spec/backup", "value": "0 3 * * *"}]));
}

#[test]
fn the_first_version_is_still_spoken() {
    let object = database(&json!({"release": 16, "storage": "1Gi", "logStorage": "1Gi"}));
    let request = json!({"uid": "u", "desiredAPIVersion": "db.example.com/v1alpha1", "objects": [object]});
    let response = answer(&json!({"request": request}), CONVERSIONS);
    let older = &response["response"]["convertedObjects"][0];
    assert_eq!(older["spec"], json!({"version": 16, "storage": "1Gi"}));
    let back = json!({"uid": "u", "desiredAPIVersion": "db.example.com/v1", "objects": [older]});
    assert_eq!(answer(&json!({"request": back}), CONVERSIONS)["response"]["convertedObjects"][0], object);
}

// === the same rules as a policy of the cluster ===

/// Whether a policy lets an object pass, by every expression that is in it.
fn policy_admits(policy: &Value, object: &Value, old: Option<&Value>) -> bool {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let variables = [
        ("object", object.clone()),
        ("oldObject", old.cloned().unwrap_or_default()),
        ("request", json!({"operation": operation})),
    ];
    policy["spec"]["validations"].as_array().unwrap().iter().all(|validation| {
        let text = validation["expression"].as_str().unwrap();
        let condition = Condition::compile(text, &["object", "oldObject", "request"]).unwrap();
        condition.holds(&variables, Duration::from_secs(2)).unwrap_or_else(|why| panic!("{text}: {why}"))
    })
}

#[test]
fn the_policy_decides_as_the_webhook_does() {
    let [policy, binding] = validating_admission_policy(&DATABASE[0]).unwrap();
    assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
    let small = json!({"release": 16, "storage": "10Gi"});
    let large = json!({"release": 16, "storage": "20Gi"});
    let newer = json!({"release": 17, "storage": "10Gi", "replicas": 3});
    let cases =
        [(&small, None), (&large, None), (&newer, Some(&small)), (&large, Some(&small)), (&small, Some(&large))];
    let mut refused = 0;
    for (spec, old) in cases {
        let (object, old) = (database(spec), old.map(database));
        let admits = ask("/validate-database", &object, old.as_ref()).denial.is_none();
        assert_eq!(policy_admits(&policy, &object, old.as_ref()), admits, "{object} after {old:?}");
        refused += u32::from(!admits);
    }
    assert_eq!(refused, 2, "the size of a volume stays");
}

// === the controller, on a server ===

fn send(server: &Server, method: Method, path: &str, body: &Value) -> Value {
    let mut request = ApiRequest::new(method, path, body.to_string());
    if request.method == Method::PATCH {
        "application/merge-patch+json".clone_into(&mut request.content_type);
    }
    match server.with_core(|core| core.handle(&request)) {
        Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..500 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen within five seconds");
}

/// The kind, for a server that has no webhooks to call.
fn definition() -> Value {
    let mut definition = manifests().remove(0);
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    definition
}

/// A server without webhooks: controllers alone.
fn server() -> Server {
    let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, Timestamp::now())), HistoryLimits::default());
    kinds::install(&mut core);
    let server = Server::new(core, Parts::default());
    send(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = send(&server, Method::POST, path, &definition());
    assert_eq!(made["metadata"]["name"], "databases.db.example.com", "{made}");
    server
}

fn manager(server: &Server, store: Option<BackupStore>) -> Manager {
    let (recorder, events) = Recorder::new(SystemClock::shared());
    let mut core = Core::new(
        "postgres-operator",
        SystemClock::shared(),
        Random::seeded(7),
        Metrics::new().unwrap(),
        Arc::new(recorder),
    );
    core.add(DatabaseController::SPEC, "postgres-operator", |wiring| DatabaseController::wire(wiring, store)).unwrap();
    let settings = Settings {
        requests_per_second: 0.0,
        requests_burst: 0,
        leader_election: None,
        metrics: None,
        health: None,
        host: "test".to_owned(),
    };
    Manager::new(core, Client::new(server.router(), "default"), events, settings)
}

#[test]
fn an_api_server_takes_the_declaration() {
    for declared in DATABASE {
        let errors = declared.check(Profile::Hardened);
        assert!(errors.is_empty(), "{}: {errors}", declared.info.version);
    }
}

#[test]
fn a_database_gets_its_servers() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let server = server();
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager(&server, None).run(stop.clone()));

        let databases = "/apis/db.example.com/v1/namespaces/default/databases";
        let sets = "/apis/apps/v1/namespaces/default/statefulsets";
        let made = send(&server, Method::POST, databases, &database(&json!({"release": 16, "storage": "1Gi"})));
        assert_eq!(made["spec"]["replicas"], 1, "the schema's default: {made}");
        let set = || {
            Some(send(&server, Method::GET, &format!("{sets}/d"), &Value::Null)).filter(|set| set["spec"].is_object())
        };
        let first = eventually("a StatefulSet", set).await;
        assert_eq!(first["metadata"]["ownerReferences"][0]["kind"], "Database");
        assert_eq!(first["spec"]["template"]["spec"]["containers"][0]["image"], "postgres:16");
        let service = || {
            let service = send(&server, Method::GET, "/api/v1/namespaces/default/services/d", &Value::Null);
            Some(service).filter(|service| service["spec"].is_object())
        };
        let published = eventually("a Service", service).await;
        assert_eq!(published["spec"]["clusterIPs"], json!(["None"]), "the server's part: {published}");
        // Each object is written once: what the server filled in is no difference.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
        assert_eq!(set().map(|set| revision(&set)), Some(revision(&first)));
        assert_eq!(service().map(|service| revision(&service)), Some(revision(&published)));

        send(&server, Method::PATCH, &format!("{databases}/d"), &json!({"spec": {"release": 17, "replicas": 3}}));
        let changed = || set().filter(|set| set["spec"]["replicas"] == 3);
        let changed = eventually("three servers", changed).await;
        assert_eq!(changed["spec"]["template"]["spec"]["containers"][0]["image"], "postgres:17");

        let settings = |settings: &Value| {
            send(&server, Method::PATCH, &format!("{databases}/d"), &json!({"spec": {"settings": settings}}))
        };
        let refused = settings(&json!({"maxConnections": 0, "walLevel": "everything"}));
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("spec.settings.maxConnections: Invalid value: 0"), "{message}");
        assert!(message.contains(r#"spec.settings.walLevel: Unsupported value: "everything""#), "{message}");
        let accepted = settings(&json!({"maxConnections": 200}));
        assert_eq!(accepted["spec"]["settings"]["walLevel"], "replica", "the type's default: {accepted}");
        let tuned =
            || set().filter(|set| set["spec"]["template"]["spec"]["containers"][0]["args"][1] == "max_connections=200");
        eventually("servers with their settings", tuned).await;

        send(
            &server,
            Method::PATCH,
            &format!("{sets}/d/status"),
            &json!({"status": {"replicas": 3, "readyReplicas": 2}}),
        );
        let ready = || {
            let database = send(&server, Method::GET, &format!("{databases}/d"), &Value::Null);
            database["status"]["ready"].as_i64().filter(|ready| *ready == 2)
        };
        eventually("the database's status", ready).await;

        stop.cancel();
        running.await.unwrap().unwrap();
    });
}

// === what is outside of the cluster ===

/// A backup store: buckets are ready after three questions, every fourth request is one too many, and what it was asked.
#[derive(Default)]
struct FakeStore {
    requests: usize,
    buckets: BTreeMap<String, u32>,
    log: Vec<String>,
}

impl FakeStore {
    /// Code and body of the answer to a request.
    fn answer(&mut self, method: &str, path: &str) -> (u16, String) {
        self.requests += 1;
        if self.requests.is_multiple_of(4) {
            return (429, "too many requests".to_owned());
        }
        let name = path.trim_start_matches("/buckets/").to_owned();
        match method {
            "PUT" => {
                let asked = self.buckets.entry(name.clone()).or_default();
                *asked += 1;
                if *asked == 1 {
                    self.log.push(format!("make {name}"));
                }
                let state = if *asked < 3 { "Creating" } else { "Ready" };
                (200, json!({"state": state, "url": format!("s3://{name}")}).to_string())
            }
            "DELETE" => match self.buckets.get_mut(&name) {
                None => (404, "no such bucket".to_owned()),
                Some(asked) if *asked > 3 => {
                    *asked = 3;
                    (200, json!({"state": "Deleting"}).to_string())
                }
                Some(_) => {
                    self.buckets.remove(&name);
                    self.log.push(format!("remove {name}"));
                    (200, json!({"state": "Deleting"}).to_string())
                }
            },
            other => panic!("{other} {path}"),
        }
    }
}

/// Serves the store, one request a connection. Gives its URL.
async fn serve(store: Arc<Mutex<FakeStore>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let (mut text, mut part) = (String::new(), [0; 1024]);
            while !text.contains("\r\n\r\n") {
                match connection.read(&mut part).await {
                    Ok(read) if read > 0 => text.push_str(std::str::from_utf8(&part[..read]).unwrap()),
                    _ => break,
                }
            }
            if text.is_empty() {
                continue;
            }
            let mut words = text.split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            let (code, body) = store.lock().unwrap().answer(method, path);
            let head = format!("HTTP/1.1 {code} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            connection.write_all((head + &body).as_bytes()).await.unwrap();
        }
    });
    url
}

#[test]
fn a_bucket_comes_with_its_database_and_goes_before_it() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (server, stop) = (server(), CancellationToken::new());
        let fake = Arc::new(Mutex::new(FakeStore::default()));
        let store = BackupStore::at(&serve(Arc::clone(&fake)).await).unwrap();
        let running = tokio::spawn(manager(&server, Some(store)).run(stop.clone()));
        let databases = "/apis/db.example.com/v1/namespaces/default/databases";
        let spec = json!({"release": 16, "storage": "1Gi", "backup": "0 3 * * *"});
        send(&server, Method::POST, databases, &database(&spec));
        let seen = || send(&server, Method::GET, &format!("{databases}/d"), &Value::Null);
        let ready = || Some(seen()).filter(|seen| seen["status"]["conditions"][0]["status"] == "True");
        let ready = eventually("a bucket", ready).await;
        let condition = &ready["status"]["conditions"][0];
        assert_eq!((&condition["message"], &condition["observedGeneration"]), (&json!("s3://default.d"), &json!(1)));
        assert_eq!(ready["metadata"]["finalizers"], json!(["db.example.com/bucket"]));

        // The store is not asked again for a bucket that it has made.
        let asked = fake.lock().unwrap().requests;
        send(&server, Method::PATCH, &format!("{databases}/d"), &json!({"spec": {"replicas": 2}}));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(fake.lock().unwrap().requests, asked);

        send(&server, Method::DELETE, &format!("{databases}/d"), &Value::Null);
        eventually("an end", || Some(seen()).filter(|seen| seen["reason"] == "NotFound")).await;
        assert_eq!(fake.lock().unwrap().log, ["make default.d", "remove default.d"]);
        stop.cancel();
        running.await.unwrap().unwrap();
    });
}

// === everything, on a cluster that calls it over TLS ===

/// Sends a request to the server of a cluster and gives code and answer.
async fn ask_cluster(server: &Server, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let mut request = ApiRequest::new(method, path, body.to_string());
    if request.method == Method::PATCH {
        "application/merge-patch+json".clone_into(&mut request.content_type);
    }
    let answer = server.answer(&request).await.unwrap_or_else(|watch| panic!("{watch:?}"));
    (answer.code, serde_json::from_slice(&answer.body).unwrap())
}

/// Gives the operator a role.
fn binding(role: &str, of: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{role}Binding"), "metadata": of,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": of["name"]},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": NAME}],
    })
}

#[test]
fn old_and_new_clients_share_a_database() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_string_lossy().into_owned();
        let (tokens, config) = (folder.path().join("tokens.csv"), folder.path().join("kubeconfig"));
        std::fs::write(&tokens, format!("its-token,{NAME},1\n")).unwrap();
        let cluster = Cluster::bind(Options { token_file: Some(tokens), ..Options::default() }).await.unwrap();
        let server = cluster.server.clone();
        let ask = async |method: Method, path: &str, body: &Value| ask_cluster(&server, method, path, body).await;
        ask(Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "postgres"}})).await;
        for manifest in manifests() {
            cluster.create(&manifest).await.unwrap();
            if let Some(role @ ("Role" | "ClusterRole")) = manifest["kind"].as_str() {
                cluster.create(&binding(role, &manifest["metadata"])).await.unwrap();
            }
        }
        // The operator has its own permissions and no others.
        let kubeconfig = cluster.kubeconfig(Owner::named(NAME));
        let kubeconfig = Kubeconfig { user: NAME.to_owned(), token: "its-token".to_owned(), ..kubeconfig };
        std::fs::write(&config, kubeconfig.to_text()).unwrap();
        let (stop_cluster, stopped) = tokio::sync::watch::channel(false);
        let serving = tokio::spawn(cluster.run(stopped));
        let environment = Environment::from(|name| match name {
            "WEBHOOK_HOST" => Some("127.0.0.1".to_owned()),
            "WEBHOOK_PORT" => Some("0".to_owned()),
            "WEBHOOK_CERT_DIR" => Some(home.clone()),
            "MUTATING_WEBHOOK_NAME" | "VALIDATING_WEBHOOK_NAME" => Some(NAME.to_owned()),
            _ => None,
        });
        let stop = CancellationToken::new();
        let arguments = [NAME, "--metrics-addr=0", "--health-probe-addr=0"].map(str::to_owned);
        let settings = read_flags(&operator::BUILD, arguments.to_vec()).unwrap();
        let dependencies = Dependencies::of_process(Some(&config)).await.unwrap();
        let running = tokio::spawn(operator::run(settings, dependencies, environment.unwrap(), None, stop.clone()));

        let (old, new) = (
            "/apis/db.example.com/v1alpha1/namespaces/default/databases",
            "/apis/db.example.com/v1/namespaces/default/databases",
        );
        let mut object = database(&json!({"version": 16, "storage": "1Gi", "backup": "0  3 * * *"}));
        object["apiVersion"] = json!("db.example.com/v1alpha1");
        // Until the operator has published its CA to the server, clients of the old version are refused.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        let made = loop {
            let (code, answer) = ask(Method::POST, old, &object).await;
            if code == 201 {
                break answer;
            }
            assert!(tokio::time::Instant::now() < deadline, "{answer}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!((&made["spec"]["version"], &made["spec"]["backup"]), (&json!(16), &json!("0 3 * * *")));
        let reported = loop {
            let (_, database) = ask(Method::GET, &format!("{new}/d"), &Value::Null).await;
            if database["status"].is_object() {
                break database;
            }
            assert!(tokio::time::Instant::now() < deadline, "{database}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(reported["metadata"]["finalizers"], json!(["db.example.com/bucket"]), "{reported}");
        assert_eq!(reported["status"]["conditions"][0]["reason"], "NoStore", "{reported}");
        for child in ["/apis/apps/v1/namespaces/default/statefulsets/d", "/api/v1/namespaces/default/services/d"] {
            let (code, child) = ask(Method::GET, child, &Value::Null).await;
            assert_eq!((code, &child["metadata"]["ownerReferences"][0]["name"]), (200, &json!("d")), "{child}");
        }

        let (_, seen) = ask(Method::GET, &format!("{new}/d"), &Value::Null).await;
        assert_eq!((&seen["spec"]["release"], seen["spec"].get("version")), (&json!(16), None), "{seen}");
        ask(Method::PATCH, &format!("{new}/d"), &json!({"spec": {"logStorage": "1Gi"}})).await;
        let (_, seen) = ask(Method::GET, &format!("{old}/d"), &Value::Null).await;
        assert_eq!(seen["spec"].get("logStorage"), None, "the old version has no room for it: {seen}");
        let (code, changed) = ask(Method::PATCH, &format!("{old}/d"), &json!({"spec": {"version": 17}})).await;
        assert_eq!((code, &changed["spec"]["version"]), (200, &json!(17)), "{changed}");
        let (_, list) = ask(Method::GET, new, &Value::Null).await;
        assert_eq!(
            (&list["items"][0]["spec"]["release"], &list["items"][0]["spec"]["logStorage"]),
            (&json!(17), &json!("1Gi"))
        );

        let (code, refused) = ask(Method::PATCH, &format!("{old}/d"), &json!({"spec": {"version": 15}})).await;
        let message = refused["message"].as_str().unwrap();
        assert!(code == 403 || code == 422, "{refused}");
        assert!(message.contains("data of release 17 cannot be read by an older one"), "{message}");

        stop.cancel();
        running.await.unwrap().unwrap();
        let (code, refused) = ask(Method::GET, old, &Value::Null).await;
        let message = refused["message"].as_str().unwrap();
        assert_eq!(code, 500);
        assert!(
            message.starts_with("conversion webhook for db.example.com/v1, Kind=Database failed: Post "),
            "{message}"
        );
        assert_eq!(ask(Method::GET, new, &Value::Null).await.0, 200, "the stored version needs nobody");
        stop_cluster.send(true).unwrap();
        serving.await.unwrap();
    });
}

// === the guide ===

/// `docs/library.md` names a file before every block of Rust, and the block stands in that file.
#[test]
fn the_guide_shows_what_runs() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let guide = std::fs::read_to_string(format!("{root}/docs/library.md")).unwrap();
    let blocks: Vec<&str> = guide.split("\n```rust\n").collect();
    assert!(blocks.len() > 9, "the guide has its blocks");
    for (before, block) in blocks.iter().zip(&blocks[1..]) {
        let file = before.lines().last().unwrap().trim_matches('`');
        let (block, _) = block.split_once("\n```").unwrap();
        let source = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(source.contains(block), "{file} does not have\n{block}");
    }
}
