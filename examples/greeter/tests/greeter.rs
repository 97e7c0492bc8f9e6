//! The operator of the README as its users run it: `greeter manifests` into a cluster, then `greeter`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Child, Command, Stdio};

use koord::{
    envtest::yaml,
    jiff::Timestamp,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        self,
        api::{DeleteParams, Patch, PatchParams},
    },
    serde_json::{Value, json},
    testing::{Cluster, Result},
    tokio,
};

/// A program that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn greeting(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "hello"}, "spec": spec})
}

fn says(words: &str) -> impl Fn(&ConfigMap) -> bool {
    move |card| card.data.as_ref().is_some_and(|data| data["words"] == words)
}

#[test]
fn help_says_what_the_program_is_and_which_command_it_answers() {
    let output = Command::new(env!("CARGO_BIN_EXE_greeter")).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.starts_with("Runs the controllers of greeter, version "), "{text}");
    assert!(text.contains("greeter manifests  prints what is applied to a cluster"), "{text}");
    assert!(!text.contains("Environment variables:"), "it serves no webhooks: {text}");
}

#[test]
fn a_greeting_has_a_card_with_its_words() -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let greeter = || Command::new(env!("CARGO_BIN_EXE_greeter"));
        let manifests = yaml::documents(&String::from_utf8(greeter().arg("manifests").output()?.stdout)?)?;
        let mut cluster = Cluster::at(Timestamp::now(), "greeter", &manifests).await?;
        let mut program = greeter();
        program.args(["--metrics-addr=0", "--health-probe-addr=0"]).env("KUBECONFIG", cluster.kubeconfig()?);
        let _running = Running(program.stdin(Stdio::null()).spawn()?);

        let refused = cluster.create(&greeting(&json!({"to": "", "times": 12}))).await.unwrap_err();
        let Some(kube::Error::Api(status)) = refused.downcast_ref() else { panic!("{refused:?}") };
        assert!(status.code == 422 && status.message.contains("spec.to") && status.message.contains("spec.times"));
        let made = cluster.create(&greeting(&json!({"to": "world"}))).await?;
        assert_eq!(made["spec"]["times"], 1, "{made}");

        let (greetings, cards) = (cluster.api_of("example.com/v1", "Greeting").await?, cluster.api::<ConfigMap>());
        let card = cluster.until(&cards, "hello", "greets the world", says("Hello, world!")).await?;
        assert_eq!(json!(card.metadata.owner_references.unwrap()[0].uid), made["metadata"]["uid"]);
        let twice = Patch::Merge(json!({"spec": {"times": 2}}));
        greetings.patch("hello", &PatchParams::default(), &twice).await?;
        cluster.until(&cards, "hello", "greets twice", says("Hello, world! Hello, world!")).await?;
        // What somebody else changes is put right.
        let wrong = Patch::Merge(json!({"data": {"words": "Go away!"}}));
        cards.patch("hello", &PatchParams::default(), &wrong).await?;
        cluster.until(&cards, "hello", "greets as before", says("Hello, world! Hello, world!")).await?;
        cards.delete("hello", &DeleteParams::default()).await?;
        cluster.until(&cards, "hello", "is there again", says("Hello, world! Hello, world!")).await?;
        Ok(())
    })
}
