//! `koordctl why`: a pod that is placed, one that waits and why, one node, bad input; the same from files and from a cluster.

use koord_scheduler_framework::ReasonCode;
use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Value, json};

use crate::cluster::Cluster;

pub(crate) const AT: &str = "--at=2026-01-01T00:01:00Z";

fn node(name: &str, cpu: &str) -> Value {
    let amounts = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    })
}

fn pod(name: &str, cpu: &str, members: &Value) -> Value {
    let container = json!({"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}});
    let mut spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": spec,
    })
}

fn objects() -> Vec<Value> {
    vec![
        node("n1", "2"),
        node("n2", "8"),
        pod("runs", "1", &json!({"nodeName": "n1"})),
        pod("fits", "4", &json!({})),
        pod("large", "16", &json!({})),
        pod("gated", "1", &json!({"schedulingGates": [{"name": "example.com/gate"}]})),
        pod("foreign", "1", &json!({"schedulerName": "other"})),
    ]
}

fn asked(line: &[&str]) -> Result<Answer, String> {
    let line = ["koordctl", "why", AT].into_iter().chain(line.iter().copied());
    let cli = <Cli as clap::Parser>::try_parse_from(line).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_on(cli, Screen::ENDLESS)).map_err(|error| format!("{error:#}"))
}

fn from_files(arguments: &[&str]) -> Result<Answer, String> {
    from(&objects(), arguments)
}

fn from(objects: &[Value], arguments: &[&str]) -> Result<Answer, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    std::fs::write(&file, list.to_string()).unwrap();
    let file = file.display().to_string();
    let namespace: &[&str] = if arguments.contains(&"-n") { &[] } else { &["-n", "shop"] };
    asked(&[&["-f", &*file], namespace, arguments].concat())
}

fn text(pod: &str) -> String {
    from_files(&[pod]).unwrap().text
}

#[test]
fn a_pod_that_fits_is_told_with_every_score() {
    let answer = from_files(&["fits"]).unwrap();
    assert_eq!(answer.code, 0);
    let lines: Vec<&str> = answer.text.lines().collect();
    assert!(lines[0].starts_with("shop/fits would be placed on n2 (score "), "{}", answer.text);
    assert!(lines[3].starts_with("n2 ") && lines[3].contains(", NodeResourcesFit "), "{}", answer.text);
    assert_eq!(
        lines.last().unwrap().split_whitespace().collect::<Vec<_>>().join(" "),
        "1 NodeResourcesFit InsufficientResources Insufficient cpu n1"
    );
}

#[test]
fn a_pod_that_waits_is_told_why() {
    let answer = from_files(&["large"]).unwrap();
    assert_eq!(answer.code, 1);
    assert!(
        answer.text.starts_with("shop/large waits: 0/2 nodes are available: 2 Insufficient cpu."),
        "{}",
        answer.text
    );
    assert!(text("gated").starts_with("shop/gated is not tried: SchedulingGates: "), "{}", text("gated"));
    assert!(text("gated").contains("[SchedulingGated]\nwould be placed on "), "{}", text("gated"));
    let foreign = "shop/foreign is left to another scheduler: its schedulerName is \"other\" [SchedulerMismatch]\n\
                   the configuration has profiles for koord-scheduler, default-scheduler\n\
                   Create the pod anew with the `schedulerName` of a profile";
    assert!(text("foreign").starts_with(foreign), "{}", text("foreign"));
    let answer: Value = serde_json::from_str(&from_files(&["foreign", "-o", "json"]).unwrap().text).unwrap();
    let operands = json!({"schedulerName": "other", "profiles": "koord-scheduler default-scheduler"});
    assert_eq!(
        (&answer["mismatch"]["code"], &answer["mismatch"]["operands"]),
        (&json!("SchedulerMismatch"), &operands)
    );
    assert!(answer["mismatch"]["remedy"].as_str().unwrap().contains("schedulerName"), "{answer}");
    assert!(text("runs").starts_with("shop/runs is on n1\n"));
}

#[test]
fn what_is_remarked_of_a_pod_is_shown_though_it_is_placed() {
    let mut labelled = pod("labelled", "1", &json!({}));
    labelled["metadata"]["labels"] = json!({"quota.scheduling.koordinator.sh/name": "typo"});
    let objects = [node("n1", "2"), labelled];
    let remark =
        "ElasticQuota remarks: there is no quota typo; the pod counts in koordinator-default-quota [QuotaNotFound]\n";
    let answer = from(&objects, &["labelled"]).unwrap();
    assert!(answer.code == 0 && answer.text.contains(remark), "{}", answer.text);
    let answer: Value = serde_json::from_str(&from(&objects, &["labelled", "-o", "json"]).unwrap().text).unwrap();
    assert_eq!(
        answer["remarks"][0]["details"][0]["operands"],
        json!({"quota": "typo", "counted_in": "koordinator-default-quota"})
    );
}

#[test]
fn a_pod_with_resource_claims_is_told_what_they_lack() {
    let claims = |claim: Value| {
        let mut named = json!({"name": "gpu"});
        named.as_object_mut().unwrap().extend(claim.as_object().unwrap().clone());
        json!({"resourceClaims": [named]})
    };
    let of_group = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop", "uid": name},
            "spec": spec,
        })
    };
    let request = json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}});
    let objects = vec![
        node("n1", "2"),
        pod("early", "1", &claims(json!({"resourceClaimTemplateName": "t"}))),
        pod("without", "1", &claims(json!({"resourceClaimName": "c"}))),
        pod("classless", "1", &claims(json!({"resourceClaimName": "d"}))),
        of_group("ResourceClaim", "c", request.clone()),
        of_group(
            "ResourceClaim",
            "d",
            json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "tpu"}}]}}),
        ),
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu", "uid": "gpu"}, "spec": {},
        }),
    ];
    for (pod, words) in [
        ("early", "shop/early is not tried: DynamicResources: pod \"shop/early\": ResourceClaim not created yet"),
        ("without", "shop/without waits: 0/1 nodes are available: 1 cannot allocate all claims."),
        ("classless", "shop/classless waits: 0/1 nodes are available: request r: device class tpu does not exist."),
    ] {
        let answer = from(&objects, &[pod]).unwrap();
        assert!(answer.code == 1 && answer.text.starts_with(words), "{}", answer.text);
    }
    let early = from(&objects, &["early"]).unwrap().text;
    let before_the_nodes = early.split("\n\n").next().unwrap();
    let remedy = format!("\nResourceClaimNotReady: {}", ReasonCode::ResourceClaimNotReady.remedy());
    assert!(before_the_nodes.contains(&remedy), "{early}");
}

#[test]
fn one_node_is_told_with_every_plugin() {
    let answer = from_files(&["fits", "--node", "n1"]).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words(&answer.text)
            .ends_with("n1 does not take it PLUGIN EVICTIONS CODE WHY DETAILS NodeResourcesFit do not help InsufficientResources Insufficient cpu resource=cpu"),
        "{}",
        answer.text
    );
    let taken = from_files(&["fits", "--node", "n2"]).unwrap().text;
    assert!(taken.contains("n2 takes it") && taken.contains("in all"), "{taken}");
    let answer: Value =
        serde_json::from_str(&from_files(&["fits", "--node", "n1", "-o", "json"]).unwrap().text).unwrap();
    assert_eq!(answer["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(answer["nodes"][0]["refusals"][0]["reasons"], json!(["Insufficient cpu"]));
    let detail = &answer["nodes"][0]["refusals"][0]["details"][0];
    assert_eq!((&detail["code"], &detail["operands"]["resource"]), (&json!("InsufficientResources"), &json!("cpu")));
    assert_eq!((&answer["placed"], &answer["outcome"]["bind"]["node"]), (&json!(true), &json!("n2")));
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let error = |arguments: &[&str]| from_files(arguments).unwrap_err();
    assert_eq!(error(&["fit"]), "there is no pod fit in namespace shop; did you mean \"fits\"?");
    assert_eq!(
        error(&["runs", "-n", "default"]),
        "there is no pod runs in namespace default; there is one in namespace shop: name it with -n"
    );
    assert_eq!(error(&["fits", "--node", "n3"]), "there is no node n3; n1, n2");
    assert!(error(&["fits", "--config", "/nowhere.yaml"]).starts_with("--config /nowhere.yaml cannot be read"));
    assert!(error(&["fits", "--feature-gates", "Foo=true"]).contains("Foo"));
}

#[test]
fn a_cluster_says_the_same_as_its_objects_in_a_file() {
    let cluster = Cluster::installed("koordctl-why");
    let namespace = json!({"metadata": {"name": "shop"}});
    cluster.create("/api/v1/namespaces", &namespace);
    for object in objects() {
        let path = if object["kind"] == "Pod" { "/api/v1/namespaces/shop/pods" } else { "/api/v1/nodes" };
        cluster.create(path, &object);
        if object["kind"] == "Node" {
            // A new node is tainted until its kubelet reports.
            let name = object["metadata"]["name"].as_str().unwrap();
            cluster.patch(&format!("{path}/{name}"), &json!({"spec": {"taints": null}}));
        }
    }
    let kubeconfig = cluster.kubeconfig.display().to_string();
    let of_cluster = asked(&["large", "-n", "shop", "--kubeconfig", &kubeconfig]).unwrap();
    assert_eq!(of_cluster, from_files(&["large"]).unwrap());
}

#[test]
fn a_pod_is_named_with_its_namespace_too() {
    let answer = from_files(&["shop/fits"]).unwrap();
    assert_eq!((answer.code, answer.text), (0, text("fits")));
    assert_eq!(from_files(&["pod", "shop/fits"]).unwrap().text, text("fits"));
    let error = from_files(&["other/fits"]).unwrap_err();
    assert!(error.contains("other/fits and -n shop name two namespaces"), "{error}");
}

#[test]
fn a_part_of_a_gpu_that_no_node_offers_is_explained_by_the_gate() {
    let gpu = |shared: bool| {
        let mut node = node("g1", "8");
        for field in ["capacity", "allocatable"] {
            let amounts = node["status"][field].as_object_mut().unwrap();
            amounts.insert("koordinator.sh/gpu-core".to_owned(), "100".into());
            amounts.insert("koordinator.sh/gpu-memory-ratio".to_owned(), "100".into());
            if shared {
                amounts.insert("koordinator.sh/gpu.shared".to_owned(), "100".into());
            }
        }
        node
    };
    let mut half = pod("half", "1", &json!({}));
    // As koord-manager's webhook leaves it.
    let amounts = json!({
        "cpu": "1", "koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50", "koordinator.sh/gpu.shared": "1",
    });
    half["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    let gate = "EnableSyncGPUSharedResource";
    let without = from(&[gpu(false), half.clone()], &["half"]).unwrap();
    assert!(without.code == 1 && without.text.contains(gate), "{}", without.text);
    let with = from(&[gpu(true), half], &["half"]).unwrap();
    assert!(!with.text.contains(gate), "{}", with.text);
}
