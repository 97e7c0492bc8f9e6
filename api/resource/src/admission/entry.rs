//! A handler and its entries in the webhook configurations, as constants.

use super::{Operation, Request, Verdict};
use crate::rbac::RbacRule;

/// One HTTP path with the function that answers there and its entries in the webhook configurations.
pub struct Handler<C: ?Sized> {
    /// URL path, such as `/mutate-pod`.
    pub path: &'static str,
    /// Feature gate that serves the path; none serves it always.
    pub gate: Option<&'static str>,
    /// Entries in the webhook configurations; a path may have several.
    pub entries: &'static [WebhookEntry],
    /// What the handler's snapshot needs to read.
    pub rbac: &'static [RbacRule],
    /// For metrics: `pod`, `elasticquota`, …
    pub object_type: &'static str,
    /// Decides.
    pub call: fn(&Request<'_>, &C) -> Verdict,
}

/// What a type declares of one of its handlers: everything but the function that decides.
///
/// `admission(validate(…))` and `admission(mutate(…))` on a type make the constants `VALIDATING` and `MUTATING`. Where the
/// object is all that a decision needs, the type has the handlers too (`validating_handler`, `mutating_handler`); where
/// it needs a snapshot, a function is attached where the snapshot is known: `#[admission(declared = Type::VALIDATING)]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declaration {
    /// URL path.
    pub path: &'static str,
    /// Feature gate that serves the path; none serves it always.
    pub gate: Option<&'static str>,
    /// Entries in the webhook configurations.
    pub entries: &'static [WebhookEntry],
    /// What the handler's snapshot needs to read.
    pub rbac: &'static [RbacRule],
    /// For metrics.
    pub object_type: &'static str,
    /// HTTP code of a denial by the type's own rules.
    pub code: u16,
    /// The field manager whose requests are never denied: broken rules become warnings.
    pub warns: Option<&'static str>,
}

impl Declaration {
    /// The handler that decides by a function.
    pub const fn decided_by<C: ?Sized>(self, call: fn(&Request<'_>, &C) -> Verdict) -> Handler<C> {
        let Self { path, gate, entries, rbac, object_type, .. } = self;
        Handler { path, gate, entries, rbac, object_type, call }
    }
}

/// Which of the two webhook configurations an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookKind {
    /// MutatingWebhookConfiguration.
    Mutating,
    /// ValidatingWebhookConfiguration.
    Validating,
}

/// One entry of a webhook configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WebhookEntry {
    /// Which configuration.
    pub kind: WebhookKind,
    /// Fully qualified name, such as `vpod.koordinator.sh`.
    pub name: &'static str,
    /// API groups of the rule.
    pub groups: &'static [&'static str],
    /// API versions of the rule.
    pub versions: &'static [&'static str],
    /// Plurals, or `plural/subresource`.
    pub resources: &'static [&'static str],
    /// Operations of the rule.
    pub operations: &'static [Operation],
    /// `Cluster`, `Namespaced` or `*`: of which scope the resources are; none leaves it to the API server, which takes `*`.
    pub scope: Option<&'static str>,
    /// What the webhook changes beside the object.
    pub side_effects: SideEffects,
    /// Where the API server finds the webhook.
    pub client: Client,
    /// `Fail` or `Ignore`.
    pub failure_policy: FailurePolicy,
    /// `Exact` or `Equivalent`; none leaves it to the API server.
    pub match_policy: Option<&'static str>,
    /// Reinvocation policy of a mutating webhook, `Never` or `IfNeeded`.
    pub reinvocation_policy: Option<&'static str>,
    /// Selector of namespaces.
    pub namespace_selector: Option<Selector>,
    /// Selector of objects.
    pub object_selector: Option<Selector>,
    /// Name and CEL expression of each match condition.
    pub match_conditions: &'static [(&'static str, &'static str)],
    /// Seconds that the API server waits.
    pub timeout_seconds: Option<i32>,
    /// AdmissionReview versions, best first.
    pub review_versions: &'static [&'static str],
}

impl WebhookEntry {
    /// A validating webhook of nothing yet, asked about creations only: what an entry does not say is as here.
    ///
    /// ```
    /// use koord_resource::admission::WebhookEntry;
    /// const ENTRY: WebhookEntry = WebhookEntry {
    ///     name: "vpod.example.com", groups: &[""], versions: &["v1"], resources: &["pods"], ..WebhookEntry::BASE
    /// };
    /// assert_eq!(ENTRY.review_versions, ["v1"]);
    /// ```
    pub const BASE: Self = Self {
        kind: WebhookKind::Validating,
        name: "",
        groups: &[],
        versions: &[],
        resources: &[],
        operations: &[Operation::Create],
        scope: None,
        side_effects: SideEffects::None,
        client: Client::INSTALLED,
        failure_policy: FailurePolicy::Fail,
        match_policy: None,
        reinvocation_policy: None,
        namespace_selector: None,
        object_selector: None,
        match_conditions: &[],
        timeout_seconds: None,
        review_versions: &["v1"],
    };
}

/// What the API server does when a webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Refuses the request.
    Fail,
    /// Goes on as if the webhook had allowed it.
    Ignore,
}

/// What a webhook changes beside the object that it is asked about. API servers accept no others in v1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    /// Nothing: the handler is a function of the request and a snapshot.
    None,
    /// Something, unless the request is a dry run; then [`Request::dry_run`] says so.
    NoneOnDryRun,
}

/// Where the API server finds a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Behind a Service; what is not said is that of the Service which the program is installed with.
    Service {
        /// Name of the Service.
        name: Option<&'static str>,
        /// Its namespace.
        namespace: Option<&'static str>,
        /// Its port; the API server takes 443 without it.
        port: Option<u16>,
    },
    /// At a URL, which is called as it stands.
    Url(&'static str),
}

impl Client {
    /// Behind the Service that the program is installed with.
    pub const INSTALLED: Self = Self::Service { name: None, namespace: None, port: None };
}

/// A label selector as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Key, operator (`In`, `NotIn`, `Exists`, `DoesNotExist`) and values.
    pub expressions: &'static [(&'static str, &'static str, &'static [&'static str])],
}
