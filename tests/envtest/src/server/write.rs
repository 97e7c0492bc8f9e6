//! Create and update: from the body to what admission sees.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApiResponse, ApiServer, Outcome, subject};
use crate::{
    decode, encode, environment, metadata,
    negotiate::{self, Representation},
    options::WriteOptions,
    registry::ResourceDef,
    request::{ApiRequest, Target, User},
    status::{ApiError, Subject},
    store::Record,
};

/// What a request does, as admission names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// The end of an object.
    Delete,
}

impl Operation {
    /// The word in reviews and rules.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// Which webhooks are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Mutating ones, first.
    Mutating,
    /// Validating ones, last.
    Validating,
}

/// What a write does when admission has let it pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// Stores the object.
    Store,
    /// Deletes the object.
    Delete(Box<crate::options::DeleteOptions>),
    /// Does what the subresource does, with the reviewed object as its argument.
    Subresource,
}

/// A write on its way through admission.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) definition: Arc<ResourceDef>,
    pub(super) target: Target,
    pub(super) operation: Operation,
    pub(super) effect: Effect,
    pub(super) request: ApiRequest,
    pub(super) representation: Representation,
    pub(super) dry_run: bool,
    /// Options as webhooks see them.
    pub(super) options: Value,
    /// The new object; null for a delete.
    pub(super) object: Value,
    /// The stored object that the decision is about.
    pub(super) old: Option<(Arc<Record>, Value)>,
    /// Whether the client said which revision it changes.
    pub(super) is_conditional: bool,
    /// Whether the object comes from server-side apply, which has recorded its ownership already.
    pub(super) is_applied: bool,
    /// Objects of a collection that are still to be deleted, by name, and those that are done.
    pub(super) collection: Option<Box<super::delete::Collection>>,
    pub(super) warnings: Vec<String>,
}

/// A write that waits for admission webhooks.
#[derive(Debug)]
pub struct Review {
    phase: Phase,
    write: Write,
}

/// What webhooks are told about a write.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// What happens.
    pub operation: Operation,
    /// The resource.
    pub definition: &'a Arc<ResourceDef>,
    /// Subresource; empty for none.
    pub subresource: &'a str,
    /// Namespace; empty for cluster scope.
    pub namespace: &'a str,
    /// Name; empty when the server is still to make one.
    pub name: &'a str,
    /// The new object; null for a delete.
    pub object: &'a Value,
    /// The stored object.
    pub old_object: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Who asks.
    pub user: &'a User,
    /// `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions`.
    pub options: &'a Value,
}

/// What webhooks decided together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admitted {
    /// The object with all patches applied, when there were any.
    pub object: Option<Value>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Review {
    /// Which webhooks are to be asked.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What they are to be told.
    pub fn attributes(&self) -> Attributes<'_> {
        let write = &self.write;
        Attributes {
            operation: write.operation,
            definition: &write.definition,
            subresource: &write.target.subresource,
            namespace: &write.target.namespace,
            // The objects of a collection are reviewed without their names.
            name: if write.collection.is_some() { "" } else { &write.target.name },
            object: &write.object,
            old_object: write.old.as_ref().map(|(_, object)| object),
            dry_run: write.dry_run,
            user: &write.request.user,
            options: &write.options,
        }
    }
}

/// Metadata that no client sets on a new object.
const SERVER_FIELDS: [&str; 5] =
    ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Whether the server itself writes: it asks no webhooks about that.
fn is_own(request: &ApiRequest) -> bool {
    request.user.name == crate::custom::lifecycle::SERVER_USER
}

impl ApiServer {
    pub(super) fn create(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let representation = negotiate::representation(&request.accept)?;
        let options = WriteOptions::read(request, "CreateOptions", false)?;
        let decoded = decode::object(request, &definition, options.field_validation)?;
        let write = Write {
            definition,
            target,
            operation: Operation::Create,
            effect: Effect::Store,
            request: request.clone(),
            representation,
            dry_run: options.dry_run,
            options: options.to_value(),
            object: decoded.object,
            old: None,
            is_conditional: false,
            is_applied: false,
            collection: None,
            warnings: decoded.warnings,
        };
        self.create_decoded(write)
    }

    /// Goes on with a new object that was decoded, or made by a patch of nothing.
    pub(super) fn create_decoded(&mut self, mut write: Write) -> Result<Outcome, ApiError> {
        match_namespace(&write.target, &mut write.object)?;
        let definition = Arc::clone(&write.definition);
        if !metadata::text(&write.object, "resourceVersion").is_empty()
            && metadata::text(&write.object, "resourceVersion") != "0"
        {
            return Err(ApiError::unclassified("resourceVersion should not be set on objects to be created"));
        }
        let fields = metadata::of_mut(&mut write.object);
        for field in SERVER_FIELDS {
            fields.remove(field);
        }
        metadata::text(&write.object, "name").clone_into(&mut write.target.name);
        definition.strategy.set_defaults(&mut write.object);
        if !write.is_applied {
            self.record_ownership(&mut write);
        }
        self.admit(write)
    }

    /// Gives a new object its identity: mutating webhooks have not seen it, validating ones do.
    fn identify(&mut self, write: &mut Write) {
        let now = self.environment.now();
        let uid = environment::uid(self.environment.as_mut());
        let fields = metadata::of_mut(&mut write.object);
        for field in SERVER_FIELDS {
            fields.remove(field);
        }
        fields.insert("uid".to_owned(), json!(uid));
        fields.insert("creationTimestamp".to_owned(), json!(environment::time_text(now)));
        if metadata::text(&write.object, "name").is_empty() {
            let prefix = metadata::text(&write.object, "generateName").to_owned();
            if !prefix.is_empty() {
                let definition = Arc::clone(&write.definition);
                let name = self.free_name(&definition, &write.target.namespace, &prefix);
                metadata::of_mut(&mut write.object).insert("name".to_owned(), json!(name));
            }
        }
        metadata::text(&write.object, "name").clone_into(&mut write.target.name);
    }

    pub(super) fn update(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let representation = negotiate::representation(&request.accept)?;
        let options = WriteOptions::read(request, "UpdateOptions", false)?;
        let decoded = decode::object(request, &definition, options.field_validation)?;
        let mut object = decoded.object;
        let name = metadata::text(&object, "name");
        if name.is_empty() {
            let url = &target.name;
            return Err(ApiError::bad_request(format!(
                "the name of the object ({url} based on URL) was undeterminable: name must be provided"
            )));
        }
        if name != target.name {
            let url = &target.name;
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({url})"
            )));
        }
        match_namespace(&target, &mut object)?;
        definition.strategy.set_defaults(&mut object);
        let key = definition.key(&target.namespace, &target.name);
        let Some(record) = self.store.shelf(definition.shelf).get(&key).cloned() else {
            if definition.strategy.creates_on_update() && target.subresource.is_empty() {
                let write = Write {
                    definition,
                    target,
                    operation: Operation::Create,
                    effect: Effect::Store,
                    request: request.clone(),
                    representation,
                    dry_run: options.dry_run,
                    options: options.to_value(),
                    object,
                    old: None,
                    is_conditional: false,
                    is_applied: false,
                    collection: None,
                    warnings: decoded.warnings,
                };
                return self.create_decoded(write);
            }
            return Err(ApiError::not_found(subject(&definition, &target.name)));
        };
        let old = encode::value(&definition, &record);
        let write = Write {
            is_conditional: !matches!(metadata::text(&object, "resourceVersion"), "" | "0"),
            definition,
            target,
            operation: Operation::Update,
            effect: Effect::Store,
            request: request.clone(),
            representation,
            dry_run: options.dry_run,
            options: options.to_value(),
            object,
            old: Some((record, old)),
            is_applied: false,
            collection: None,
            warnings: decoded.warnings,
        };
        self.update_decoded(write)
    }

    /// Goes on with a changed object that was decoded, or made by a patch.
    pub(super) fn update_decoded(&mut self, mut write: Write) -> Result<Outcome, ApiError> {
        let definition = Arc::clone(&write.definition);
        let Some((record, old)) = &write.old else {
            return Err(ApiError::not_found(subject(&definition, &write.target.name)));
        };
        check_preconditions(&write, old, record)?;
        keep_identity(&mut write);
        if !write.is_applied {
            self.record_ownership(&mut write);
        }
        self.admit(write)
    }

    /// Asks mutating webhooks when there are any.
    pub(super) fn admit(&mut self, write: Write) -> Result<Outcome, ApiError> {
        let mut write = write;
        self.admit_mutating(&mut write)?;
        if self.has_webhooks(Phase::Mutating) && !is_own(&write.request) {
            return Ok(Outcome::Review(Box::new(Review { phase: Phase::Mutating, write })));
        }
        self.prepare(write)
    }

    /// Sets what only the server sets, checks the object, and asks validating webhooks when there are any.
    fn prepare(&mut self, mut write: Write) -> Result<Outcome, ApiError> {
        if write.effect == Effect::Store {
            if write.old.is_none() {
                self.identify(&mut write);
            }
            self.prepare_object(&mut write)?;
        }
        if self.has_webhooks(Phase::Validating) && !is_own(&write.request) {
            return Ok(Outcome::Review(Box::new(Review { phase: Phase::Validating, write })));
        }
        self.finish_admitted(write)
    }

    /// The last built-in admission, then the write itself.
    fn finish_admitted(&mut self, write: Write) -> Result<Outcome, ApiError> {
        self.admit_quota(&write)?;
        self.finish(write)
    }

    /// Goes on after webhooks have answered.
    pub fn resume(&mut self, review: Review, verdict: Result<Admitted, ApiError>) -> Outcome {
        let Review { phase, mut write } = review;
        let deprecation = write.definition.deprecation.clone();
        let go_on = |server: &mut Self| {
            let admitted = verdict?;
            write.warnings.extend(admitted.warnings);
            match phase {
                Phase::Mutating => {
                    if let Some(object) = admitted.object {
                        write.object = object;
                        write.definition.strategy.set_defaults(&mut write.object);
                    }
                    server.prepare(write)
                }
                Phase::Validating => server.finish_admitted(write),
            }
        };
        let mut outcome: Outcome = go_on(self).into();
        if let (Outcome::Done(response), Some(warning)) = (&mut outcome, deprecation) {
            response.warnings.push(warning);
        }
        self.follow_changes();
        outcome
    }

    fn free_name(&mut self, definition: &ResourceDef, namespace: &str, prefix: &str) -> String {
        const PREFIX_BYTES_MAX: usize = 63 - 5;
        let cut =
            prefix.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= PREFIX_BYTES_MAX).last();
        let prefix = &prefix[..cut.unwrap_or_default()];
        let mut name = String::new();
        for _ in 0..8 {
            name = format!("{prefix}{}", environment::name_suffix(self.environment.as_mut()));
            if self.store.shelf(definition.shelf).get(&definition.key(namespace, &name)).is_none() {
                break;
            }
        }
        name
    }

    /// The answer of a finished write.
    pub(super) fn answer(&mut self, write: &Write, code: u16, object: Value) -> ApiResponse {
        let object = if write.target.subresource == "scale" && write.effect == Effect::Store {
            super::subresource::scale_of(&write.definition, &object).unwrap_or(object)
        } else {
            object
        };
        let mut response = self.present(code, &write.definition, object, &write.request, write.representation);
        response.warnings.extend(write.warnings.iter().cloned());
        response
    }
}

/// The body's namespace must be that of the URL; an absent one is filled in.
pub(super) fn match_namespace(target: &Target, object: &mut Value) -> Result<(), ApiError> {
    let namespace = metadata::text(object, "namespace").to_owned();
    if target.namespace.is_empty() {
        metadata::remove(object, "namespace");
    } else if namespace.is_empty() {
        metadata::of_mut(object).insert("namespace".to_owned(), json!(target.namespace));
    } else if namespace != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn check_preconditions(write: &Write, old: &Value, record: &Record) -> Result<(), ApiError> {
    let (definition, target, new) = (&write.definition, &write.target, &write.object);
    let is_patch = write.request.method == http::Method::PATCH;
    let about: Subject<'_> = subject(definition, &target.name);
    let uid = metadata::text(new, "uid");
    let stored_uid = metadata::text(old, "uid");
    if !uid.is_empty() && uid != stored_uid && !is_patch {
        let key = storage_key(definition, target);
        return Err(ApiError::conflict(
            about,
            &format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}"
            ),
        ));
    }
    let version = metadata::text(new, "resourceVersion");
    if version.is_empty() || version == "0" {
        if is_patch || definition.strategy.allows_unconditional_update() {
            return Ok(());
        }
        let mut errors = koord_schema::field::Errors::new();
        let at = koord_schema::field::Path::root("metadata");
        errors.invalid(&at.child("resourceVersion"), 0, "must be specified for an update");
        return Err(ApiError::invalid(about, &errors));
    }
    let version: u64 = version
        .parse()
        .map_err(|_| ApiError::unclassified(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")))?;
    if version != record.revision {
        return Err(ApiError::modified(about));
    }
    Ok(())
}

/// Where the real server would keep the object; it stands in some of its messages.
pub(super) fn storage_key(definition: &ResourceDef, target: &Target) -> String {
    let resource = match (definition.group.as_str(), definition.plural.as_str()) {
        ("", "nodes") => "minions",
        ("", "services") => "services/specs",
        (_, plural) => plural,
    };
    let group = if definition.custom { format!("{}/", definition.group) } else { String::new() };
    let namespace = if target.namespace.is_empty() { String::new() } else { format!("{}/", target.namespace) };
    format!("/registry/{group}{resource}/{namespace}{}", target.name)
}

/// Identity, creation and deletion times are the server's; absent ones are those of the stored object.
fn keep_identity(write: &mut Write) {
    let Some((_, old)) = &write.old else { return };
    let kept = &old["metadata"];
    let fields = metadata::of_mut(&mut write.object);
    fields.remove("selfLink");
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        match kept.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if fields.get(field).is_none_or(|value| value.is_null() || value == "")
            && let Some(value) = kept.get(field)
        {
            fields.insert(field.to_owned(), value.clone());
        }
    }
}
