//! What was evicted: the history that the program keeps, with what became of its jobs.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use koord_descheduler_framework::{History, PastEviction};
use koord_descheduler_runtime::{HISTORY, history_of};
use koord_program::plan::Source;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    Answer,
    cli::{DescheduleHistoryArgs, OutputFormat},
    connect, files,
    screen::Screen,
    table,
};

/// The history of a cluster, or among objects of files; none has no evictions.
pub(super) async fn of_source(source: &Source, namespace: &str) -> Result<History> {
    config_map(source, namespace, HISTORY).await?.as_ref().map_or_else(|| Ok(History::default()), read)
}

fn read(config_map: &Value) -> Result<History> {
    history_of(config_map).map_err(|error| anyhow!("the ConfigMap {HISTORY} has no history; delete it: {error}"))
}

/// A ConfigMap of a cluster, or among objects of files.
pub(super) async fn config_map(source: &Source, namespace: &str, name: &str) -> Result<Option<Value>> {
    let is_wanted = |object: &&Value| {
        let metadata = &object["metadata"];
        object["kind"] == "ConfigMap" && metadata["name"] == name && metadata["namespace"] == namespace
    };
    match source {
        Source::Cluster(client) => get(client, &format!("/api/v1/namespaces/{namespace}/configmaps/{name}")).await,
        Source::Files(objects) => Ok(objects.iter().find(is_wanted).cloned()),
    }
}

/// An object, or a list; none where it does not exist.
pub(super) async fn get(client: &Client, uri: &str) -> Result<Option<Value>> {
    match client.request::<Value>(http::Request::get(uri).body(Vec::new())?).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn show(args: &DescheduleHistoryArgs, screen: Screen) -> Result<Answer> {
    let (history, jobs) = if args.filename.is_empty() {
        let client = connect::reach(&args.answer.cluster.flags()).await?.client;
        let history = of_source(&Source::Cluster(client.clone()), &args.system_namespace).await?;
        let jobs = get(&client, "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs").await?;
        let jobs = jobs.and_then(|list| list["items"].as_array().cloned()).unwrap_or_default();
        (history, jobs)
    } else {
        let objects = files::objects(&args.filename)?;
        let jobs = objects.iter().filter(|object| object["kind"] == "PodMigrationJob").cloned().collect();
        (of_source(&Source::Files(objects), &args.system_namespace).await?, jobs)
    };
    let jobs = results(&jobs);
    let is_wanted = |past: &&PastEviction| {
        let is_of = |name: &Option<String>, of: &str| name.as_ref().is_none_or(|name| name == of);
        is_of(&args.namespace, &past.namespace) && args.owner.as_ref().is_none_or(|owner| *owner == past.owner.name)
    };
    let evictions: Vec<&PastEviction> = history.evictions().rev().filter(is_wanted).collect();
    let text = match args.answer.output {
        OutputFormat::Table if evictions.is_empty() => "no evictions are known\n".to_owned(),
        OutputFormat::Table => {
            let header = ["TIME", "POD", "OWNER", "FROM", "TO", "STRATEGY", "ROUND", "RESULT", "WHY"];
            let rows = evictions.iter().map(|past| row(past, &jobs));
            let header = std::iter::once(header.map(str::to_owned).to_vec());
            table::lines(&header.chain(rows).collect::<Vec<_>>(), screen)
        }
        format => format.document(&json!(evictions))?,
    };
    Ok(Answer::success(text))
}

/// What became of jobs, by the namespace and name of the pod.
fn results(jobs: &[Value]) -> BTreeMap<(String, String), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let result = |job: &Value| {
        let pod = &job["spec"]["podRef"];
        let (phase, reason) = (text(&job["status"]["phase"]), text(&job["status"]["reason"]));
        let result = match (phase.as_str(), reason.as_str()) {
            ("Failed", reason) if !reason.is_empty() => format!("Failed: {reason}"),
            _ => phase,
        };
        ((text(&pod["namespace"]), text(&pod["name"])), result)
    };
    jobs.iter().map(result).collect()
}

fn row(past: &PastEviction, jobs: &BTreeMap<(String, String), String>) -> Vec<String> {
    let result = match past.by.as_str() {
        "PodMigrationJob" => jobs.get(&(past.namespace.clone(), past.pod.clone())).map_or("-", String::as_str),
        _ => "evicted",
    };
    let to = past.to.clone().or_else(|| past.expected.as_ref().map(|node| format!("({node})")));
    vec![
        past.at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        format!("{}/{}", past.namespace, past.pod),
        format!("{}/{}", past.owner.kind, past.owner.name),
        past.from.clone(),
        to.unwrap_or_else(|| "-".to_owned()),
        past.strategy.clone(),
        past.round.to_string(),
        result.to_owned(),
        past.text.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use koord_descheduler_runtime::HISTORY_KEY;

    use super::*;

    #[test]
    fn a_history_that_cannot_be_read_names_the_remedy() {
        let object = json!({"data": {HISTORY_KEY: "no"}});
        let error = format!("{:#}", read(&object).unwrap_err());
        assert!(error.contains("the ConfigMap koord-descheduler-history has no history; delete it"), "{error}");
        assert_eq!(read(&json!({})).unwrap(), History::default());
    }

    #[test]
    fn what_became_of_a_job_is_shown_with_its_reason() {
        let job = json!({
            "spec": {"podRef": {"namespace": "ns", "name": "a"}}, "status": {"phase": "Failed", "reason": "Timeout"},
        });
        assert_eq!(results(&[job])[&("ns".to_owned(), "a".to_owned())], "Failed: Timeout");
    }
}
