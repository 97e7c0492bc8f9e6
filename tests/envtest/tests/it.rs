//! The embedded server as `kube::Client` sees it, without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use envtest::{
    environment::SeededEnvironment,
    kinds,
    server::ApiServer,
    shell::{Parts, Server},
    store::HistoryLimits,
};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};

fn server() -> Server {
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
    kinds::install(&mut core);
    Server::new(core, Parts::default())
}

fn client(server: &Server) -> Client {
    Client::new(server.router(), "default")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("k".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

async fn with_namespace(client: &Client, name: &str) -> Api<ConfigMap> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    Api::namespaced(client.clone(), name)
}

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted() {
    let server = server();
    let maps = with_namespace(&client(&server), "n").await;
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert_eq!(made.metadata.creation_timestamp.unwrap().0.to_string(), "2026-01-02T03:04:05Z");
    assert!(made.metadata.uid.is_some());

    let patch = Patch::Merge(serde_json::json!({"data": {"k": "2"}}));
    let changed = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(changed.data.unwrap()["k"], "2");

    let mut stale = config_map("a", "3");
    stale.metadata.resource_version = made.metadata.resource_version;
    let error = maps.replace("a", &PostParams::default(), &stale).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"));

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_follows_a_selection() {
    let server = server();
    let maps = with_namespace(&client(&server), "n").await;
    let mut events = maps.watch(&WatchParams::default().labels("s=on"), "0").await.unwrap().boxed();
    let mut map = config_map("a", "1");
    maps.create(&PostParams::default(), &map).await.unwrap();
    map.metadata.labels = Some([("s".to_owned(), "on".to_owned())].into());
    maps.replace("a", &PostParams::default(), &map).await.unwrap();
    map.metadata.labels = None;
    let left = maps.replace("a", &PostParams::default(), &map).await.unwrap();

    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(_))));
    let Some(WatchEvent::Deleted(gone)) = events.try_next().await.unwrap() else { panic!("it left the selection") };
    assert_eq!(gone.metadata.labels.unwrap()["s"], "on");
    assert_eq!(gone.metadata.resource_version, left.metadata.resource_version);
}

#[tokio::test]
async fn a_list_comes_in_pages_of_one_state() {
    let server = server();
    let maps = with_namespace(&client(&server), "n").await;
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(rest.items[0].metadata.name.as_deref(), Some("c"));
    assert_eq!(rest.metadata.continue_.as_deref().unwrap_or_default(), "");
}
