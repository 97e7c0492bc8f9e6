//! A pod that does not exist yet: it is asked about as if it had just been created.

use anyhow::{Result, bail};
use envtest::{
    environment::SeededEnvironment,
    kinds,
    request::ApiRequest,
    server::{ApiServer, Outcome},
    store::HistoryLimits,
};
use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use koord_resource::controller::ResourceKind;
use koord_runtime::{key::ObjectKey, uid::Uid};
use koord_scheduler_engine::Engine;
use koord_scheduler_what_if::Objects;
use serde_json::{Value, json};

use crate::{cli::WhyArgs, files};

/// Adds the pod of `--file` to the engine. Its uid.
pub(super) async fn add(engine: &mut Engine, objects: &mut Objects, args: &WhyArgs) -> Result<Uid> {
    let file: Vec<_> = args.file.iter().cloned().collect();
    let mut pod = match &mut files::objects(&file)?[..] {
        [pod] if pod["kind"] == "Pod" => pod.take(),
        [other] => bail!(
            "--file takes a Pod, not {}; write the pod that it makes into a file",
            other["kind"].as_str().unwrap_or("an object without a kind")
        ),
        all => bail!("--file takes one pod, not {} objects", all.len()),
    };
    if pod["metadata"]["namespace"].is_null() {
        pod["metadata"]["namespace"] = json!(args.namespace());
    }
    if pod["metadata"]["name"].is_null() {
        pod["metadata"]["name"] = json!(format!("{}new", pod["metadata"]["generateName"].as_str().unwrap_or_default()));
    }
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    let key = ObjectKey::new(&text("namespace"), &text("name"));
    let known = super::pods(engine).find(|known| known.key == key);
    if let Some(known) = known {
        bail!(
            "there is a pod {} already; ask about it with koordctl why {} -n {}",
            known.key,
            key.name(),
            key.namespace()
        );
    }
    check(&pod, &key)?;
    let uid = format!("new:{key}");
    pod["metadata"]["uid"] = json!(uid);
    prioritize(&mut pod, objects).await?;
    koord_scheduler_assembly::amend(engine, vec![pod.clone()], objects.transformers).await?;
    objects.add(pod);
    let uid = Uid::from(&*uid);
    if super::pods(engine).all(|pod| pod.uid != uid) {
        bail!("the pod of --file cannot be read; koordctl lint -f says what is wrong with it");
    }
    Ok(uid)
}

/// Asks an API server of its own whether it would take the pod. Its priority is another's matter.
fn check(pod: &Value, key: &ObjectKey) -> Result<()> {
    let mut server =
        ApiServer::empty(Box::new(SeededEnvironment::new(1, Timestamp::UNIX_EPOCH)), HistoryLimits::default());
    kinds::install(&mut server);
    let namespace = json!({"metadata": {"name": key.namespace()}});
    server.handle(&ApiRequest::new(Method::POST, "/api/v1/namespaces", namespace.to_string()));
    let mut pod = pod.clone();
    for field in ["priorityClassName", "priority", "preemptionPolicy"] {
        pod["spec"].as_object_mut().and_then(|spec| spec.remove(field));
    }
    let path = format!("/api/v1/namespaces/{}/pods?fieldValidation=Strict", key.namespace());
    let Outcome::Done(answer) = server.handle(&ApiRequest::new(Method::POST, &path, pod.to_string())) else {
        return Ok(());
    };
    if answer.code < 300 {
        return Ok(());
    }
    let status: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    bail!("an API server would not take the pod of --file: {}", status["message"].as_str().unwrap_or_default())
}

/// What admission makes of the name of a priority class.
pub(crate) async fn prioritize(pod: &mut Value, objects: &mut Objects) -> Result<()> {
    let Some(name) = pod["spec"]["priorityClassName"].as_str().filter(|_| pod["spec"]["priority"].is_null()) else {
        return Ok(());
    };
    let key = ObjectKey::cluster(name);
    let built_in = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
    let built_in = built_in.into_iter().find(|(known, _)| *known == name);
    let class = match built_in {
        Some((_, value)) => Some(json!({"value": value})),
        None => objects.get(ResourceKind::typed::<PriorityClass>(), &key).await?,
    };
    let Some(class) = class else {
        bail!("there is no PriorityClass {name}; create it, or write spec.priority into the pod")
    };
    pod["spec"]["priority"] = class["value"].clone();
    if pod["spec"]["preemptionPolicy"].is_null() {
        pod["spec"]["preemptionPolicy"] = class["preemptionPolicy"].clone();
    }
    Ok(())
}
