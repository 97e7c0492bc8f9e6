//! `/validate-pod-binding`: only some users may bind pods to nodes.

use koord_resource::admission::{Denial, Handler, Operation, Patch, Request};

use crate::{Ctx, entries};

/// The handler. It is served with the other checks of pods, and lets everything pass while its own gate is off.
pub const HANDLER: Handler<Ctx> = Handler {
    path: "/validate-pod-binding",
    gate: Some("PodValidatingWebhook"),
    entries: &[entries::VALIDATE_POD_BINDING],
    rbac: &entries::BINDING_RULES,
    object_type: "pod",
    call: |request, ctx| validate(request, ctx).map(|()| Patch::default()).into(),
};

fn validate(request: &Request<'_>, ctx: &Ctx) -> Result<(), Denial> {
    let policy = &ctx.settings.bindings;
    let of_bindings = request.resource.resource == "pods" && request.sub_resource == "binding";
    if !ctx.switches.binding_admission
        || policy.users.is_empty()
        || !of_bindings
        || request.operation != Operation::Create
    {
        return Ok(());
    }
    let user = request.user()?;
    if policy.users.iter().any(|part| user.username.contains(part.as_str())) {
        return Ok(());
    }
    let among = |namespaces: &[String]| namespaces.iter().any(|namespace| *namespace == request.namespace);
    let everywhere = policy.namespaces.iter().any(|namespace| namespace == "*");
    if among(&policy.excluded_namespaces) || !(everywhere || among(&policy.namespaces)) {
        return Ok(());
    }
    let pods = ctx.gated.marks.read();
    // A pod that is not known yet may be bound: who creates it and binds it at once must not depend on a cache.
    let Some(pod) = pods.get(&format!("{}/{}", request.namespace, request.name)) else { return Ok(()) };
    let marked = |wanted: &[String], keys: &[std::sync::Arc<str>]| {
        wanted.iter().any(|wanted| keys.iter().any(|key| **key == **wanted))
    };
    let bypassed =
        marked(&policy.bypass_labels, &pod.value.labels) || marked(&policy.bypass_annotations, &pod.value.annotations);
    if bypassed || policy.dry_run {
        return Ok(());
    }
    Err(Denial::forbidden("binding denied: username is not in the allowed list"))
}
