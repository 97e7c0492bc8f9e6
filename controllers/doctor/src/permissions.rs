//! Whether koord-manager may do what its parts declare.

use std::collections::BTreeMap;

use koord_manager_assembly::{GATES, optional_controllers, rbac_rules};
use koord_program::{findings::Report, gates::Gates, obstacle::Obstacle};
use koord_resource::{controller::ControllerSpec, rbac::RbacRule};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{Options, cluster::Cluster};

/// Questions that are asked at once.
const AT_ONCE: usize = 16;

/// Events as koord-manager writes them, unless it may not; then those of the core group.
const EVENTS: &str = "events.events.k8s.io";

/// A replica that may not watch these reads its Lease every retry period.
const LEASES: &str = "leases.coordination.k8s.io";

/// How the server is asked.
#[derive(Clone)]
enum Asking {
    /// What another user may do.
    About(String),
    /// What we may do, when we are koord-manager ourselves.
    Ourselves,
}

pub(crate) async fn look(cluster: &Cluster, options: &Options<'_>, report: &mut Report) {
    let namespace = &cluster.installed.namespace;
    let account = options.service_account;
    let object = format!("ServiceAccount {namespace}/{account}");
    let install = "install roles and bindings of this version: kubectl apply -k config/rbac, or helm upgrade";
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}");
    let Some(found) = report.read(cluster.get(&path).await) else { return };
    if found.is_none() {
        return report.error(object, "it is not there: koord-manager cannot run as it", install);
    }
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let asking = match ask(
        cluster,
        &Asking::About(user.clone()),
        &json!({"nonResourceAttributes": {"path": "/", "verb": "get"}}),
    )
    .await
    {
        Ok(_) => Asking::About(user),
        // koord-manager itself may not ask about others, but about itself everybody may.
        Err(obstacle) if obstacle.forbidden && is_us(cluster, &user).await => Asking::Ourselves,
        Err(obstacle) => {
            report.read::<()>(Err(obstacle));
            return;
        }
    };
    let mut questions: Vec<(String, &'static str, Value)> = Vec::new();
    let gates = Gates::parse(GATES, options.feature_gates).unwrap_or_else(|_| Gates::new(GATES));
    let optional = optional_controllers().filter(|spec| spec.gate.is_some_and(|gate| gates.enabled(gate)));
    for rule in rbac_rules().into_iter().chain(optional.flat_map(ControllerSpec::rbac_rules)) {
        questions.extend(questions_of(&rule, namespace));
    }
    questions.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    questions.dedup();
    let mut missing: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for batch in questions.chunks(AT_ONCE) {
        let mut answers = JoinSet::new();
        for (what, verb, attributes) in batch.iter().cloned() {
            let (client, asking) = (cluster.client.clone(), asking.clone());
            answers.spawn(async move { (what, verb, ask_with(client, &asking, &attributes).await) });
        }
        while let Some(answer) = answers.join_next().await {
            let Ok((what, verb, answer)) = answer else { continue };
            match report.read(answer) {
                Some(true) => {}
                Some(false) => missing.entry(what).or_default().push(verb),
                None => return,
            }
        }
    }
    if let Some(verbs) = missing.get(EVENTS)
        && let Some(granted) = report.read(grants_core_events(cluster, &asking, verbs).await)
        && granted
    {
        missing.remove(EVENTS);
        let problem = format!("it may write events of the core group alone, not {EVENTS}: its events go there");
        report.note(&object, problem, install);
    }
    for (what, mut verbs) in missing {
        verbs.sort_unstable();
        let problem = format!("it may not {} {what}", verbs.join(", "));
        if what.starts_with(LEASES) && verbs == ["watch"] {
            let longer = "a replica that waits reads the Lease instead, and the hand-over takes up to 4.4 s longer";
            report.note(&object, format!("{problem}: {longer}"), install);
        } else {
            report.error(&object, problem, install);
        }
    }
}

/// Whether events of the core group may be written with these verbs.
async fn grants_core_events(cluster: &Cluster, asking: &Asking, verbs: &[&str]) -> Result<bool, Obstacle> {
    for verb in verbs {
        let attributes = json!({"resourceAttributes": {"group": "", "resource": "events", "verb": verb}});
        if !ask(cluster, asking, &attributes).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Each verb of a rule, with what it is about in words and as a review says it.
fn questions_of(rule: &RbacRule, installed: &str) -> Vec<(String, &'static str, Value)> {
    if !rule.urls.is_empty() {
        let about = |url: &&'static str, verb: &&'static str| {
            ((*url).to_owned(), *verb, json!({"nonResourceAttributes": {"path": url, "verb": verb}}))
        };
        return rule.urls.iter().flat_map(|url| rule.verbs.iter().map(move |verb| about(url, verb))).collect();
    }
    let namespace = match rule.namespace {
        None => "",
        Some(".") => installed,
        Some(named) => named,
    };
    let (resource, subresource) = rule.resource.split_once('/').unwrap_or((rule.resource, ""));
    let names: &[&str] = if rule.names.is_empty() { &[""] } else { rule.names };
    let mut questions = Vec::new();
    for name in names {
        let mut what =
            if rule.group.is_empty() { rule.resource.to_owned() } else { format!("{}.{}", rule.resource, rule.group) };
        if !name.is_empty() {
            what.extend([" ", name]);
        }
        if !namespace.is_empty() {
            what.extend([" in namespace ", namespace]);
        }
        for verb in rule.verbs {
            let attributes = json!({"resourceAttributes": {
                "group": rule.group, "resource": resource, "subresource": subresource, "namespace": namespace,
                "name": name, "verb": verb,
            }});
            questions.push((what.clone(), *verb, attributes));
        }
    }
    questions
}

async fn is_us(cluster: &Cluster, user: &str) -> bool {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    cluster.post(path, &review).await.is_ok_and(|answer| answer["status"]["userInfo"]["username"] == user)
}

async fn ask(cluster: &Cluster, asking: &Asking, attributes: &Value) -> Result<bool, Obstacle> {
    ask_with(cluster.client.clone(), asking, attributes).await
}

async fn ask_with(client: kube::Client, asking: &Asking, attributes: &Value) -> Result<bool, Obstacle> {
    let mut spec = attributes.clone();
    let (plural, kind) = match asking {
        Asking::About(user) => {
            let namespace = user.split(':').nth(2).unwrap_or_default();
            spec["user"] = user.as_str().into();
            spec["groups"] = json!([
                "system:serviceaccounts",
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated",
            ]);
            ("subjectaccessreviews", "SubjectAccessReview")
        }
        Asking::Ourselves => ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    };
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let answer = crate::cluster::post(&client, &format!("/apis/authorization.k8s.io/v1/{plural}"), &review).await?;
    Ok(answer["status"]["allowed"] == true)
}
