//! The span of a review, and the memory of what was admitted.

use koord_resource::admission::{Request, Verdict};
use koord_runtime::trace::{Open, Role, Tracer};
use serde::Deserialize;

/// Which object a review is about, and in which state.
#[derive(Default, Deserialize)]
#[serde(default)]
struct About<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Identity<'a> {
    #[serde(borrow)]
    uid: std::borrow::Cow<'a, str>,
}

/// Ends the span of a review. Without a caller that records the trace, a review of an object that another review has
/// just admitted belongs to the trace of that one: mutation and validation are one request.
pub(crate) fn record(
    tracer: &Tracer,
    mut span: Open,
    has_parent: bool,
    path: &str,
    request: &Request<'_>,
    verdict: &Verdict,
) {
    let text = request.object.or(request.old_object).map_or("{}", |object| object.get());
    let about: About<'_> = serde_json::from_str(text).unwrap_or_default();
    let uid = &about.metadata.uid;
    if let (false, Some(before)) = (has_parent, tracer.pending(uid)) {
        span.follow(before);
    }
    if verdict.denial.is_none() && !request.dry_run && !uid.is_empty() && request.object.is_some() {
        tracer.admitted(uid, span.context());
    }
    let attributes = vec![
        ("http.route", path.to_owned()),
        ("koord.review.uid", request.uid.to_string()),
        ("koord.operation", request.operation.as_str().to_owned()),
        ("koord.allowed", verdict.denial.is_none().to_string()),
        ("koord.dry_run", request.dry_run.to_string()),
        ("k8s.object.resource", request.resource.resource.to_string()),
        ("k8s.namespace.name", request.namespace.to_string()),
        ("k8s.object.name", request.name.to_string()),
        ("k8s.object.uid", uid.to_string()),
    ];
    // A refusal is a good answer, unless it is our own fault.
    let broken = verdict.denial.as_ref().filter(|denial| denial.code >= 500).map(|denial| denial.message.clone());
    tracer.close(span, format!("review {path}"), Role::Server, attributes, broken);
}
