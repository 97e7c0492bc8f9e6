//! The Reservation that a job makes for the successor of its pod (`spec/descheduler.md` 5.8).
//!
//! It is made in two writes. First the whole Reservation is stored in the job, as `spec.reservationOptions.template`; then it is created from there. So a
//! process that starts between the two creates the same one.

use jiff::Timestamp;
use koord_core::uid::Uid;
use koord_resource::{Duration, controller::ResourceKind};
use koord_types::{pod_migration_job::PodMigrationJob, reservation::Reservation};
use serde_json::{Map, Value, json};

/// A Reservation with a lower number is preferred; jobs number theirs by their time in milliseconds since 1970.
pub const RESERVATION_ORDER: &str = "scheduling.koordinator.sh/reservation-order";
/// What made a Reservation.
pub const CREATED_BY_LABEL: &str = "app.kubernetes.io/created-by";
/// The value of [`CREATED_BY_LABEL`] of Reservations that jobs make.
pub const DESCHEDULER: &str = "koord-descheduler";

/// What the API server sets in the metadata of a pod and what says nothing of its successor.
const OF_THE_SERVER: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
];

/// What of a job its Reservation depends on.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The uid of the job, which names the Reservation unless the template does.
    pub job_uid: &'a Uid,
    /// How long the job may take; `None` for no limit.
    pub ttl: Option<Duration>,
    /// Whether volumes with claims are left out (`DisablePVCReservation`).
    pub drops_claims: bool,
}

/// No pod could use the Reservation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Failed to create Reservation: Pod \"{pod}\" has no controller that would make its successor; set spec.mode to EvictDirectly, or name the owners in spec.reservationOptions.template.spec.owners"
)]
pub struct NoOwner {
    pod: String,
}

/// Whether a template is a whole Reservation, as [`complete`] makes it.
pub fn is_complete(template: &Value) -> bool {
    let (metadata, spec) = (&template["metadata"], &template["spec"]);
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    text(&metadata["name"])
        && metadata["labels"][CREATED_BY_LABEL] == DESCHEDULER
        && text(&metadata["labels"][RESERVATION_ORDER])
        && spec["owners"].as_array().is_some_and(|owners| !owners.is_empty())
        && spec["template"].is_object()
}

/// The name of a Reservation that a template describes; the job's uid where it has none.
pub fn name(template: Option<&Value>, job_uid: &Uid) -> String {
    let name = template.and_then(|template| template["metadata"]["name"].as_str()).filter(|name| !name.is_empty());
    name.map_or_else(|| job_uid.to_string(), str::to_owned)
}

/// The whole Reservation for the successor of a pod. What the template of the job says already stays.
///
/// # Errors
///
/// The pod has no controller, and the template names no owners.
pub fn complete(template: Option<&Value>, pod: &Value, purpose: Purpose<'_>, now: Timestamp) -> Result<Value, NoOwner> {
    let mut metadata = object(template.map(|template| &template["metadata"]));
    let mut spec = object(template.map(|template| &template["spec"]));
    metadata.insert("name".to_owned(), name(template, purpose.job_uid).into());
    let mut labels = object(metadata.get("labels"));
    labels.insert(CREATED_BY_LABEL.to_owned(), DESCHEDULER.into());
    labels.insert(RESERVATION_ORDER.to_owned(), now.as_millisecond().to_string().into());
    metadata.insert("labels".to_owned(), labels.into());

    if is_empty(spec.get("owners")) {
        let owner = owner(pod).ok_or_else(|| NoOwner { pod: key(pod) })?;
        spec.insert("owners".to_owned(), json!([owner]));
    }
    if !spec.get("template").is_some_and(Value::is_object) {
        spec.insert("template".to_owned(), template_of(pod));
    }
    if let Some(template) = spec.get_mut("template") {
        fit(template, pod["spec"]["nodeName"].as_str().unwrap_or_default(), purpose.drops_claims);
    }
    // QUIRK: also where the template says `false`.
    spec.insert("allocateOnce".to_owned(), true.into());
    let ttl = spec.get("ttl").and_then(Value::as_str).and_then(|ttl| ttl.parse::<Duration>().ok());
    let expires = spec.get("expires").is_some_and(|expires| !expires.is_null());
    if let Some(ttl) = ttl.or(purpose.ttl.filter(|_| !expires)) {
        spec.insert("ttl".to_owned(), ttl.to_string().into());
    }
    Ok(json!({"metadata": metadata, "spec": spec}))
}

/// The object that a whole template describes. It belongs to its job and goes with it.
pub fn object_of(template: &Value, job: &str, job_uid: &Uid) -> Value {
    let job_kind = ResourceKind::typed::<PodMigrationJob>();
    let kind = ResourceKind::typed::<Reservation>();
    let owner = json!({
        "apiVersion": job_kind.api_version(), "kind": job_kind.kind, "name": job, "uid": job_uid, "controller": true,
    });
    let mut metadata = object(Some(&template["metadata"]));
    metadata.insert("ownerReferences".to_owned(), json!([owner]));
    json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": template["spec"]})
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn is_empty(list: Option<&Value>) -> bool {
    list.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

fn key(pod: &Value) -> String {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// Who may use the Reservation: a pod that waits for a node itself, and else the pods of its controller.
fn owner(pod: &Value) -> Option<Value> {
    let metadata = &pod["metadata"];
    if waits_for_node(pod) {
        return Some(json!({"object": {
            "kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"],
        }}));
    }
    let owners = metadata["ownerReferences"].as_array()?;
    let mut controller = owners.iter().find(|owner| owner["controller"] == true)?.clone();
    controller["namespace"] = metadata["namespace"].clone();
    Some(json!({ "controller": controller }))
}

fn waits_for_node(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
    phase == "Pending"
        && conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
}

fn template_of(pod: &Value) -> Value {
    let mut metadata = object(Some(&pod["metadata"]));
    metadata.retain(|field, _| !OF_THE_SERVER.contains(&field.as_str()));
    json!({"metadata": metadata, "spec": pod["spec"]})
}

/// The template is for a pod on another node than its present one.
fn fit(template: &mut Value, node: &str, drops_claims: bool) {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.remove("nodeName");
    for containers in ["initContainers", "containers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                // As Go writes a container without resources.
                container.entry("resources").or_insert_with(|| json!({}));
            }
        }
    }
    if drops_claims && let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| volume.get("persistentVolumeClaim").is_none() && volume.get("ephemeral").is_none());
        if volumes.is_empty() {
            spec.remove("volumes");
        }
    }
    if !node.is_empty() {
        avoid(spec, node);
    }
}

/// Adds to each term of the required node affinity that a node is not this one.
fn avoid(spec: &mut Map<String, Value>, node: &str) {
    let mut at = spec.entry("affinity").or_insert_with(|| json!({}));
    for field in ["nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"] {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[field];
    }
    if is_empty(at.get("nodeSelectorTerms")) {
        *at = json!({"nodeSelectorTerms": [{}]});
    }
    let terms = at["nodeSelectorTerms"].as_array_mut().into_iter().flatten();
    for term in terms.filter_map(Value::as_object_mut) {
        let other = json!({"key": "metadata.name", "operator": "NotIn", "values": [node]});
        match term.get_mut("matchFields").and_then(Value::as_array_mut) {
            Some(fields) => fields.push(other),
            None => drop(term.insert("matchFields".to_owned(), json!([other]))),
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_descheduler_testing::{pod, with};

    use super::*;

    fn made(template: Option<&Value>, pod: &Value, drops_claims: bool) -> Value {
        let (job_uid, ttl) = (Uid::from("job"), Some(Duration::from_secs(300)));
        let purpose = Purpose { job_uid: &job_uid, ttl, drops_claims };
        complete(template, pod, purpose, Timestamp::from_millisecond(1_767_225_600_123).unwrap()).unwrap()
    }

    fn terms(reservation: &Value) -> &Value {
        let affinity = &reservation["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
        &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    }

    #[test]
    fn the_successor_of_a_pod_is_its_controllers_and_goes_to_another_node() {
        let pod = with(&pod("a", "n1"), &json!({"metadata": {"resourceVersion": "7", "labels": {"app": "x"}}}));
        let reservation = made(None, &pod, false);
        assert_eq!(
            reservation["metadata"],
            json!({"name": "job", "labels": {CREATED_BY_LABEL: DESCHEDULER, RESERVATION_ORDER: "1767225600123"}})
        );
        let spec = &reservation["spec"];
        assert_eq!(
            spec["owners"],
            json!([{"controller": {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": true, "namespace": "default",
            }}])
        );
        assert_eq!((&spec["allocateOnce"], &spec["ttl"]), (&json!(true), &json!("5m0s")));
        let metadata = &spec["template"]["metadata"];
        assert_eq!((&metadata["labels"], metadata.get("resourceVersion")), (&json!({"app": "x"}), None));
        assert_eq!(spec["template"]["spec"].get("nodeName"), None);
        assert_eq!(
            terms(&reservation),
            &json!([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}])
        );
        assert!(is_complete(&reservation));
    }

    #[test]
    fn each_term_that_the_pod_requires_gets_the_own_node_as_one_to_avoid() {
        let exists = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [exists("a"), exists("b")]}});
        let pod = with(&pod("a", "n1"), &json!({"spec": {"affinity": {"nodeAffinity": required}}}));
        let reservation = made(None, &pod, false);
        let avoided = json!([{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]);
        for (at, key) in ["a", "b"].into_iter().enumerate() {
            assert_eq!(terms(&reservation)[at], with(&exists(key), &json!({"matchFields": avoided})));
        }
    }

    #[test]
    fn a_pod_that_waits_for_a_node_is_the_only_owner() {
        let conditions = json!([{"type": "PodScheduled", "status": "False"}]);
        let pod = with(
            &pod("a", "n1"),
            &json!({"spec": {"nodeName": null}, "status": {"phase": "Pending", "conditions": conditions}}),
        );
        let reservation = made(None, &pod, false);
        let own = json!([{"object": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "a"}}]);
        assert_eq!((&reservation["spec"]["owners"], terms(&reservation)), (&own, &Value::Null));
    }

    #[test]
    fn what_the_template_says_stays_but_for_the_node_and_allocate_once() {
        let template = json!({
            "metadata": {"name": "mine", "labels": {"l": "1"}},
            "spec": {
                "allocateOnce": false,
                "expires": "2099-01-01T00:00:00Z",
                "owners": [{"labelSelector": {"matchLabels": {"app": "x"}}}],
                "template": {"metadata": {"labels": {"own": "1"}}, "spec": {"nodeName": "n2", "containers": [{"name": "z"}]}},
            },
        });
        let reservation = made(Some(&template), &pod("a", "n1"), false);
        assert_eq!(
            (&reservation["metadata"]["name"], &reservation["metadata"]["labels"]["l"]),
            (&json!("mine"), &json!("1"))
        );
        let spec = &reservation["spec"];
        assert_eq!(spec["owners"], template["spec"]["owners"]);
        assert_eq!((&spec["allocateOnce"], spec.get("ttl")), (&json!(true), None));
        assert_eq!(spec["template"]["metadata"], json!({"labels": {"own": "1"}}));
        assert_eq!(spec["template"]["spec"]["containers"], json!([{"name": "z", "resources": {}}]));
        assert_eq!(spec["template"]["spec"].get("nodeName"), None);
        let short = made(Some(&json!({"spec": {"ttl": "20m"}})), &pod("a", "n1"), false);
        assert_eq!(short["spec"]["ttl"], "20m0s");
    }

    #[test]
    fn volumes_with_claims_stay_unless_the_gate_is_on() {
        let volumes = json!([
            {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "e", "ephemeral": {}},
            {"name": "c", "configMap": {"name": "x"}},
        ]);
        let pod = with(&pod("a", "n1"), &json!({"spec": {"volumes": volumes}}));
        let names = |drops_claims| -> Vec<String> {
            let reservation = made(None, &pod, drops_claims);
            let volumes = reservation["spec"]["template"]["spec"]["volumes"].as_array().unwrap().iter();
            volumes.map(|volume| volume["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!((names(false), names(true)), (vec!["v".into(), "e".into(), "c".into()], vec!["c".to_owned()]));
    }

    #[test]
    fn a_running_pod_without_controller_has_no_successor() {
        let job_uid = Uid::from("job");
        let purpose = Purpose { job_uid: &job_uid, ttl: None, drops_claims: false };
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs"}]);
        for owners in [json!(null), json!([]), owner] {
            let pod = with(&pod("a", "n1"), &json!({"metadata": {"ownerReferences": owners}}));
            let error = complete(None, &pod, purpose, Timestamp::UNIX_EPOCH).unwrap_err();
            assert!(error.to_string().contains("Pod \"default/a\" has no controller"), "{error}");
            let own = json!({"spec": {"owners": [{"labelSelector": {}}]}});
            assert!(complete(Some(&own), &pod, purpose, Timestamp::UNIX_EPOCH).is_ok());
        }
    }

    #[test]
    fn a_template_of_a_user_is_not_taken_for_a_whole_reservation() {
        for template in [json!({}), json!({"metadata": {"name": "mine"}, "spec": {"owners": [{}], "template": {}}})] {
            assert!(!is_complete(&template), "{template}");
        }
        assert_eq!(name(None, &Uid::from("u")), "u");
        assert_eq!(name(Some(&json!({"metadata": {"name": "mine"}})), &Uid::from("u")), "mine");
    }
}
