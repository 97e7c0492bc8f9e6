use std::{
    io::{Error, ErrorKind},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use bytes::Bytes;
use http::Method;
use redb::{Database, StorageBackend};
use serde_json::{Value, json};

use super::*;
use crate::{
    environment::SystemEnvironment,
    kinds,
    request::ApiRequest,
    server::{ApiResponse, ApiServer, Watch},
    shell::{Parts, Server},
    store::HistoryLimits,
};

/// A disk in memory that can be full.
#[derive(Debug, Default)]
struct Room {
    bytes: Mutex<Vec<u8>>,
    is_full: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct Backend(Arc<Room>);

impl Backend {
    fn set_full(&self, is_full: bool) {
        self.0.is_full.store(is_full, Ordering::Release);
    }

    fn check(&self) -> Result<(), Error> {
        if self.0.is_full.load(Ordering::Acquire) { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn journal(&self) -> (Journal, Contents) {
        let backend = self.clone();
        let open = move || Database::builder().create_with_backend(backend.clone());
        Journal::open_with(Path::new("memory"), Box::new(open)).unwrap()
    }

    /// A server over what the disk holds.
    async fn server(&self) -> Server {
        let (journal, contents) = self.journal();
        let mut core = ApiServer::empty(Box::new(SystemEnvironment::default()), HistoryLimits::default());
        kinds::install(&mut core);
        core.restore(contents);
        core.start_journal();
        crate::bootstrap::run(&mut core).unwrap();
        let server = Server::new(core, Parts { journal: Some(journal), ..Parts::default() });
        server.settled().await.unwrap();
        server
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.0.bytes.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let start = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.0.bytes.lock()[start..start + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.check()?;
        self.0.bytes.lock().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.check()?;
        let start = usize::try_from(offset).unwrap();
        self.0.bytes.lock()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn ask(server: &Server, method: Method, path: &str, body: Value) -> Result<ApiResponse, Box<Watch>> {
    let mut request =
        ApiRequest::new(method.clone(), path, if body.is_null() { String::new() } else { body.to_string() });
    if method == Method::PATCH {
        "application/merge-patch+json".clone_into(&mut request.content_type);
    }
    if path.ends_with("configmaps?watch") {
        MAPS.clone_into(&mut request.path);
        request.query.push(("watch".to_owned(), "true".to_owned()));
    }
    server.answer(&request).await
}

async fn code(server: &Server, method: Method, path: &str, body: Value) -> u16 {
    ask(server, method, path, body).await.unwrap().code
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"a": "1"}})
}

async fn names(server: &Server) -> Vec<String> {
    let list: Value = serde_json::from_slice(&ask(server, Method::GET, MAPS, Value::Null).await.unwrap().body).unwrap();
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Writes until the disk takes it again.
async fn create_when_possible(server: &Server, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while code(server, Method::POST, MAPS, map(name)).await != 201 {
        assert!(Instant::now() < deadline, "the disk has room, and still takes nothing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_restart() {
    let disk = Backend::default();
    let server = disk.server().await;
    for name in ["a", "b", "c"] {
        assert_eq!(code(&server, Method::POST, MAPS, map(name)).await, 201);
    }
    assert_eq!(code(&server, Method::DELETE, &format!("{MAPS}/b"), Value::Null).await, 200);
    let revision = server.with_core(|core| core.store.revision());
    drop(server);
    let server = disk.server().await;
    assert_eq!(names(&server).await, ["a", "c"]);
    assert_eq!(server.with_core(|core| core.store.revision()), revision);
}

#[tokio::test]
async fn a_write_that_the_disk_does_not_take_was_never_there() {
    let disk = Backend::default();
    let server = disk.server().await;
    assert_eq!(code(&server, Method::POST, MAPS, map("kept")).await, 201);
    assert_eq!(code(&server, Method::POST, MAPS, map("also-kept")).await, 201);
    let Err(mut watch) = ask(&server, Method::GET, &format!("{MAPS}?watch"), Value::Null).await else {
        panic!("a watch was asked for")
    };
    let seen = |watch: &mut Watch| server.with_core(|core| core.poll_watch(watch, 100)).len();
    assert_eq!(seen(&mut watch), 2);

    disk.set_full(true);
    // All at once, so that some are built on others before the disk refuses.
    let (kept, also_kept) = (format!("{MAPS}/kept"), format!("{MAPS}/also-kept"));
    let (one, two, three, four) = tokio::join!(
        code(&server, Method::POST, MAPS, map("lost")),
        code(&server, Method::PATCH, &kept, json!({"data": {"a": "2"}})),
        code(&server, Method::DELETE, &also_kept, Value::Null),
        code(&server, Method::POST, MAPS, map("lost")),
    );
    assert_eq!([one, two, three, four], [507; 4]);
    assert_eq!(code(&server, Method::POST, MAPS, map("refused")).await, 507);
    assert_eq!(names(&server).await, ["also-kept", "kept"]);
    assert_eq!(code(&server, Method::GET, &format!("{MAPS}/lost"), Value::Null).await, 404);
    let object = ask(&server, Method::GET, &kept, Value::Null).await.unwrap().body;
    assert_eq!(serde_json::from_slice::<Value>(&object).unwrap()["data"]["a"], "1");
    assert_eq!(seen(&mut watch), 0, "no watch shows what was undone");

    disk.set_full(false);
    create_when_possible(&server, "later").await;
    assert_eq!(code(&server, Method::POST, MAPS, map("lost")).await, 201);
    assert_eq!(seen(&mut watch), 2);
    drop(watch);
    drop(server);
    assert_eq!(names(&disk.server().await).await, ["also-kept", "kept", "later", "lost"]);
}

#[tokio::test]
async fn a_kind_whose_definition_the_disk_did_not_take_is_not_served() {
    let disk = Backend::default();
    let server = disk.server().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    disk.set_full(true);
    assert_eq!(code(&server, Method::POST, definitions, definition.clone()).await, 507);
    assert_eq!(code(&server, Method::GET, "/apis/example.com/v1/widgets", Value::Null).await, 404);
    disk.set_full(false);
    create_when_possible(&server, "later").await;
    assert_eq!(code(&server, Method::POST, definitions, definition).await, 201);
    assert_eq!(code(&server, Method::GET, "/apis/example.com/v1/widgets", Value::Null).await, 200);
}

#[test]
fn two_servers_cannot_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (_journal, _) = Journal::open(folder.path()).unwrap();
    let Err(error) = Journal::open(folder.path()) else { panic!("the file is locked") };
    assert!(error.to_string().contains("is in use by another server"));
}

#[test]
fn entries_come_back_as_they_were_written() {
    let entry = |key: &str, revision: u64, tail: Option<&str>| {
        let object = tail.map(|tail| (Arc::from("v1"), Bytes::copy_from_slice(tail.as_bytes())));
        Entry { collection: "/configmaps".to_owned(), key: key.to_owned(), revision, object }
    };
    let disk = Backend::default();
    let backend = disk.clone();
    let (mut file, _) = Disk::open(Box::new(move || Database::builder().create_with_backend(backend.clone()))).unwrap();
    file.write(&[entry("n/a", 2, Some("\"metadata\":{}}")), entry("n/b", 3, Some("x"))]).unwrap();
    file.write(&[entry("n/b", 4, None)]).unwrap();
    file.reopen(&[entry("n/a", 2, Some("\"metadata\":{}}"))]).unwrap();
    drop(file);
    let (_journal, contents) = disk.journal();
    assert_eq!((contents.revision, contents.entries), (4, vec![entry("n/a", 2, Some("\"metadata\":{}}"))]));
}
