//! What an admission handler is: a pure function of a request and a snapshot, and its entry in a webhook configuration.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::rbac::RbacRule;

/// What is being done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A change.
    Update,
    /// A removal.
    Delete,
    /// A connection, such as exec.
    Connect,
}

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupVersionKind<'a> {
    /// API group; empty for core.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    /// API version.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// Kind.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

/// Group, version and plural.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupVersionResource<'a> {
    /// API group; empty for core.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    /// API version.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// Plural.
    #[serde(borrow)]
    pub resource: Cow<'a, str>,
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo<'a> {
    /// User name.
    #[serde(borrow)]
    pub username: Cow<'a, str>,
    /// Unique id of the user.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Groups of the user.
    #[serde(borrow)]
    pub groups: Vec<Cow<'a, str>>,
}

/// One admission request as it came over the wire; its objects are not decoded yet.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Echoed in the answer.
    pub uid: Cow<'a, str>,
    /// Kind of the object.
    pub kind: GroupVersionKind<'a>,
    /// Resource of the request.
    pub resource: GroupVersionResource<'a>,
    /// Subresource; empty for the object itself.
    pub sub_resource: Cow<'a, str>,
    /// Name; may be empty on create.
    pub name: Cow<'a, str>,
    /// Namespace; empty for cluster scope.
    pub namespace: Cow<'a, str>,
    /// What is being done.
    pub operation: Operation,
    /// Who asks.
    pub user: UserInfo<'a>,
    /// The object as it would become; absent on delete.
    pub object: Option<&'a RawValue>,
    /// The object as it is; absent on create.
    pub old_object: Option<&'a RawValue>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// A request whose objects are decoded.
#[derive(Clone, Debug)]
pub struct Review<'a, T> {
    /// Everything but the objects.
    pub request: &'a Request<'a>,
    /// The object as it would become.
    pub object: Option<T>,
    /// The object as it is.
    pub old_object: Option<T>,
}

impl<'a, T: DeserializeOwned> Review<'a, T> {
    /// Decodes the objects of a request.
    pub fn decode(request: &'a Request<'a>) -> Result<Self, Denial> {
        let decode = |raw: Option<&RawValue>| raw.map(|raw| serde_json::from_str(raw.get())).transpose();
        match (decode(request.object), decode(request.old_object)) {
            (Ok(object), Ok(old_object)) => Ok(Review { request, object, old_object }),
            (Err(error), _) | (_, Err(error)) => Err(Denial::bad_request(error.to_string())),
        }
    }
}

/// What a handler decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why the request is refused; none admits it.
    pub denial: Option<Denial>,
    /// Changes of the object, as an RFC 6902 patch; empty leaves it as it is.
    pub patch: Vec<PatchOperation>,
    /// What the user should know although the request is admitted.
    pub warnings: Vec<String>,
    /// Annotations of the audit event.
    pub audit_annotations: BTreeMap<String, String>,
}

impl Verdict {
    /// Admits the request as it is.
    pub fn allow() -> Self {
        Self::default()
    }

    /// Refuses the request.
    pub fn deny(denial: Denial) -> Self {
        Self { denial: Some(denial), ..Self::default() }
    }

    /// Admits the request with changes.
    pub fn patched(patch: Vec<PatchOperation>) -> Self {
        Self { patch, ..Self::default() }
    }

    /// Adds something the user should know.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}

/// Why a request is refused; becomes the `status` of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// HTTP code that the user's client sees.
    pub code: u16,
    /// Machine-readable reason, such as `Forbidden`; empty leaves it out.
    pub reason: Cow<'static, str>,
    /// What the user reads.
    pub message: String,
    /// Single fields to blame.
    pub causes: Vec<crate::field::FieldError>,
}

impl Denial {
    /// 400: the request cannot be understood, or breaks a rule of a handler that the original also has.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: Cow::Borrowed(""), message: message.into(), causes: Vec::new() }
    }

    /// 403 with reason `Forbidden`.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self { code: 403, reason: Cow::Borrowed("Forbidden"), message: message.into(), causes: Vec::new() }
    }

    /// 422 with reason `Invalid` and one cause per mistake.
    pub fn invalid(errors: &crate::field::Errors) -> Self {
        Self {
            code: 422,
            reason: Cow::Borrowed("Invalid"),
            message: errors.to_string(),
            causes: errors.iter().cloned().collect(),
        }
    }

    /// 500: our fault, not the user's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: 500, reason: Cow::Borrowed(""), message: message.into(), causes: Vec::new() }
    }
}

/// One operation of an RFC 6902 patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Adds or replaces a value.
    Add {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: Value,
    },
    /// Replaces a value that exists.
    Replace {
        /// JSON pointer.
        path: String,
        /// The new value.
        value: Value,
    },
    /// Removes a value that exists.
    Remove {
        /// JSON pointer.
        path: String,
    },
}

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

/// What the API server does when a webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Refuses the request.
    Fail,
    /// Goes on as if the webhook had allowed it.
    Ignore,
}

/// A label selector as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Key, operator (`In`, `NotIn`, `Exists`, `DoesNotExist`) and values.
    pub expressions: &'static [(&'static str, &'static str, &'static [&'static str])],
}
