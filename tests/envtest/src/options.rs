//! Options of writes, deletes, lists and watches, and what is wrong with them.

use koord_schema::{
    field::{Errors, Path},
    go_text::is_printable,
};
use serde_json::{Map, Value, json};

use crate::{
    decode::{self, FieldValidation},
    request::ApiRequest,
    status::{ApiError, Subject},
    strategy::Propagation,
};

const MANAGER_CHARACTERS_MAX: usize = 128;

/// Options of a create, update or patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub kind: &'static str,
    /// Nothing is stored.
    pub dry_run: bool,
    /// The `fieldManager` parameter; empty when absent.
    pub field_manager: String,
    /// Unknown fields.
    pub field_validation: FieldValidation,
    /// The parameter as it was given.
    pub field_validation_text: String,
    /// Apply takes ownership of fields in conflict.
    pub force: Option<bool>,
}

// === impl WriteOptions ===

impl WriteOptions {
    /// Reads the query of a write.
    pub fn read(request: &ApiRequest, kind: &'static str, is_apply: bool) -> Result<Self, ApiError> {
        let mut errors = Errors::new();
        let mut options = Self { kind, ..Self::default() };
        if kind == "PatchOptions" {
            options.force = bool_parameter(request, "force");
            if is_apply {
                if request.parameter("fieldManager").unwrap_or_default().is_empty() {
                    errors.required(&Path::root("fieldManager"), "is required for apply patch");
                }
            } else if options.force.is_some() {
                errors.forbidden(&Path::root("force"), "may not be specified for non-apply patch");
            }
        }
        request.parameter("fieldManager").unwrap_or_default().clone_into(&mut options.field_manager);
        if options.field_manager.chars().count() > MANAGER_CHARACTERS_MAX {
            let message = format!("may not be more than {MANAGER_CHARACTERS_MAX} bytes");
            errors.add(koord_schema::field::FieldError {
                mistake: koord_schema::field::Mistake::TooLong,
                field: "fieldManager".to_owned(),
                value: String::new(),
                detail: message,
            });
        }
        for (position, character) in options.field_manager.char_indices().filter(|(_, found)| !is_printable(*found)) {
            let message = format!("invalid character U+{:04X} (at position {position})", u32::from(character));
            errors.invalid(&Path::root("fieldManager"), &options.field_manager, &message);
        }
        options.dry_run =
            read_dry_run(&request.parameters("dryRun").map(ToOwned::to_owned).collect::<Vec<_>>(), &mut errors);
        request.parameter("fieldValidation").unwrap_or_default().clone_into(&mut options.field_validation_text);
        options.field_validation = match options.field_validation_text.as_str() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.not_supported(&Path::root("fieldValidation"), other, &["", "Ignore", "Strict", "Warn"]);
                FieldValidation::Warn
            }
        };
        refuse(kind, &errors)?;
        Ok(options)
    }

    /// The object that admission webhooks see.
    pub fn to_value(&self) -> Value {
        let mut options = Map::new();
        options.insert("kind".to_owned(), json!(self.kind));
        options.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
        if self.dry_run {
            options.insert("dryRun".to_owned(), json!(["All"]));
        }
        if !self.field_manager.is_empty() {
            options.insert("fieldManager".to_owned(), json!(self.field_manager));
        }
        if !self.field_validation_text.is_empty() {
            options.insert("fieldValidation".to_owned(), json!(self.field_validation_text));
        }
        if let Some(force) = self.force {
            options.insert("force".to_owned(), json!(force));
        }
        Value::Object(options)
    }
}

/// Who owns the fields of a write: the parameter, or the user agent up to its first slash.
pub fn manager(parameter: &str, user_agent: &str) -> String {
    if !parameter.is_empty() {
        return parameter.to_owned();
    }
    user_agent.split('/').next().unwrap_or_default().chars().take(MANAGER_CHARACTERS_MAX).collect()
}

/// Options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Nothing is deleted.
    pub dry_run: bool,
    /// Seconds that the object may take.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents.
    pub propagation: Option<Propagation>,
    /// Delete only an object of this identity.
    pub uid: Option<String>,
    /// Delete only at this revision.
    pub resource_version: Option<String>,
    /// As the client sent them.
    pub as_sent: Value,
}

// === impl DeleteOptions ===

impl DeleteOptions {
    /// Reads the body, or the query when there is no body.
    pub fn read(request: &ApiRequest) -> Result<Self, ApiError> {
        let mut errors = Errors::new();
        let body = if request.body.is_empty() { Value::Null } else { decode::delete_options(request)? };
        let (grace, policy, orphan);
        let dry_run: Vec<String>;
        if body.is_object() {
            grace = body["gracePeriodSeconds"].as_i64();
            policy = body["propagationPolicy"].as_str().map(ToOwned::to_owned);
            orphan = body["orphanDependents"].as_bool();
            let listed = body["dryRun"].as_array().into_iter().flatten();
            dry_run = listed.filter_map(Value::as_str).map(ToOwned::to_owned).collect();
        } else {
            grace = int_parameter(request, "gracePeriodSeconds")?;
            policy = request.parameter("propagationPolicy").map(ToOwned::to_owned);
            orphan = bool_parameter(request, "orphanDependents");
            dry_run = request.parameters("dryRun").map(ToOwned::to_owned).collect();
        }
        Self::checked(body, grace, policy.as_deref(), orphan, &dry_run, &mut errors)
    }

    /// Reads options that stand inside another object, as in an eviction.
    pub fn from_value(body: &Value) -> Result<Self, ApiError> {
        let listed = body["dryRun"].as_array().into_iter().flatten();
        Self::checked(
            body.clone(),
            body["gracePeriodSeconds"].as_i64(),
            body["propagationPolicy"].as_str(),
            body["orphanDependents"].as_bool(),
            &listed.filter_map(Value::as_str).map(ToOwned::to_owned).collect::<Vec<_>>(),
            &mut Errors::new(),
        )
    }

    fn checked(
        body: Value,
        grace_period_seconds: Option<i64>,
        policy: Option<&str>,
        orphan: Option<bool>,
        dry_run: &[String],
        errors: &mut Errors,
    ) -> Result<Self, ApiError> {
        let at = Path::root("propagationPolicy");
        let mut propagation = match policy {
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            _ => None,
        };
        match (policy, orphan) {
            (Some(policy), Some(_)) => {
                errors.invalid(&at, policy, "orphanDependents and deletionPropagation cannot be both set");
            }
            (Some(policy), None) if propagation.is_none() => {
                errors.not_supported(&at, policy, &["Foreground", "Background", "Orphan", "nil"]);
            }
            (None, Some(true)) => propagation = Some(Propagation::Orphan),
            (None, Some(false)) => propagation = Some(Propagation::Background),
            _ => {}
        }
        let dry_run = read_dry_run(dry_run, errors);
        refuse("DeleteOptions", errors)?;
        let precondition = |field: &str| body["preconditions"][field].as_str().map(ToOwned::to_owned);
        Ok(Self {
            dry_run,
            grace_period_seconds,
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            as_sent: body,
        })
    }

    /// The object that admission webhooks see.
    pub fn to_value(&self) -> Value {
        let mut options = self.as_sent.as_object().cloned().unwrap_or_default();
        options.insert("kind".to_owned(), json!("DeleteOptions"));
        options.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
        if !self.as_sent.is_object() {
            if let Some(seconds) = self.grace_period_seconds {
                options.insert("gracePeriodSeconds".to_owned(), json!(seconds));
            }
            if let Some(propagation) = self.propagation {
                options.insert("propagationPolicy".to_owned(), json!(format!("{propagation:?}")));
            }
            if self.dry_run {
                options.insert("dryRun".to_owned(), json!(["All"]));
            }
        }
        Value::Object(options)
    }
}

/// How `resourceVersion` of a list is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly that state.
    Exact,
    /// That state or a newer one.
    NotOlderThan,
}

/// Options of a list or watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Whether this is a watch.
    pub watch: bool,
    /// Text of the label selector.
    pub label_selector: String,
    /// Text of the field selector.
    pub field_selector: String,
    /// The `resourceVersion`; empty when absent.
    pub resource_version: String,
    /// How it is meant.
    pub version_match: Option<VersionMatch>,
    /// Largest number of items; zero or less for all.
    pub limit: i64,
    /// Token of the next page; empty for the first.
    pub continue_token: String,
    /// Seconds after which a watch ends.
    pub timeout_seconds: Option<u64>,
    /// Whether a watch sends bookmarks.
    pub bookmarks: bool,
    /// Whether a watch starts with all objects.
    pub send_initial_events: Option<bool>,
}

// === impl ListOptions ===

impl ListOptions {
    /// Reads the query of a list, watch or deletecollection.
    pub fn read(request: &ApiRequest) -> Result<Self, ApiError> {
        let text = |name: &str| request.parameter(name).unwrap_or_default().to_owned();
        let mut errors = Errors::new();
        let at = Path::root("resourceVersionMatch");
        let match_text = text("resourceVersionMatch");
        let options = Self {
            watch: bool_parameter(request, "watch").unwrap_or_default(),
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            resource_version: text("resourceVersion"),
            version_match: match match_text.as_str() {
                "Exact" => Some(VersionMatch::Exact),
                "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            limit: int_parameter(request, "limit")?.unwrap_or_default(),
            continue_token: text("continue"),
            timeout_seconds: int_parameter(request, "timeoutSeconds")?
                .map(|seconds| u64::try_from(seconds).unwrap_or(0)),
            bookmarks: bool_parameter(request, "allowWatchBookmarks").unwrap_or_default(),
            send_initial_events: bool_parameter(request, "sendInitialEvents"),
        };
        if options.watch {
            options.check_watch(&match_text, &mut errors);
        } else {
            options.check_list(&match_text, &mut errors);
        }
        let known = match_text.is_empty() || options.version_match.is_some();
        if !known && errors.is_empty() {
            errors.not_supported(&at, &match_text, &["Exact", "NotOlderThan", ""]);
        }
        refuse("ListOptions", &errors)?;
        Ok(options)
    }

    fn check_watch(&self, match_text: &str, errors: &mut Errors) {
        let at = Path::root("resourceVersionMatch");
        if self.send_initial_events.is_some() {
            if match_text != "NotOlderThan" {
                errors.forbidden(&at, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
            }
            if !matches!(match_text, "" | "NotOlderThan") {
                errors.not_supported(&at, match_text, &["NotOlderThan"]);
            }
        } else if !match_text.is_empty() {
            errors.forbidden(&at, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        // A watch from any state asks for the initial events, which come in one piece.
        if !self.continue_token.is_empty() && matches!(self.resource_version.as_str(), "" | "0") {
            errors.forbidden(&at, "resourceVersionMatch is forbidden when continue is provided");
        }
    }

    fn check_list(&self, match_text: &str, errors: &mut Errors) {
        self.check_match(match_text, errors);
        if self.send_initial_events.is_some() {
            errors.forbidden(&Path::root("sendInitialEvents"), "sendInitialEvents is forbidden for list");
        }
    }

    fn check_match(&self, match_text: &str, errors: &mut Errors) {
        let at = Path::root("resourceVersionMatch");
        if match_text.is_empty() {
            return;
        }
        if self.resource_version.is_empty() {
            errors.forbidden(&at, "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !self.continue_token.is_empty() {
            errors.forbidden(&at, "resourceVersionMatch is forbidden when continue is provided");
        }
        if match_text == "Exact" && self.resource_version == "0" {
            errors.forbidden(&at, r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#);
        }
    }
}

fn refuse(kind: &str, errors: &Errors) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(Subject { group: "meta.k8s.io", resource: kind, name: "" }, errors))
}

fn read_dry_run(values: &[String], errors: &mut Errors) -> bool {
    if values.iter().any(|value| value != "All") {
        errors.not_supported(&Path::root("dryRun"), values, &["All"]);
    }
    !values.is_empty()
}

/// `false` and `0` are false; any other text, also none, is true.
fn bool_parameter(request: &ApiRequest, name: &str) -> Option<bool> {
    request.parameter(name).map(|text| !matches!(text.to_lowercase().as_str(), "false" | "0"))
}

fn int_parameter(request: &ApiRequest, name: &str) -> Result<Option<i64>, ApiError> {
    match request.parameter(name) {
        None | Some("") => Ok(None),
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn get(path: &str) -> ApiRequest {
        ApiRequest::new(Method::GET, path, "")
    }

    #[test]
    fn an_unknown_dry_run_is_refused() {
        let error = WriteOptions::read(&get("/x?dryRun=Bogus"), "CreateOptions", false).unwrap_err();
        assert_eq!(error.code(), 422);
        assert!(error.message().ends_with(r#"dryRun: Unsupported value: ["Bogus"]: supported values: "All""#));
    }

    #[test]
    fn the_manager_is_the_user_agent_up_to_the_slash() {
        assert_eq!(manager("", "my-controller/v1.2 (linux) x"), "my-controller");
        assert_eq!(manager("me", "kubectl/v1"), "me");
    }

    #[test]
    fn a_match_needs_a_version() {
        let error = ListOptions::read(&get("/x?resourceVersionMatch=Exact")).unwrap_err();
        assert!(error.message().contains("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        assert!(ListOptions::read(&get("/x?resourceVersionMatch=Exact&resourceVersion=5")).is_ok());
        assert!(ListOptions::read(&get("/x?watch")).unwrap().watch);
        assert!(!ListOptions::read(&get("/x?watch=false")).unwrap().watch);
    }
}
