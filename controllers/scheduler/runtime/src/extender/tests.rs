//! Extenders that answer well, late, at length, not at all, or nonsense.

use koord_runtime::key::ObjectKey;
use kube::Config;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;

/// What a server does with a question.
#[derive(Clone, Debug)]
enum Reply {
    Says(Value),
    Text(&'static str),
    Code(u16),
    Silence,
    Endless,
    HangsUp,
}

/// A server that answers every verb so. Gives its URL.
async fn server(reply: impl Fn(&str, Value) -> Reply + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/scheduler", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, reply.clone()));
        }
    });
    url
}

async fn serve(mut stream: TcpStream, reply: impl Fn(&str, Value) -> Reply) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).await.ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let verb = head.split(' ').nth(1)?.rsplit('/').next()?.to_owned();
    let lines = head.to_ascii_lowercase();
    let length = lines.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let answer = |code: u16, text: &str| {
        format!("HTTP/1.1 {code} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len())
    };
    let text = match reply(&verb, serde_json::from_slice(&body).unwrap()) {
        Reply::Says(value) => answer(200, &value.to_string()),
        Reply::Text(text) => answer(200, text),
        Reply::Code(code) => answer(code, "{}"),
        Reply::HangsUp => return None,
        Reply::Silence => std::future::pending().await,
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n").await.ok()?;
            loop {
                stream.write_all(&[b' '; 4096]).await.ok()?;
            }
        }
    };
    stream.write_all(text.as_bytes()).await.ok()
}

fn webhook(url: &str) -> Webhook {
    let mut config = Config::new(url.parse().unwrap());
    config.default_retry = false;
    let verb = str::to_owned;
    let extender = Extender {
        url: url.to_owned(),
        filter: verb("filter"),
        prioritize: verb("prioritize"),
        preempt: verb("preempt"),
        bind: verb("bind"),
        weight: 2,
        ..Extender::default()
    };
    let timeout = Duration::from_millis(300);
    Webhook { extender, client: config.try_into().unwrap(), timeout, answer_bytes_max: 100_000, knows_objects: true }
}

fn about(args: ExtenderArgs, webhooks: Vec<Webhook>) -> ExtenderCall {
    let node = |name: &str| (Arc::from(name), json!({"metadata": {"name": name, "labels": {"of": name}}}));
    ExtenderCall {
        args,
        pod: json!({"metadata": {"name": "p"}}),
        nodes: ["n1", "n2", "n3"].map(node).into(),
        victims: [(Uid::from("v"), json!({"metadata": {"uid": "v"}}))].into(),
        webhooks: webhooks.into_iter().map(Arc::new).collect(),
    }
}

fn nodes() -> ExtenderArgs {
    ExtenderArgs::Nodes(["n1", "n2", "n3"].map(Arc::from).to_vec())
}

/// What is said about three nodes: `n1 10, n2 0; n3 because of this`, with `!` where that lies in the node.
async fn said_by(webhooks: Vec<Webhook>) -> Result<String, String> {
    let ExtenderResult::Nodes(nodes) = about(nodes(), webhooks).send().await else { panic!() };
    let Nodes { accepted, failed, .. } = nodes.map_err(|error| error.message)?;
    let accepted: Vec<String> = accepted.iter().map(|(node, score)| format!("{node} {score}")).collect();
    let failed = failed
        .iter()
        .map(|(node, words)| format!("; {node} {}{}", if words.resolvable { "" } else { "!" }, words.reason));
    Ok(accepted.join(", ") + &failed.collect::<String>())
}

async fn said(reply: impl Fn(&str, Value) -> Reply + Clone + Send + 'static) -> Result<String, String> {
    let url = server(reply).await;
    said_by(vec![webhook(&url)]).await.map_err(|error| error.replace(url.trim_end_matches("/scheduler"), "http://x"))
}

#[tokio::test]
async fn nodes_are_filtered_and_rated_in_the_words_of_the_protocol() {
    let known = said(|verb, args| {
        assert_eq!((&args["Pod"]["metadata"]["name"], &args["Nodes"]), (&json!("p"), &Value::Null));
        if verb == "filter" {
            assert_eq!(args["NodeNames"], json!(["n1", "n2", "n3"]));
            let failed = json!({"n2": "busy", "n3": "busy"});
            return Reply::Says(
                json!({"nodenames": ["n1", "n2"], "FailedNodes": failed, "failedAndUnresolvableNodes": {"n3": "old"}}),
            );
        }
        assert_eq!(args["NodeNames"], json!(["n1", "n2"]));
        Reply::Says(json!([{"Host": "n1", "Score": 3}, {"host": "n2", "score": 10}, {"Host": "n9", "Score": 1}]))
    });
    assert_eq!(known.await.unwrap(), "n1 60, n2 200; n3 !old", "what is accepted is not refused");
    let url = server(|_, args| {
        let items: Vec<&Value> = args["Nodes"]["items"].as_array().unwrap().iter().take(1).collect();
        assert_eq!((&args["NodeNames"], &items[0]["metadata"]["labels"]["of"]), (&Value::Null, &json!("n1")));
        Reply::Says(json!({"Nodes": {"items": items}}))
    });
    let whole = Webhook { knows_objects: false, ..webhook(&url.await) };
    assert_eq!(said_by(vec![whole]).await.unwrap(), "n1 0", "a node without a rival needs no rating");
    assert_eq!(said(|_, _| Reply::Text("null")).await.unwrap(), "", "it names no node");
}

#[tokio::test]
async fn whoever_does_not_answer_fails_the_attempt_or_is_passed_over() {
    let filter = "http://x/scheduler/filter";
    let wrong = json!({"NodeNames": ["n9"]});
    let errors = [
        (Reply::Says(json!({"Error": "cannot say"})), "cannot say".to_owned()),
        (Reply::Code(500), format!("failed filter with extender at URL {filter}, code 500")),
        (Reply::Silence, format!("Post {filter:?}: no answer within 300ms")),
        (Reply::Endless, format!("Post {filter:?}: the answer is longer than 100000 bytes")),
        (
            Reply::Says(wrong),
            r#"extender "http://x/scheduler" claims a filtered node "n9" which is not found in the input node list"#
                .to_owned(),
        ),
    ];
    for (reply, error) in errors {
        assert_eq!(said(move |_, _| reply.clone()).await.unwrap_err(), error);
    }
    for (reply, begin) in [
        (Reply::HangsUp, format!("Post {filter:?}: ")),
        (Reply::Text("no JSON"), format!("the answer of the extender at {filter} cannot be read: ")),
        (Reply::Text("[1]"), format!("the answer of the extender at {filter} cannot be read: ")),
    ] {
        let error = said(move |_, _| reply.clone()).await.unwrap_err();
        assert!(error.starts_with(&begin), "{error}");
    }
    let (broken, works) = (
        server(|_, _| Reply::Code(503)).await,
        server(|verb, _| match verb {
            "filter" => Reply::Says(json!({"NodeNames": ["n1", "n2"]})),
            _ => Reply::Code(500),
        })
        .await,
    );
    let mut ignorable = webhook(&broken);
    ignorable.extender.is_ignorable = true;
    assert_eq!(said_by(vec![webhook(&works), ignorable]).await.unwrap(), "n1 0, n2 0", "ratings are never needed");
}

#[tokio::test]
async fn victims_are_sent_as_names_or_whole_and_chosen() {
    let victims: Victims = [(Arc::from("n1"), NodeVictims { pods: vec![Uid::from("v")], violations: 1 })].into();
    let named = server(|_, args| {
        assert_eq!(args["NodeNameToMetaVictims"], json!({"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 1}}));
        Reply::Says(json!({"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "v"}, {"UID": "w"}]}}}))
    });
    let whole = server(|_, args| {
        assert_eq!(args["NodeNameToVictims"]["n1"]["Pods"], json!([{"metadata": {"uid": "v"}}]));
        Reply::Says(json!({"NodeNameToMetaVictims": {"n1": {"Pods": []}}}))
    });
    let (named, whole) = (webhook(&named.await), Webhook { knows_objects: false, ..webhook(&whole.await) });
    let choose = |webhook: Webhook| about(ExtenderArgs::Victims(victims.clone()), vec![webhook]).send();
    let chosen = [(Arc::from("n1"), NodeVictims { pods: ["v", "w"].map(Uid::from).to_vec(), violations: 0 })];
    assert_eq!(choose(named).await, ExtenderResult::Victims(Ok(chosen.into())));
    let none = ExtenderError { message: r#"expected at least one victim pod on node "n1""#.to_owned() };
    assert_eq!(choose(whole.clone()).await, ExtenderResult::Victims(Err(none)));
    let ignorable = Webhook { extender: Extender { is_ignorable: true, ..whole.extender.clone() }, ..whole };
    assert_eq!(choose(ignorable).await, ExtenderResult::Victims(Ok(Victims::new())));
}

#[tokio::test]
async fn pods_are_bound_by_an_extender_or_the_reason_is_known() {
    let url = server(|_, args| {
        assert_eq!(args, json!({"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": args["Node"]}));
        Reply::Says(if args["Node"] == "n1" { json!({}) } else { json!({"Error": "no"}) })
    });
    let (webhook, pod) = (webhook(&url.await), ObjectKey::new("ns", "p"));
    webhook.bind(&pod, &Uid::from("u"), "n1").await.unwrap();
    assert_eq!(webhook.bind(&pod, &Uid::from("u"), "n2").await.unwrap_err().to_string(), "no");
}

#[tokio::test]
async fn ratings_beyond_all_bounds_are_cut_off() {
    let said = said(|verb, _| match verb {
        "filter" => Reply::Says(json!({"NodeNames": ["n1", "n2"]})),
        _ => Reply::Says(json!([{"Host": "n1", "Score": i64::MAX}, {"Host": "n2", "Score": i64::MIN}])),
    });
    let most = verbs::ADDED_SCORE_MAX;
    assert_eq!(said.await.unwrap(), format!("n1 {most}, n2 -{most}"));
}
