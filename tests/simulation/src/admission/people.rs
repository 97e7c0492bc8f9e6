//! What people write through the webhooks, and what they may expect of it.

use std::time::Duration;

use envtest::{request::ApiRequest, shell::Server};
use http::Method;
use koord_runtime::{
    clock::{Moment, SharedClock},
    random::Random,
};
use serde_json::{Value, json};

use super::{CONFIGURATIONS, SECRET, SECRETS, route::Route};
use crate::Fault;

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";
const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
const PROFILES: &str = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles";
const QUOTA_PROFILES: &str = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles";
const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
/// What is in the collections of custom resources.
const CUSTOM: [(&str, &str, &str); 4] = [
    (QUOTAS, "scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota"),
    (PROFILES, "config.koordinator.sh/v1alpha1", "ClusterColocationProfile"),
    (QUOTA_PROFILES, "quota.koordinator.sh/v1alpha1", "ElasticQuotaProfile"),
    (RESERVATIONS, "scheduling.koordinator.sh/v1alpha1", "Reservation"),
];
const CONFIG_MAPS: &str = "/api/v1/namespaces/koordinator-system/configmaps";
const CONFIG: &str = "slo-controller-config";
const PARENT: &str = "quota.scheduling.koordinator.sh/parent";
/// A replica remembers for ten seconds what it has admitted, and a second may pass before the server stores it.
const REMEMBERED: Duration = Duration::from_secs(9);
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 4;

/// What a person did.
pub(super) struct Written {
    pub(super) what: String,
    pub(super) fault: Option<Fault>,
}

/// What writes through the webhooks, at random, and remembers what it may expect.
pub(super) struct People {
    server: Server,
    random: Random,
    route: Route,
    clock: SharedClock,
    /// Writes that were carried out.
    pub(super) writes: u64,
    /// Quotas that were written: at which revision, when, and who admitted it.
    quotas: Vec<(u64, Moment, u64)>,
    /// How often several quotas were there and kept all promises.
    pub(super) kept: u64,
    /// Whether somebody admitted a quota who could not know all others.
    unjudged: bool,
}

impl People {
    pub(super) fn new(server: Server, random: Random, route: Route, clock: SharedClock) -> Self {
        Self { server, random, route, clock, writes: 0, quotas: Vec::new(), kept: 0, unjudged: false }
    }

    /// One thing.
    pub(super) async fn act(&mut self) -> Result<Written, String> {
        let number = self.random.below(NAMES);
        let amount = 1 + self.random.below(8);
        let (what, code, fault) = match self.random.below(20) {
            0..=4 => ("creates a pod", self.make(PODS, &pod(number, amount)).await?, None),
            5 => ("deletes a pod", self.delete(PODS, &format!("p{number}-{amount}")).await?, None),
            6 | 7 => ("writes a profile", self.put(PROFILES, &profile(number, amount)).await?, None),
            8 => ("deletes a profile", self.delete(PROFILES, &format!("c{number}")).await?, None),
            9 | 10 => ("writes a quota", self.put_quota(&quota(number, amount)).await?, None),
            11 => {
                // As in one `kubectl apply`, and at the same time.
                let (parent, child) = (quota(0, 8), quota(number, 1));
                let (server, other) = (self.server.clone(), self.server.clone());
                let (first, second) = futures::join!(
                    send(&server, &Method::POST, QUOTAS, &parent),
                    send(&other, &Method::POST, QUOTAS, &child)
                );
                self.admitted(&parent, &first);
                self.admitted(&child, &second);
                self.promised().await?;
                let code = self.counted(first.0)?.max(self.counted(second.0)?);
                ("writes parent and child", code, None)
            }
            12 => ("deletes a quota", self.delete(QUOTAS, &format!("q{number}")).await?, None),
            13 => ("writes a quota profile", self.put(QUOTA_PROFILES, &quota_profile(number)).await?, None),
            14 => ("makes a node", self.make(NODES, &node(number, amount)).await?, None),
            15 => {
                let body = json!({"status": node(number, amount)["status"]});
                ("a kubelet reports", self.patch(&format!("{NODES}/n{number}/status"), &body).await?, None)
            }
            16 => {
                let code = self.put(CONFIG_MAPS, &configuration(amount)).await?;
                ("configures", code, (amount > 5).then_some(Fault::Malformed))
            }
            17 => ("reserves", self.make(RESERVATIONS, &reservation(number, amount)).await?, None),
            18 => {
                let code = if amount > 4 {
                    self.delete(SECRETS, SECRET).await?
                } else {
                    let body = json!({"data": {"cert.pem": "bm9uc2Vuc2U=", "ca-key.pem": null}});
                    self.patch(&format!("{SECRETS}/{SECRET}"), &body).await?
                };
                ("tampers with the certificates", code, (code < 300).then_some(Fault::Uncertified))
            }
            _ => {
                let (_, path, name) = CONFIGURATIONS[usize::try_from(amount % 2).unwrap_or_default()];
                let body = match amount / 2 {
                    0 | 1 => json!({"webhooks": []}),
                    _ => self.without_authorities(&format!("{path}/{name}")).await,
                };
                let code = self.patch(&format!("{path}/{name}"), &body).await?;
                ("tampers with the webhooks", code, (code < 300).then_some(Fault::Unconfigured))
            }
        };
        Ok(Written { what: format!("{what} {number} ({amount}) -> {code}"), fault })
    }

    /// Configurations whose authorities an upgrade has reset.
    async fn without_authorities(&self, path: &str) -> Value {
        let (_, object) = send(&self.server, &Method::GET, path, &Value::Null).await;
        let mut webhooks = object["webhooks"].clone();
        for webhook in webhooks.as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["caBundle"] = json!("Cg==");
        }
        json!({"webhooks": webhooks})
    }

    /// Nobody writes any more.
    pub(super) async fn conclude(&mut self) -> Result<(), String> {
        for collection in [QUOTA_PROFILES, PROFILES] {
            for number in 0..NAMES {
                let prefix = if collection == PROFILES { "c" } else { "t" };
                self.delete(collection, &format!("{prefix}{number}")).await?;
            }
        }
        Ok(())
    }

    /// Makes or changes a quota.
    async fn put_quota(&mut self, quota: &Value) -> Result<u16, String> {
        let name = quota["metadata"]["name"].as_str().unwrap_or_default();
        let mut answer = send(&self.server, &Method::POST, QUOTAS, quota).await;
        if answer.0 == 409 {
            answer = send(&self.server, &Method::PATCH, &format!("{QUOTAS}/{name}"), quota).await;
        }
        self.admitted(quota, &answer);
        self.promised().await?;
        self.counted(answer.0)
    }

    /// Remembers a quota that was written, and whether whoever admitted it could know all others: somebody was asked, and
    /// what its cache had not seen yet was admitted by itself, so short a time ago that it remembers.
    fn admitted(&mut self, quota: &Value, (code, object): &(u16, Value)) {
        let judge = self.route.judge(quota["metadata"]["name"].as_str().unwrap_or_default());
        let revision = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let (200..300, Some(revision)) = (code, revision) else { return };
        let now = self.clock.moment();
        let Some(judge) = judge else {
            self.unjudged = true;
            return;
        };
        let is_known = |(at, when, by): &(u64, Moment, u64)| {
            *at <= judge.knows || (*by == judge.replica && now.since(*when) < REMEMBERED)
        };
        self.unjudged |= !self.quotas.iter().all(is_known);
        self.quotas.push((revision, now, judge.replica));
    }

    /// What children are promised, their parent was promised, as long as everybody who admitted it could know.
    async fn promised(&mut self) -> Result<(), String> {
        if self.unjudged {
            return Ok(());
        }
        let (_, list) = send(&self.server, &Method::GET, QUOTAS, &Value::Null).await;
        let quotas: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
        let cpu = |quota: &Value| quota["spec"]["min"]["cpu"].as_str().and_then(|text| text.parse::<u64>().ok());
        for parent in &quotas {
            let name = &parent["metadata"]["name"];
            let children = quotas.iter().filter(|quota| quota["metadata"]["labels"][PARENT] == *name);
            let sum: u64 = children.filter_map(|quota| cpu(quota)).sum();
            if cpu(parent).is_some_and(|own| sum > own) {
                return Err(format!("quota {name} was promised {:?} and promises {sum}", cpu(parent)));
            }
        }
        self.kept += u64::from(quotas.len() > 1);
        Ok(())
    }

    /// Everything works: a profile changes pods, quotas keep their promises, nonsense is refused.
    pub(super) async fn check(&mut self) -> Result<(), String> {
        self.promised().await?;
        self.expect(
            201,
            PROFILES,
            &json!({"metadata": {"name": "last"}, "spec": {
                "selector": {"matchLabels": {"last": "yes"}}, "labels": {"seen": "yes"}, "qosClass": "LS",
            }}),
        )
        .await?;
        tokio::time::sleep(Duration::from_mins(1)).await;
        let mut last = pod(0, 1);
        last["metadata"] = json!({"name": "last", "labels": {"last": "yes"}});
        let made = self.expect(201, PODS, &last).await?;
        if made["metadata"]["labels"]["seen"] != "yes" || made["metadata"]["labels"]["koordinator.sh/qosClass"] != "LS"
        {
            return Err(format!("the pod does not follow its profile: {made}"));
        }
        let parent = json!({"metadata": {"name": "last", "labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}},
            "spec": {"min": {"cpu": "10"}, "max": {"cpu": "20"}}});
        self.expect(201, QUOTAS, &parent).await?;
        let child = |name: &str, cpu: &str| json!({"metadata": {"name": name, "labels": {PARENT: "last"}}, "spec": {"min": {"cpu": cpu}, "max": {"cpu": "20"}}});
        self.expect(201, QUOTAS, &child("last-a", "6")).await?;
        let (code, refused) = send(&self.server, &Method::POST, QUOTAS, &child("last-b", "5")).await;
        if !(400..500).contains(&code) {
            return Err(format!("a quota that promises too much is answered with {code} {refused}"));
        }
        let mut nonsense = configuration(8);
        nonsense["metadata"]["namespace"] = json!("koordinator-system");
        self.delete(CONFIG_MAPS, CONFIG).await?;
        let (code, answer) = send(&self.server, &Method::POST, CONFIG_MAPS, &nonsense).await;
        if !(400..500).contains(&code) {
            return Err(format!("nonsense in {CONFIG} is answered with {code} {answer}"));
        }
        self.expect(201, CONFIG_MAPS, &configuration(1)).await.map(drop)
    }

    async fn expect(&mut self, expected: u16, path: &str, body: &Value) -> Result<Value, String> {
        match send(&self.server, &Method::POST, path, body).await {
            (code, object) if code == expected => {
                self.writes += 1;
                Ok(object)
            }
            (code, object) => Err(format!("{path} {body} is answered with {code} {object}")),
        }
    }

    async fn make(&mut self, path: &str, body: &Value) -> Result<u16, String> {
        let (code, _) = send(&self.server, &Method::POST, path, body).await;
        self.counted(code)
    }

    /// Makes an object, or changes the one of this name.
    async fn put(&mut self, path: &str, body: &Value) -> Result<u16, String> {
        match self.make(path, body).await? {
            409 => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                self.patch(&format!("{path}/{name}"), body).await
            }
            code => Ok(code),
        }
    }

    async fn patch(&mut self, path: &str, body: &Value) -> Result<u16, String> {
        let (code, _) = send(&self.server, &Method::PATCH, path, body).await;
        self.counted(code)
    }

    async fn delete(&mut self, path: &str, name: &str) -> Result<u16, String> {
        let (code, _) = send(&self.server, &Method::DELETE, &format!("{path}/{name}"), &Value::Null).await;
        self.counted(code)
    }

    /// A person is answered whatever happens; an answer that is none is a mistake of the server.
    fn counted(&mut self, code: u16) -> Result<u16, String> {
        self.writes += u64::from(code < 300);
        if (200..=599).contains(&code) { Ok(code) } else { Err(format!("an answer with the code {code}")) }
    }
}

async fn send(server: &Server, method: &Method, path: &str, body: &Value) -> (u16, Value) {
    let mut body = body.clone();
    for (collection, api_version, kind) in CUSTOM {
        if path == collection && *method == Method::POST {
            body["apiVersion"] = json!(api_version);
            body["kind"] = json!(kind);
        }
    }
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let mut request = ApiRequest::new(method.clone(), path, text);
    let content_type = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    content_type.clone_into(&mut request.content_type);
    match server.answer(&request).await {
        Ok(answer) => (answer.code, serde_json::from_slice(&answer.body).unwrap_or_default()),
        Err(_) => (0, Value::Null),
    }
}

fn pod(number: u64, amount: u64) -> Value {
    let qos = ["LS", "LSR", "BE", "LSE", "nonsense"][usize::try_from(amount % 5).unwrap_or_default()];
    let requests = json!({"cpu": amount.to_string(), "memory": format!("{amount}Gi")});
    let mut labels = json!({"app": format!("a{number}"), "quota.scheduling.koordinator.sh/name": format!("q{number}")});
    if amount > 2 {
        labels["koordinator.sh/qosClass"] = json!(qos);
    }
    json!({
        "metadata": {"name": format!("p{number}-{amount}"), "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests, "limits": requests}}]},
    })
}

fn profile(number: u64, amount: u64) -> Value {
    let selector = json!({"matchLabels": {"app": format!("a{}", amount % NAMES)}});
    json!({"metadata": {"name": format!("c{number}")}, "spec": {
        "selector": selector, "labels": {format!("by-c{number}"): amount.to_string()},
        "annotations": {"by": format!("c{number}")}, "labelSuffixes": {"app": "-x"},
        "labelKeysMapping": {"app": "was"}, "probability": if amount > 6 { json!("50%") } else { Value::Null },
        "qosClass": if amount > 4 { "BE" } else { "LS" }, "schedulerName": "koord-scheduler",
        "patch": {"metadata": {"labels": {"patched": amount.to_string()}}},
    }})
}

fn quota(number: u64, amount: u64) -> Value {
    let mut labels = json!({"quota.scheduling.koordinator.sh/is-parent": if number < 2 { "true" } else { "false" }});
    if number > 0 {
        labels[PARENT] = json!(format!("q{}", (number - 1) / 2));
    }
    json!({
        "metadata": {"name": format!("q{number}"), "labels": labels},
        "spec": {"min": {"cpu": (amount * 2 / (number + 1)).to_string()}, "max": {"cpu": "40"}},
    })
}

fn quota_profile(number: u64) -> Value {
    json!({"metadata": {"name": format!("t{number}")}, "spec": {
        "quotaName": format!("tree-{number}"), "nodeSelector": {"matchLabels": {"pool": format!("p{}", number % 2)}},
    }})
}

fn node(number: u64, amount: u64) -> Value {
    let has = json!({"cpu": (amount * 8).to_string(), "memory": format!("{}Gi", amount * 32), "pods": "110"});
    json!({
        "metadata": {"name": format!("n{number}"), "labels": {"pool": format!("p{}", number % 2)},
            "annotations": {"node.koordinator.sh/resource-amplification-ratio": r#"{"cpu":1.5}"#}},
        "status": {"capacity": has, "allocatable": has},
    })
}

fn configuration(amount: u64) -> Value {
    let threshold = if amount > 5 { 200 } else { 40 + amount };
    let thresholds = json!({"clusterStrategy": {"enable": true, "cpuSuppressThresholdPercent": threshold}});
    let labels = json!({"koordinator.sh/configmap-type": CONFIG});
    json!({"metadata": {"name": CONFIG, "labels": labels}, "data": {
        "colocation-config": r#"{"enable":true}"#, "resource-threshold-config": thresholds.to_string(),
    }})
}

fn reservation(number: u64, amount: u64) -> Value {
    let mut template = pod(number, amount);
    template["metadata"] = json!({"labels": template["metadata"]["labels"]});
    json!({"metadata": {"name": format!("r{number}-{amount}")}, "spec": {
        "template": template, "owners": [{"labelSelector": {"matchLabels": {"app": "a"}}}], "ttl": "1h",
    }})
}
