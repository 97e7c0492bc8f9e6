//! `postgres-operator --plan`: what is shown of a cluster and of files, and that nothing is done.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
};

use koord::{
    envtest::{request::ApiRequest, server::Outcome, shell::Server},
    http::Method,
    jiff::Timestamp,
    k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Service},
    serde_json::{self, Value, json},
    testing::Cluster,
    tokio,
};
use postgres_operator::{NAME, database::Database, operator};

use super::{FakeStore, database, serve, without_webhooks};

const DATABASE: &str = "/apis/db.example.com/v1/namespaces/default/databases/d";
const SERVERS: &str = "/apis/apps/v1/namespaces/default/statefulsets/d";
const SERVICE: &str = "/api/v1/namespaces/default/services/d";

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_postgres-operator"));
    program.env_remove("KUBECONFIG").env("HOME", "/nonexistent").stdin(Stdio::null());
    program
}

fn output(command: &mut Command) -> (String, String, i32) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

fn send(server: &Server, method: Method, path: &str, body: &Value) -> Value {
    match server.with_core(|core| core.handle(&ApiRequest::json(method, path, body))) {
        Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn get(server: &Server, path: &str) -> Value {
    send(server, Method::GET, path, &Value::Null)
}

/// What somebody else declares.
fn apply(server: &Server, path: &str, spec: &Value) {
    let (api_version, kind) = if path == SERVICE { ("v1", "Service") } else { ("apps/v1", "StatefulSet") };
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "d"}, "spec": spec});
    let mut request = ApiRequest::new(Method::PATCH, &format!("{path}?fieldManager=mesh"), object.to_string());
    "application/apply-patch+yaml".clone_into(&mut request.content_type);
    let outcome = server.with_core(|core| core.handle(&request));
    assert!(format!("{outcome:?}").contains("code: 200"), "{outcome:?}");
}

/// Runs the operator until its database is as it should be.
async fn converge(cluster: &mut Cluster, image: &str) {
    cluster.run(|setup| operator::add(setup, None)).unwrap();
    let has_image = |set: &StatefulSet| {
        let pod = set.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        pod.containers.iter().any(|container| container.image.as_deref() == Some(image))
    };
    cluster.until(&cluster.api(), "d", "has the image", has_image).await.unwrap();
    let is_served = |service: &Service| {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| selector["app"] == "postgres")
    };
    cluster.until(&cluster.api(), "d", "has its selector", is_served).await.unwrap();
    let has_status = |database: &Database| database.status.is_some();
    cluster.until(&cluster.api(), "d", "has a status", has_status).await.unwrap();
    cluster.stop().await.unwrap();
}

/// What the program has asked for since the record was started is lists alone.
fn has_only_listed(server: &Server) {
    let record = server.faults().record();
    let asked: Vec<_> = record.iter().filter(|(user, _)| user == NAME).map(|(_, access)| access).collect();
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked.verb == "list"), "{asked:?}");
}

#[test]
fn a_plan_shows_what_would_be_written_and_nothing_is() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut cluster = Cluster::at(Timestamp::now(), NAME, &without_webhooks()).await.unwrap();
        let server = cluster.server().clone();
        let kubeconfig = cluster.kubeconfig().unwrap();
        assert_eq!(cluster.kubeconfig().unwrap(), kubeconfig, "there is one socket");
        let folder = tempfile::tempdir().unwrap();
        let fake = Arc::new(Mutex::new(FakeStore::default()));
        let store = serve(Arc::clone(&fake)).await;
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, configuration(&format!("backupStore: {store}\n"))).unwrap();
        let mut plan = program();
        plan.arg("--plan").arg("--config").arg(&config).env("KUBECONFIG", &kubeconfig);

        let spec = json!({"release": 16, "storage": "1Gi", "settings": {"maxConnections": 9}});
        send(&server, Method::POST, DATABASE.strip_suffix("/d").unwrap(), &database(&spec));
        server.faults().start_record();
        let (text, _, code) = output(&mut plan);
        has_only_listed(&server);
        let finalizer = r#"+ metadata.finalizers[db.example.com/bucket]: "db.example.com/bucket""#;
        assert_eq!((text, code), (format!("change Database default/d  # database\n{finalizer}\n"), 1));
        converge(&mut cluster, "postgres:16").await;
        assert_eq!(output(&mut plan), (String::new(), String::new(), 0));

        // Others add what is theirs, and change what is ours.
        apply(&server, SERVERS, &json!({"template": {"spec": {"containers": [{"name": "mesh", "image": "mesh:1"}]}}}));
        apply(&server, SERVICE, &json!({"ports": [{"name": "metrics", "port": 8008}]}));
        send(&server, Method::PATCH, SERVICE, &json!({"spec": {"selector": {"app": "other"}}}));
        let change = json!({"spec": {"release": 17, "settings": null, "backup": "0 3 * * *"}});
        send(&server, Method::PATCH, DATABASE, &change);
        let seen = || [DATABASE, SERVERS, SERVICE].map(|path| get(&server, path));
        let before = seen();
        server.faults().start_record();
        let (text, _, code) = output(&mut plan);
        let (text, status) = text.split_once("change Database/status default/d  # database\n").unwrap();
        let servers = "spec.template.spec.containers[name=postgres]";
        let expected = format!(
            r#"apply StatefulSet default/d  # database
- {servers}.args[0]: "-c"
- {servers}.args[1]: "max_connections=9"
- {servers}.args[2]: "-c"
- {servers}.args[3]: "wal_level=replica"
- {servers}.image: "postgres:16"
+ {servers}.image: "postgres:17"
apply Service default/d  # database
- spec.selector.app: "other"
+ spec.selector.app: "postgres"
"#
        );
        assert_eq!((text, code), (expected.as_str(), 1));
        let effect = r#"effect buckets default/d: would begin with {"present":"default.d"}  # database"#;
        assert!(status.ends_with(&format!("{effect}\n")) && status.contains(r#"reason: "Pending""#), "{status}");

        // The same objects from files are the same plan.
        let file = folder.path().join("objects.json");
        std::fs::write(&file, json!({"kind": "List", "items": before}).to_string()).unwrap();
        plan.args(["--at", "2026-01-02T03:04:05Z", "-o", "json"]);
        let (of_cluster, _, _) = output(&mut plan);
        let (of_files, errors, code) = output(plan.arg("-f").arg(&file));
        assert_eq!((of_files, errors, code), (of_cluster.clone(), String::new(), 1));
        let shown: Value = serde_json::from_str(&of_cluster).unwrap();
        assert_eq!(shown["effects"][0]["inputs"], json!({"present": "default.d"}));
        assert_eq!((&shown["problems"], &shown["notes"]), (&json!([]), &json!([])));

        assert_eq!(seen(), before, "a plan writes nothing");
        assert_eq!(fake.lock().unwrap().requests, 0, "and begins nothing");
        let leases = "/apis/coordination.k8s.io/v1/namespaces/postgres/leases";
        assert_eq!(get(&server, leases)["items"], json!([]));
        has_only_listed(&server);

        // What was planned is what happens.
        converge(&mut cluster, "postgres:17").await;
        let [_, servers, service] = seen();
        let containers = &servers["spec"]["template"]["spec"]["containers"];
        let names: Vec<&Value> = containers.as_array().unwrap().iter().map(|container| &container["name"]).collect();
        assert!(names.len() == 2 && names.contains(&&json!("mesh")) && !containers.to_string().contains("args"));
        assert_eq!(service["spec"]["ports"].as_array().unwrap().len(), 2);
    });
}

#[test]
fn an_object_without_managed_fields_is_noted_and_one_of_another_version_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml");
    let plan = |text: &str| {
        std::fs::write(&file, text).unwrap();
        output(program().args(["--plan", "-f"]).arg(&file))
    };
    let owned = "apiVersion: db.example.com/v1
kind: Database
metadata: {name: d, namespace: shop, uid: u, finalizers: [db.example.com/bucket]}
spec: {release: 16, storage: 1Gi}
---
apiVersion: v1
kind: Service
metadata: {name: d, namespace: shop}
spec: {clusterIP: None}
---
";
    let (text, _, code) = plan(owned);
    let note = text.lines().last().unwrap();
    assert!(
        code == 1 && note.starts_with("note: without managedFields (Service shop/d) all that is declared"),
        "{text}"
    );
    // A kind of another group is no Service.
    let (text, _, _) = plan(&owned.replace("apiVersion: v1\n", "apiVersion: serving.example.com/v1\n"));
    assert!(!text.contains("note: ") && text.contains(r#"+ spec.clusterIP: "None""#), "{text}");

    let (text, error, code) = plan(&owned.replace("db.example.com/v1", "db.example.com/v1alpha1"));
    assert_eq!((text.as_str(), code), ("", 2));
    assert!(error.contains("written in db.example.com/v1alpha1, and db.example.com/v1 is read"), "{error}");
    assert!(error.contains("kubectl get databases.v1.db.example.com -o yaml"), "{error}");

    let (text, error, code) = plan("kind: Database\nmetadata: {name: d, namespace: shop}\nspec: {release: new}\n");
    assert!(code == 1 || text.contains("warning DecodeError on Database shop/d"), "{code} {text} {error}");
}

/// The text of a configuration with these lines.
fn configuration(lines: &str) -> String {
    format!("apiVersion: config.db.example.com/v1\nkind: OperatorConfiguration\n{lines}")
}

#[test]
fn a_wrong_configuration_is_refused_with_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    for (text, wrong) in [
        (configuration("backupStor: x\n"), "3: backupStor: unknown field; did you mean backupStore?"),
        (configuration("backupStore: 5\n"), "3: backupStore: must be a text, not a whole number"),
        (configuration("backupStore: backups\n"), "3: backupStore: must begin with http:// or https://"),
        (
            "kind: Pod\n".to_owned(),
            "1: must be an OperatorConfiguration of config.db.example.com/v1, but has no apiVersion",
        ),
    ] {
        std::fs::write(&file, &text).unwrap();
        let (shown, error, code) = output(program().arg("--plan").arg("--config").arg(&file));
        let expected = format!("error: --config: {}:{wrong}\n", file.display());
        assert_eq!((shown.as_str(), error.as_str(), code), ("", expected.as_str(), 2), "{text}");
    }
}

#[test]
fn a_plan_that_cannot_be_made_says_why() {
    for (flags, why) in [
        (&["-f", "x.yaml"][..], "required arguments were not provided:\n  --plan"),
        (&["--at=2026-01-02T03:04:05Z"], "required arguments were not provided:\n  --plan"),
        (&["--plan", "--at=soon"], "'--at <TIME>': a time such as 2026-01-02T03:04:05Z"),
        (&["--plan", "-o", "toml"], "[possible values: table, json, yaml]"),
        (
            &["--plan", "-f", "x.yaml", "--kubeconfig=y"],
            "'--filename <FILE>...' cannot be used with '--kubeconfig <FILE>'",
        ),
        (&["--plan", "-f", "no/such.yaml"], "postgres-operator: no/such.yaml cannot be read: No such file"),
        (&["--plan"], "postgres-operator: no cluster is known: "),
        (&["--plan", "--kubeconfig=no/such"], "the kubeconfig no/such cannot be read: No such file"),
    ] {
        let (text, error, code) = output(program().args(flags));
        assert_eq!((text.as_str(), code), ("", 2), "{flags:?}: {error}");
        assert!(error.contains(why), "{flags:?}: {error}");
    }
    let (text, _, code) = output(program().args(["--plan", "-o=json", "-f=no/such.yaml"]));
    let answered: Value = serde_json::from_str(&text).unwrap();
    assert!(code == 2 && answered["error"].as_str().unwrap().starts_with("no/such.yaml cannot be read"), "{text}");
}

/// The transcript of `docs/library.md` is what the operator prints.
#[test]
fn the_guide_shows_the_plan_that_is_printed() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let guide = std::fs::read_to_string(root.join("docs/library.md")).unwrap();
    let mut blocks =
        guide.split("\n```text\n$ ").skip(1).filter_map(|rest| rest.split_once("\n```\n")?.0.split_once('\n'));
    let (line, expected) = blocks.find(|(line, _)| line.starts_with("postgres-operator --plan ")).unwrap();
    let words = line.split(' ').skip(1);
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let (text, errors, code) = output(program().args(words).current_dir(example));
    assert_eq!((text.trim_end(), code), (expected, 1), "{errors}");
}
