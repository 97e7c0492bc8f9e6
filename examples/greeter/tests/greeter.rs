//! The operator of the README as its users run it: `greeter manifests` into a cluster, then `greeter`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use koord::{
    envtest::{
        cluster::{Cluster, Options},
        request::ApiRequest,
        shell::Server,
        yaml,
    },
    http::Method,
    serde_json::{self, Value, json},
    tokio::{self, sync::watch},
};

const GREETINGS: &str = "/apis/example.com/v1/namespaces/default/greetings";
const CARD: &str = "/api/v1/namespaces/default/configmaps/hello";

/// A program that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn send(server: &Server, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let mut request = ApiRequest::new(method, path, body.to_string());
    if request.method == Method::PATCH {
        "application/merge-patch+json".clone_into(&mut request.content_type);
    }
    let answer = server.answer(&request).await.unwrap();
    (answer.code, serde_json::from_slice(&answer.body).unwrap())
}

async fn words_become(server: &Server, expected: &str) -> Value {
    let begin = Instant::now();
    loop {
        let (_, card) = send(server, Method::GET, CARD, &Value::Null).await;
        if card["data"]["words"] == expected {
            return card;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "the words do not become {expected:?}: {card}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn greeting(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "hello"}, "spec": spec})
}

#[test]
fn a_greeting_has_a_card_with_its_words() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let cluster = Cluster::bind(Options::default()).await.unwrap();
        let greeter = || Command::new(env!("CARGO_BIN_EXE_greeter"));
        let manifests = greeter().arg("manifests").output().unwrap();
        for object in yaml::documents(&String::from_utf8(manifests.stdout).unwrap()).unwrap() {
            cluster.create(&object).await.unwrap();
        }
        let kubeconfig =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("greeter-{}.kubeconfig", std::process::id()));
        cluster.kubeconfig(koord::envtest::serve::Owner::named("greeter")).write(&kubeconfig, true).unwrap();
        let server = cluster.server.clone();
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(cluster.run(stopped));
        let mut program = greeter();
        program.args(["--metrics-addr=0", "--health-probe-addr=0"]).env("KUBECONFIG", &kubeconfig);
        let _running = Running(program.stdin(Stdio::null()).spawn().unwrap());

        let (code, refused) = send(&server, Method::POST, GREETINGS, &greeting(&json!({"to": "", "times": 12}))).await;
        let message = refused["message"].as_str().unwrap();
        assert!(code == 422 && message.contains("spec.to") && message.contains("spec.times"), "{refused}");
        let (_, made) = send(&server, Method::POST, GREETINGS, &greeting(&json!({"to": "world"}))).await;
        assert_eq!(made["spec"]["times"], 1, "{made}");

        let card = words_become(&server, "Hello, world!").await;
        assert_eq!(card["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"]);
        let path = format!("{GREETINGS}/hello");
        send(&server, Method::PATCH, &path, &json!({"spec": {"times": 2}})).await;
        words_become(&server, "Hello, world! Hello, world!").await;
        // What somebody else changes is put right.
        send(&server, Method::PATCH, CARD, &json!({"data": {"words": "Go away!"}})).await;
        words_become(&server, "Hello, world! Hello, world!").await;
        send(&server, Method::DELETE, CARD, &Value::Null).await;
        words_become(&server, "Hello, world! Hello, world!").await;

        stop.send_replace(true);
        serving.await.unwrap();
        let _ = std::fs::remove_file(kubeconfig);
    });
}
