//! kube-rs' own watcher and wait conditions, which other programs follow a cluster with.

use std::{pin::pin, time::Duration};

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, Client, ResourceExt as _};
use kube_runtime::{
    WatchStreamExt as _,
    wait::{await_condition, conditions},
    watcher::{self, Event, watcher},
};

use crate::suite::{Scene, on_every_server};

/// How long the server may take for what it does at once.
const ANSWER_MAX: Duration = Duration::from_secs(20);

async fn client(scene: &Scene<'_>) -> Client {
    let config = koord_program::kubeconfig::from_file(scene.kubeconfig(), None).await.unwrap();
    Client::try_from(config).unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { tokio::time::timeout(ANSWER_MAX, work).await.expect("the server answers in time") })
}

/// The next event in words: `apply a`, `delete a`.
async fn next(events: &mut (impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin)) -> String {
    match events.next().await.unwrap().unwrap() {
        Event::Init => "init".to_owned(),
        Event::InitApply(object) => format!("init apply {}", object.name_any()),
        Event::InitDone => "init done".to_owned(),
        Event::Apply(object) => format!("apply {}", object.name_any()),
        Event::Delete(object) => format!("delete {}", object.name_any()),
    }
}

fn follows_a_collection(scene: &Scene<'_>, config: &watcher::Config, run: &str) {
    let labels = format!("run={run}");
    for name in ["a", "b", "c", "other"] {
        let name = format!("{run}-{name}");
        scene.says(&["create", "configmap", &name]);
        if !name.ends_with("other") {
            scene.says(&["label", "configmap", &name, &labels]);
        }
    }
    block_on(async {
        let maps: Api<ConfigMap> = Api::namespaced(client(scene).await, &scene.namespace);
        let mut events = pin!(watcher(maps, config.clone().labels(&labels)).default_backoff());
        let mut first = Vec::new();
        while first.last().is_none_or(|event| event != "init done") {
            first.push(next(&mut events).await);
        }
        let present = ["a", "b", "c"].map(|name| format!("init apply {run}-{name}"));
        assert_eq!(first, [vec!["init".to_owned()], present.to_vec(), vec!["init done".to_owned()]].concat());

        scene.says(&["label", "configmap", &format!("{run}-other"), &labels]);
        assert_eq!(next(&mut events).await, format!("apply {run}-other"), "an object comes into the selection");
        scene.says(&["annotate", "configmap", &format!("{run}-a"), "x=y"]);
        assert_eq!(next(&mut events).await, format!("apply {run}-a"));
        scene.says(&["label", "configmap", &format!("{run}-b"), "run-"]);
        assert_eq!(next(&mut events).await, format!("delete {run}-b"), "an object leaves the selection");
        scene.says(&["delete", "configmap", &format!("{run}-c")]);
        assert_eq!(next(&mut events).await, format!("delete {run}-c"));
    });
}

#[test]
fn a_watcher_lists_in_pages_and_follows_a_selection() {
    on_every_server(|scene| follows_a_collection(scene, &watcher::Config::default().page_size(2), "pages"));
}

#[test]
fn a_watcher_receives_the_list_as_a_stream() {
    on_every_server(|scene| {
        if scene.is_since(34, "lists as a stream") {
            follows_a_collection(scene, &watcher::Config::default().streaming_lists(), "stream");
        }
    });
}

#[test]
fn conditions_are_awaited_until_a_pod_runs_and_is_gone() {
    on_every_server(|scene| {
        scene.accepts(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: waits}\nspec: {nodeName: hollow-0, containers: [{name: main, image: image}]}\n",
        );
        block_on(async {
            let pods: Api<Pod> = Api::namespaced(client(scene).await, &scene.namespace);
            let running = await_condition(pods.clone(), "waits", conditions::is_pod_running()).await.unwrap().unwrap();
            let uid = running.uid().unwrap();
            let (gone, _) = tokio::join!(await_condition(pods.clone(), "waits", conditions::is_deleted(&uid)), async {
                pods.delete("waits", &kube::api::DeleteParams::default().grace_period(0)).await.unwrap()
            });
            gone.unwrap();
        });
    });
}
