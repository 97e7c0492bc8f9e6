//! The operator, on clusters inside the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/plan.rs"]
mod plan;
#[path = "operator/references.rs"]
mod references;
#[path = "operator/snapshot.rs"]
mod snapshot;

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
        self,
        cluster::Options,
        serve::{Kubeconfig, Owner},
    },
    http::Method,
    k8s_openapi::api::{
        apps::v1::StatefulSet,
        core::v1::{Container, Service},
    },
    kube::{
        self, Api,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    program::{Dependencies, Program, read_flags},
    serde_json::{self, Value, json, value::RawValue},
    testing::{self, Cluster, Setup},
    tokio::{
        self,
        io::{AsyncReadExt, AsyncWriteExt},
    },
    tokio_util::sync::CancellationToken,
    webhook::{self, Defaults, Environment},
};
use postgres_operator::{
    CONVERSIONS, DATABASE, HANDLERS, NAME, NAMESPACE, backups::BackupStore, database::Database, manifests, operator,
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

// === the controller, on a cluster inside the test ===

/// The manifests of an operator that runs its controllers alone.
fn without_webhooks() -> Vec<Value> {
    let mut manifests = manifests();
    let definition = manifests.iter_mut().find(|manifest| manifest["kind"] == "CustomResourceDefinition");
    definition.unwrap()["spec"]["conversion"] = json!({"strategy": "None"});
    manifests.retain(|manifest| !manifest["kind"].as_str().unwrap().ends_with("WebhookConfiguration"));
    manifests
}

fn typed(spec: &Value) -> Database {
    serde_json::from_value(database(spec)).unwrap()
}

/// Changes the database `d`.
async fn change(databases: &Api<Database>, spec: &Value) -> Result<Database, kube::Error> {
    databases.patch("d", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
}

/// The code and the message of a refusal.
fn refusal<T>(answer: Result<T, kube::Error>) -> (u16, String) {
    match answer.err() {
        Some(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("{other:?}"),
    }
}

/// The container of a database's servers.
fn server_of(set: &StatefulSet) -> &Container {
    &set.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0]
}

#[test]
fn an_api_server_takes_the_declaration() {
    for declared in DATABASE {
        let errors = declared.check(Profile::Hardened);
        assert!(errors.is_empty(), "{}: {errors}", declared.info.version);
    }
}

#[test]
fn a_database_gets_its_servers() -> testing::Result<()> {
    testing::run(async {
        let add = |setup: &mut Setup| operator::add(setup, None);
        let cluster = Cluster::start(NAME, &without_webhooks(), add).await?;
        let databases = cluster.api::<Database>();
        let (sets, services) = (cluster.api::<StatefulSet>(), cluster.api::<Service>());
        let small = typed(&json!({"release": 16, "storage": "1Gi"}));
        let made = databases.create(&PostParams::default(), &small).await?;
        assert_eq!(made.spec.replicas, Some(1), "the schema's default");
        let first = cluster.until(&sets, "d", "is there", |_| true).await?;
        assert_eq!(first.metadata.owner_references.as_ref().unwrap()[0].kind, "Database");
        assert_eq!(server_of(&first).image.as_deref(), Some("postgres:16"));
        let published = cluster.until(&services, "d", "is there", |_| true).await?;
        assert_eq!(published.spec.unwrap().cluster_ips.unwrap(), ["None"], "the server's part");
        // Each object is written once: what the server filled in is no difference.
        cluster.quiet(Duration::from_mins(30)).await?;

        change(&databases, &json!({"release": 17, "replicas": 3})).await?;
        let has_three = |set: &StatefulSet| set.spec.as_ref().unwrap().replicas == Some(3);
        let changed = cluster.until(&sets, "d", "has three servers", has_three).await?;
        assert_eq!(server_of(&changed).image.as_deref(), Some("postgres:17"));

        let wrong = json!({"settings": {"maxConnections": 0, "walLevel": "everything"}});
        let (_, message) = refusal(change(&databases, &wrong).await);
        assert!(message.contains("spec.settings.maxConnections: Invalid value: 0"), "{message}");
        assert!(message.contains(r#"spec.settings.walLevel: Unsupported value: "everything""#), "{message}");
        let accepted = change(&databases, &json!({"settings": {"maxConnections": 200}})).await?;
        assert_eq!(json!(accepted)["spec"]["settings"]["walLevel"], "replica", "the type's default");
        let is_tuned = |set: &StatefulSet| {
            server_of(set).args.as_ref().is_some_and(|arguments| arguments[1] == "max_connections=200")
        };
        cluster.until(&sets, "d", "has the settings", is_tuned).await?;

        let ready = json!({"status": {"replicas": 3, "readyReplicas": 2}});
        sets.patch_status("d", &PatchParams::default(), &Patch::Merge(ready)).await?;
        let has_two = |database: &Database| database.status.as_ref().is_some_and(|status| status.ready == 2);
        cluster.until(&databases, "d", "reports two servers", has_two).await?;
        Ok(())
    })
}

#[test]
fn webhooks_and_conversion_are_asked_without_a_socket() -> testing::Result<()> {
    testing::run(async {
        let mut cluster = Cluster::start(NAME, &manifests(), |setup| operator::add(setup, None)).await?;
        let mut old = database(&json!({"version": 16, "storage": "1Gi", "backup": "0  3 * * *"}));
        old["apiVersion"] = json!("db.example.com/v1alpha1");
        let made = cluster.create(&old).await?;
        assert_eq!((&made["spec"]["version"], &made["spec"]["backup"]), (&json!(16), &json!("0 3 * * *")));
        let databases = cluster.api::<Database>();
        let reported = cluster.until(&databases, "d", "has a status", |database| database.status.is_some()).await?;
        assert_eq!(reported.spec.release, 16);
        let (_, message) = refusal(change(&databases, &json!({"release": 15})).await);
        assert!(message.contains("data of release 16 cannot be read by an older one"), "{message}");

        cluster.stop().await?;
        let (code, message) = refusal(change(&databases, &json!({"release": 17})).await);
        assert_eq!(code, 500);
        assert!(
            message.contains(
                "the operator serves no webhooks: the function that adds its controllers must give back their Service"
            ),
            "{message}"
        );
        Ok(())
    })
}

#[test]
fn a_version_has_its_own_limit_of_users() -> testing::Result<()> {
    testing::run(async {
        let cluster = Cluster::start(NAME, &manifests(), |setup| operator::add(setup, None)).await?;
        let users: Vec<Value> = (0..9).map(|index| json!({"name": format!("user_{index}")})).collect();
        let mut old = database(&json!({"version": 16, "storage": "1Gi", "users": users}));
        old["apiVersion"] = json!("db.example.com/v1alpha1");
        let refused = cluster.create(&old).await.expect_err("it has one too many").to_string();
        assert!(refused.contains("spec.users: Too many: 9: must have at most 8 items"), "{refused}");
        let made = cluster.create(&database(&json!({"release": 16, "storage": "1Gi", "users": users}))).await?;
        assert_eq!(made["spec"]["users"].as_array().map(Vec::len), Some(9));
        Ok(())
    })
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

/// In real time: the store is reached over a socket.
#[test]
fn a_bucket_comes_with_its_database_and_goes_before_it() -> testing::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let fake = Arc::new(Mutex::new(FakeStore::default()));
        let store = BackupStore::at(&serve(Arc::clone(&fake)).await).unwrap();
        let mut cluster = Cluster::start(NAME, &manifests(), |setup| operator::add(setup, Some(store))).await?;
        let databases = cluster.api::<Database>();
        let backed_up = typed(&json!({"release": 16, "storage": "1Gi", "backup": "0 3 * * *"}));
        databases.create(&PostParams::default(), &backed_up).await?;
        let has_bucket = |database: &Database| {
            let condition = database.status.as_ref().and_then(|status| status.conditions.first());
            condition.is_some_and(|condition| condition.status == "True")
        };
        let ready = cluster.until(&databases, "d", "has a bucket", has_bucket).await?;
        let status = ready.status.unwrap();
        let condition = &status.conditions[0];
        assert_eq!((condition.message.as_str(), condition.observed_generation), ("s3://default.d", Some(1)));
        assert_eq!(ready.metadata.finalizers.unwrap(), ["db.example.com/bucket"]);

        // The store is not asked again for a bucket that it has made.
        let asked = fake.lock().unwrap().requests;
        change(&databases, &json!({"replicas": 2})).await?;
        cluster.pass(Duration::from_millis(300)).await;
        assert_eq!(fake.lock().unwrap().requests, asked);

        databases.delete("d", &DeleteParams::default()).await?;
        cluster.until_gone(&databases, "d").await?;
        assert_eq!(fake.lock().unwrap().log, ["make default.d", "remove default.d"]);
        cluster.stop().await
    })
}

// === everything, on a cluster that calls it over TLS ===

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
        let options = Options { token_file: Some(tokens), ..Options::default() };
        let cluster = envtest::cluster::Cluster::bind(options).await.unwrap();
        let server = cluster.server.clone();
        let ask = async |method: Method, path: &str, body: &Value| server.send(method, path, body).await;
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
        let environment = Environment::of(Defaults::of(NAME, NAMESPACE), |name| match name {
            "WEBHOOK_HOST" => Some("127.0.0.1".to_owned()),
            "WEBHOOK_PORT" => Some("0".to_owned()),
            "WEBHOOK_CERT_DIR" => Some(home.clone()),
            _ => None,
        });
        let stop = CancellationToken::new();
        let arguments = [NAME, "--metrics-addr=0", "--health-probe-addr=0"].map(str::to_owned);
        let settings = read_flags(&operator::BUILD, arguments.to_vec()).unwrap();
        let dependencies = Dependencies::of_process(Some(&config)).await.unwrap();
        let mut program = Program::new(operator::BUILD, settings, dependencies, &stop).unwrap();
        let service = operator::add(&mut program, None).unwrap();
        let server = webhook::Server::beside(program.core(), environment.unwrap(), service).unwrap();
        let mut manager = program.manager();
        server.run_in(&mut manager).unwrap();
        let running = tokio::spawn(manager.run(stop.clone()));

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
