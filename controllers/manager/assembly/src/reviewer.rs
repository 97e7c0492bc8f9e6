//! Asks koord-manager's own admission handlers, without a server.

use anyhow::{Result, anyhow};
use koord_program::gates::Gates;
use koord_resource::{
    admission::{Denial, Handler, Operation, Request, WebhookKind},
    schema::patch,
};
use koord_webhook_handlers::{Ctx, Declared, HANDLERS};
use serde_json::{Value, json};

use crate::gates::GATES;

/// The handlers with what they know of a cluster.
pub struct Reviewer {
    ctx: Ctx,
}

/// What all handlers say to a request.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// The object as the mutating handlers leave it.
    pub object: Value,
    /// Who refuses it, and why.
    pub denials: Vec<Denial>,
    /// What has no effect.
    pub warnings: Vec<String>,
}

/// Group, version and plural of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural, as it stands in URLs.
    pub plural: &'a str,
}

/// Quotas, the kind whose rules look at each other's objects.
pub const QUOTAS: Resource<'static> =
    Resource { group: "scheduling.sigs.k8s.io", version: "v1alpha1", plural: "elasticquotas" };

impl Default for Reviewer {
    /// Handlers that know nothing yet, by the rules of a koord-manager without `--feature-gates`.
    fn default() -> Self {
        Self::of(&Gates::new(GATES))
    }
}

impl Reviewer {
    /// Handlers that know nothing yet. The gates, as `--feature-gates` of koord-manager takes them, decide which rules
    /// there are; every handler is asked, whether its own gate is on or not.
    pub fn new(feature_gates: &str) -> Result<Self> {
        let gates = Gates::parse(GATES, feature_gates).map_err(|error| anyhow!("--feature-gates: {error}"))?;
        Ok(Self::of(&gates))
    }

    /// The same with the rules of types that koord-manager may be told not to enforce.
    #[must_use]
    pub fn enforcing(mut self) -> Self {
        self.ctx.settings.declared = Declared::Enforce;
        self
    }

    fn of(gates: &Gates) -> Self {
        let mut ctx = Ctx::detached(|gate| gates.enabled(gate));
        ctx.settings.admission_warnings = true;
        Self { ctx }
    }

    /// Tells them of an object of the cluster; an object of a kind that none asks for is passed over. The object
    /// needs a resourceVersion.
    pub fn know(&self, kind: &str, object: &str) -> Result<()> {
        self.ctx.put(kind, object).map_err(|error| anyhow!("{kind}: {error}"))
    }

    /// What the validating handlers say against a request.
    pub fn objections(
        &self,
        resource: Resource<'_>,
        operation: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> impl Iterator<Item = Denial> + use<'_> {
        let review = request(resource, operation, object, old);
        let handlers: Vec<_> = serving(WebhookKind::Validating, resource, operation).collect();
        handlers.into_iter().filter_map(move |handler| self.call(handler, &review, &mut Vec::new()).err())
    }

    /// What becomes of a request: the object as the mutating handlers leave it, unless one refuses.
    pub fn admit(
        &self,
        resource: Resource<'_>,
        operation: Operation,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Value, Denial> {
        let Reviewed { object, denials, .. } = self.review(resource, operation, object, old);
        denials.into_iter().next().map_or(Ok(object), Err)
    }

    /// What all handlers say to a request. The validating ones see what the mutating ones have made; where one of
    /// those refuses, no other handler is called.
    pub fn review(
        &self,
        resource: Resource<'_>,
        operation: Operation,
        object: &Value,
        old: Option<&Value>,
    ) -> Reviewed {
        let mut reviewed = Reviewed { object: object.clone(), denials: Vec::new(), warnings: Vec::new() };
        for kind in [WebhookKind::Mutating, WebhookKind::Validating] {
            for handler in serving(kind, resource, operation) {
                let asked = self.call(
                    handler,
                    &request(resource, operation, Some(&reviewed.object), old),
                    &mut reviewed.warnings,
                );
                let changed = asked.and_then(|changes| match changes {
                    None => Ok(None),
                    Some(changes) => {
                        let object = std::mem::take(&mut reviewed.object);
                        patch::json::apply(object, &changes)
                            .map(Some)
                            .map_err(|error| Denial::internal(error.to_string()))
                    }
                });
                match changed {
                    Ok(None) => {}
                    Ok(Some(object)) => reviewed.object = object,
                    Err(denial) => reviewed.denials.push(denial),
                }
            }
            if !reviewed.denials.is_empty() {
                break;
            }
        }
        reviewed
    }

    fn call(&self, handler: &Handler<Ctx>, review: &str, warnings: &mut Vec<String>) -> Result<Option<Value>, Denial> {
        let request: Request<'_> =
            serde_json::from_str(review).map_err(|error| Denial::bad_request(error.to_string()))?;
        let verdict = (handler.call)(&request, &self.ctx);
        warnings.extend(verdict.warnings);
        match verdict.denial {
            Some(denial) => Err(denial),
            None if verdict.patch.is_empty() => Ok(None),
            None => Ok(Some(serde_json::from_slice(verdict.patch.as_bytes())?)),
        }
    }
}

fn serving(
    kind: WebhookKind,
    resource: Resource<'_>,
    operation: Operation,
) -> impl Iterator<Item = &'static Handler<Ctx>> {
    HANDLERS.iter().filter(move |handler| {
        handler.entries.iter().any(|entry| {
            entry.kind == kind
                && entry.groups.contains(&resource.group)
                && entry.versions.contains(&resource.version)
                && entry.resources.contains(&resource.plural)
                && entry.operations.contains(&operation)
        })
    })
}

/// A dry run, so that the handlers do not wait for a change that never comes.
fn request(resource: Resource<'_>, operation: Operation, object: Option<&Value>, old: Option<&Value>) -> String {
    let Resource { group, version, plural } = resource;
    let either = object.or(old).unwrap_or(&Value::Null);
    json!({
        "uid": "koordctl", "operation": operation.as_str(), "object": object, "oldObject": old, "dryRun": true,
        "kind": {"group": group, "version": version, "kind": either["kind"]},
        "resource": {"group": group, "version": version, "resource": plural},
        "name": either["metadata"]["name"], "namespace": either["metadata"]["namespace"],
    })
    .to_string()
}
