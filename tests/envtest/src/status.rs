//! Failures as the API server words them: `Status` objects of kind `meta/v1`.

use std::borrow::Cow;

use koord_schema::field::Errors;
use serde_json::{Map, Value, json};

/// A failed request, ready to be written as a `Status` object.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError(Box<Failure>);

/// What a `Status` of a failure says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    /// HTTP code.
    pub code: u16,
    /// Machine-readable reason; empty leaves it out.
    pub reason: Cow<'static, str>,
    /// What the user reads.
    pub message: String,
    /// What the failure is about; none leaves `details` out.
    pub details: Option<Map<String, Value>>,
    /// A token with which an expired list can be continued.
    pub continue_token: Option<String>,
    /// Warnings gathered before the failure.
    pub warnings: Vec<String>,
}

/// The resource and name that a failure is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// Plural or kind, as the failure names it.
    pub resource: &'a str,
    /// Name of the object; may be empty.
    pub name: &'a str,
}

impl Subject<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.resource.to_owned() } else { format!("{}.{}", self.resource, self.group) }
    }

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.resource)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), Value::String(value.to_owned()));
            }
        }
        details
    }
}

// === impl ApiError ===

impl ApiError {
    /// A failure without details.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self(Box::new(Failure { code, reason: reason.into(), message: message.into(), ..Failure::default() }))
    }

    /// 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401 `Unauthorized`.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 `Forbidden`, with the reason behind the standard words.
    pub fn forbidden(subject: Subject<'_>, why: &str) -> Self {
        let who = subject.qualified();
        let message = match (who.is_empty(), subject.name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{who} is forbidden: {why}"),
            (false, false) => format!("{who} \"{}\" is forbidden: {why}", subject.name),
        };
        Self::new(403, "Forbidden", message).about(subject)
    }

    /// 404 of an object.
    pub fn not_found(subject: Subject<'_>) -> Self {
        Self::new(404, "NotFound", format!("{} \"{}\" not found", subject.qualified(), subject.name)).about(subject)
    }

    /// 404 of a resource that the API server does not serve.
    pub fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_details(Map::new())
    }

    /// 405 of a custom resource, which names the verb.
    pub fn verb_not_supported(verb: &str, subject: Subject<'_>) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", subject.qualified());
        Self::new(405, "MethodNotAllowed", message).about(Subject { name: "", ..subject })
    }

    /// 405: the resource has no such verb.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(Map::new())
    }

    /// 406: the route writes no media type that the client accepts.
    pub fn no_representation(media_types: &str) -> Self {
        Self::not_acceptable(format!("406: Not Acceptable\n\nAvailable representations: {media_types}"))
            .with_details(Map::new())
    }

    /// 406: what the client asks for cannot be made.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 409 of a create; `is_ending` says whether the object that exists is being deleted.
    pub fn already_exists(subject: Subject<'_>, is_ending: bool) -> Self {
        let prefix = if is_ending { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} \"{}\" already exists", subject.qualified(), subject.name);
        Self::new(409, "AlreadyExists", message).about(subject)
    }

    /// 409 of a change or delete.
    pub fn conflict(subject: Subject<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", subject.qualified(), subject.name);
        Self::new(409, "Conflict", message).about(subject)
    }

    /// 409: the object changed since the client read it.
    pub fn modified(subject: Subject<'_>) -> Self {
        Self::conflict(
            subject,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410: the revision is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 415: the body's media type is unknown here.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 422: the object breaks rules; `subject.resource` is the kind.
    pub fn invalid(subject: Subject<'_>, errors: &Errors) -> Self {
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": error.mistake.reason(), "message": error.body(), "field": error.field}))
            .collect();
        // The message says each thing once, the causes as often as it was found.
        let mut once = Errors::new();
        for error in errors {
            if !once.iter().any(|known| known == error) {
                once.add(error.clone());
            }
        }
        let message = format!("{} \"{}\" is invalid: {once}", subject.qualified(), subject.name);
        let mut error = Self::new(422, "Invalid", message).about(subject);
        error.detail("causes", Value::Array(causes));
        error
    }

    /// 429: come back later.
    pub fn too_many_requests(message: impl Into<String>) -> Self {
        Self::new(429, "TooManyRequests", message)
    }

    /// 500 with reason `InternalError`, worded as a caught Go error is.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        error.detail("causes", json!([{ "message": message }]));
        error
    }

    /// 500 without a reason: an error that nobody classified.
    pub fn unclassified(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// Replaces the details.
    #[must_use]
    pub fn with_details(mut self, details: Map<String, Value>) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Sets one entry of the details.
    pub fn detail(&mut self, key: &str, value: Value) {
        self.0.details.get_or_insert_with(Map::new).insert(key.to_owned(), value);
    }

    /// Lets an expired list be continued.
    #[must_use]
    pub fn with_continue(mut self, token: String) -> Self {
        self.0.continue_token = Some(token);
        self
    }

    /// Sends along what was warned of before the failure.
    #[must_use]
    pub fn after_warnings(mut self, mut earlier: Vec<String>) -> Self {
        for warning in std::mem::take(&mut self.0.warnings) {
            if !earlier.contains(&warning) {
                earlier.push(warning);
            }
        }
        self.0.warnings = earlier;
        self
    }

    /// Adds warnings that are sent along.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.0.warnings.extend(warnings);
        self
    }

    fn about(self, subject: Subject<'_>) -> Self {
        self.with_details(subject.details())
    }

    /// What the `Status` says.
    pub fn failure(&self) -> &Failure {
        &self.0
    }

    /// HTTP code.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// What the user reads.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The `Status` object.
    pub fn to_status(&self) -> Value {
        let Failure { code, reason, message, details, continue_token, .. } = self.failure();
        let mut metadata = Map::new();
        if let Some(token) = continue_token {
            metadata.insert("continue".to_owned(), Value::String(token.clone()));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata,
            "status": "Failure", "message": message, "code": code,
        });
        if !reason.is_empty() {
            status["reason"] = Value::String(reason.to_string());
        }
        if let Some(details) = details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

/// The answer to a delete: what is gone.
pub fn success(group: &str, resource: &str, name: &str, uid: &str) -> Value {
    let mut details = Subject { group, resource, name }.details();
    if !uid.is_empty() {
        details.insert("uid".to_owned(), Value::String(uid.to_owned()));
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_group_and_resource() {
        let subject = Subject { group: "apps", resource: "deployments", name: "web" };
        let status = ApiError::not_found(subject).to_status();
        assert_eq!(status["message"], r#"deployments.apps "web" not found"#);
        assert_eq!(status["details"], json!({"name": "web", "group": "apps", "kind": "deployments"}));
    }

    #[test]
    fn an_unclassified_error_has_neither_reason_nor_details() {
        let status = ApiError::unclassified("x").to_status();
        assert_eq!(status.get("reason"), None);
        assert_eq!(status.get("details"), None);
    }
}
