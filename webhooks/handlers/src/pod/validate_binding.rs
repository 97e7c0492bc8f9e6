//! `/validate-pod-binding`: only some users may bind pods to nodes.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::{
    admission::{Denial, Operation, Request, Verdict},
    controller::ResourceKind,
};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, MetadataOnly, Projection},
    store::Store,
};
use prometheus::IntCounterVec;
use serde_json::value::RawValue;

use crate::{Ctx, settings::BindingPolicy};

/// Why a binding is admitted or not; the name stands in the metric.
type Decision = &'static str;
const DENIED: Decision = "denied";

/// What decisions about bindings see: the pods, and the program's policy.
#[derive(Clone, Copy)]
pub struct BindingView<'c> {
    pub(crate) pods: &'c Store<PodMarks>,
    pub(crate) policy: &'c BindingPolicy,
    /// Whether the gate `BindingAdmissionWebhook` is on.
    pub(crate) enabled: bool,
    /// Decisions, counted by their reasons.
    pub(crate) decisions: Option<&'c IntCounterVec>,
}

/// Served with the other checks of pods; admits everything while its own gate is off.
#[koord_resource::admission(
    path = "/validate-pod-binding",
    gate = "PodValidatingWebhook",
    name = "vpodbinding.koordinator.sh",
    within = Ctx::bindings,
    on = [Create],
    object_type = "pod", groups = [""], versions = ["v1"], resources = ["pods/binding"],
    rbac(group = "", resource = "pods", verbs = [list, watch]),
)]
pub fn validate_pod_binding(request: &Request<'_>, view: BindingView<'_>) -> Verdict {
    let policy = view.policy;
    let of_bindings = request.resource.resource == "pods" && request.sub_resource == "binding";
    let concerned = of_bindings && request.operation == Operation::Create;
    if !view.enabled || policy.users.is_empty() || !concerned {
        return Verdict::allow();
    }
    let decided = match by_request(request, policy) {
        Ok(ByRequest::Decided(decision)) => Some(decision),
        Ok(ByRequest::Unrestricted) => return Verdict::allow(),
        Ok(ByRequest::Open) => by_pod(request, view),
        Err(denial) => return Verdict::deny(denial),
    };
    let Some(decision) = decided else {
        // The pod is surely on its way to the cache; without it nobody can say more than that it may be bound.
        return Verdict { provisional: true, ..Verdict::allow() };
    };
    if let Some(decisions) = view.decisions {
        decisions.with_label_values(&[decision]).inc();
    }
    if decision == DENIED {
        return Verdict::deny(Denial::forbidden("binding denied: username is not in the allowed list"));
    }
    Verdict::allow()
}

/// What user and namespace decide.
enum ByRequest {
    /// This.
    Decided(Decision),
    /// Nothing, because the policy holds in no namespace.
    Unrestricted,
    /// Nothing: the pod decides.
    Open,
}

fn by_request(request: &Request<'_>, policy: &BindingPolicy) -> Result<ByRequest, Denial> {
    let user = request.user()?;
    if policy.users.iter().any(|part| user.username.contains(part.as_str())) {
        return Ok(ByRequest::Decided("allowed_username"));
    }
    let among = |namespaces: &[String]| namespaces.iter().any(|namespace| *namespace == request.namespace);
    if among(&policy.excluded_namespaces) {
        return Ok(ByRequest::Decided("excluded_ns"));
    }
    Ok(match &policy.namespaces[..] {
        _ if policy.everywhere => ByRequest::Open,
        [] => ByRequest::Unrestricted,
        namespaces if among(namespaces) => ByRequest::Open,
        _ => ByRequest::Decided("out_of_scope"),
    })
}

/// What the pod decides; none while it is not known.
fn by_pod(request: &Request<'_>, view: BindingView<'_>) -> Option<Decision> {
    let policy = view.policy;
    let pods = view.pods.read();
    let pod = &pods.get(&format!("{}/{}", request.namespace, request.name))?.value;
    let marked =
        |wanted: &[String], keys: &[Arc<str>]| wanted.iter().any(|wanted| keys.iter().any(|key| **key == **wanted));
    Some(if marked(&policy.bypass_labels, &pod.labels) {
        "bypass_label"
    } else if marked(&policy.bypass_annotations, &pod.annotations) {
        "bypass_annotation"
    } else if policy.dry_run {
        "dry_run"
    } else {
        DENIED
    })
}

// === the cache of pods ===

/// The keys of a pod's labels and annotations.
#[derive(Debug, PartialEq)]
pub(crate) struct PodMarks {
    pub(crate) labels: Box<[Arc<str>]>,
    pub(crate) annotations: Box<[Arc<str>]>,
}

impl Projection for PodMarks {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self {
            labels: keys("metadata.labels", wire.metadata.labels, strings)?,
            annotations: keys("metadata.annotations", wire.metadata.annotations, strings)?,
        })
    }
}

fn keys(field: &'static str, raw: Option<&RawValue>, strings: &mut Interner) -> Result<Box<[Arc<str>]>, DecodeError> {
    let Some(raw) = raw else { return Ok(Box::default()) };
    let map: Option<BTreeMap<String, &RawValue>> =
        serde_json::from_str(raw.get()).map_err(|error| DecodeError::new(field, error))?;
    Ok(map.unwrap_or_default().keys().map(|key| strings.intern(key)).collect())
}

#[cfg(test)]
mod tests {
    use koord_resource::admission::GroupVersionResource;

    use super::*;
    use crate::Settings;

    #[test]
    fn every_decision_is_counted_by_its_reason() {
        let policy = |everywhere, namespaces: &[&str]| BindingPolicy {
            users: vec!["scheduler".to_owned()],
            everywhere,
            namespaces: namespaces.iter().map(|namespace| (*namespace).to_owned()).collect(),
            ..BindingPolicy::default()
        };
        let bindings = policy(false, &["a", "*"]);
        let mut ctx = Ctx::detached(|gate| gate == "BindingAdmissionWebhook");
        ctx.settings = Settings { bindings, ..Settings::default() };
        let opts = prometheus::Opts::new("decisions", "decisions");
        let counter = prometheus::IntCounterVec::new(opts, &["decision"]).unwrap();
        ctx.binding_decisions = Some(counter.clone());
        let bypass = r#"{"koordinator.sh/binding-admission-bypass":""}"#;
        for (name, labels) in [("plain", "null"), ("free", bypass)] {
            let metadata = format!(
                r#"{{"name":"{name}","namespace":"a","uid":"{name}","resourceVersion":"1","labels":{labels}}}"#
            );
            ctx.put("Pod", &format!(r#"{{"metadata":{metadata}}}"#)).unwrap();
        }
        let decide = |ctx: &Ctx, user: &str, namespace: &str, pod: &str| {
            let user = RawValue::from_string(format!(r#"{{"username":"{user}"}}"#)).unwrap();
            let resource = GroupVersionResource { resource: "pods".into(), ..GroupVersionResource::default() };
            let request = Request {
                user_info: Some(&user),
                namespace: namespace.to_owned().into(),
                name: pod.to_owned().into(),
                operation: Operation::Create,
                sub_resource: "binding".into(),
                resource,
                ..Request::default()
            };
            let verdict = (VALIDATE_POD_BINDING.call)(&request, ctx);
            (verdict.denial.is_none(), verdict.provisional)
        };
        let counts = || {
            let decisions = ["allowed_username", "excluded_ns", "out_of_scope", "bypass_label", "denied"];
            decisions.map(|decision| counter.with_label_values(&[decision]).get())
        };
        assert_eq!(decide(&ctx, "koord-scheduler", "a", "plain"), (true, false));
        assert_eq!(decide(&ctx, "intruder", "kube-system", "plain"), (true, false));
        assert_eq!(decide(&ctx, "intruder", "b", "plain"), (true, false), "in a list * is a name");
        assert_eq!(decide(&ctx, "intruder", "a", "free"), (true, false));
        assert_eq!(decide(&ctx, "intruder", "a", "plain"), (false, false));
        assert_eq!(decide(&ctx, "intruder", "a", "unknown"), (true, true), "it may still come");
        assert_eq!(counts(), [1; 5]);
        ctx.settings.bindings = policy(false, &[]);
        assert_eq!(decide(&ctx, "intruder", "a", "plain"), (true, false));
        assert_eq!(counts(), [1; 5], "where nothing is restricted nothing is decided");
        ctx.settings.bindings = policy(true, &["*"]);
        assert_eq!(decide(&ctx, "intruder", "a", "plain"), (false, false));
        assert_eq!(counts()[4], 2);
    }
}
