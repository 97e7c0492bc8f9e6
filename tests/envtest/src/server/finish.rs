//! What the server itself does to an object before it is stored: built-in admission, preparation, checks.

use koord_schema::{field::Errors, typed::TypeNode};
use serde_json::{Map, Value, json};

use super::{
    ApiServer, kind_subject, subject,
    write::{Effect, Operation, Write},
};
use crate::{
    environment,
    metadata::{self, FinalizerRule},
    status::{ApiError, Subject},
    strategy::{Generation, StatusKeeps, WriteContext},
};

impl ApiServer {
    /// Built-in admission that runs before mutating webhooks.
    pub(super) fn admit_mutating(&mut self, write: &mut Write) -> Result<(), ApiError> {
        self.restrict_node(write)?;
        if write.operation == Operation::Create && write.definition.namespaced {
            self.admit_namespace(write)?;
        }
        if write.operation == Operation::Create && write.definition.is_terminating {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(subject(&write.definition, &write.target.name), why));
        }
        if write.operation == Operation::Create && write.effect == Effect::Store {
            write.definition.strategy.admit_create(&mut write.object);
        }
        self.admit_pod(write)
    }

    /// New objects need a namespace that exists and is not ending.
    fn admit_namespace(&self, write: &Write) -> Result<(), ApiError> {
        let namespace = write.target.namespace.as_str();
        let about = Subject { group: "", resource: "namespaces", name: namespace };
        let record = self
            .store
            .collection(self.collections.namespaces)
            .get(namespace)
            .ok_or_else(|| ApiError::not_found(about))?;
        let is_terminating = record.fields.first().is_some_and(|phase| phase.as_ref() == "Terminating");
        // Objects of subresources, such as bindings, are not new content.
        if is_terminating && write.target.subresource.is_empty() {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let mut error = ApiError::forbidden(subject(&write.definition, &write.target.name), &why);
            error.detail(
                "causes",
                json!([{
                    "reason": "NamespaceTerminating",
                    "message": format!("namespace {namespace} is being terminated"),
                    "field": "metadata.namespace",
                }]),
            );
            return Err(error);
        }
        Ok(())
    }

    /// Sets what only the server sets and checks the result.
    pub(super) fn prepare_object(&mut self, write: &mut Write) -> Result<(), ApiError> {
        let definition = write.definition.clone();
        let strategy = &definition.strategy;
        let mut errors = Errors::new();
        let is_extension = definition.custom || definition.group == crate::custom::GROUP;
        let finalizers_rule = if is_extension { FinalizerRule::Any } else { FinalizerRule::Qualified };
        if definition.custom && write.target.subresource.is_empty() {
            let old = write.old.as_ref().map(|(_, old)| old);
            write.warnings.extend(metadata::finalizer_warnings(&write.object, old));
        }
        let now = environment::time_text(self.environment.now());
        let random = match &write.old {
            None => self.environment.random(),
            // What changes an object needs no randomness of its own.
            Some((record, _)) => record.revision,
        };
        let around = WriteContext {
            store: &self.store,
            collection: definition.collection,
            random,
            now: &now,
            dry_run: write.dry_run,
            user: &write.request.user,
        };
        if write.target.subresource.is_empty() {
            let old = write.old.as_ref().map(|(_, old)| old);
            strategy.allocate(&mut write.object, old, &around, &mut errors)?;
            if !errors.is_empty() {
                return Err(ApiError::invalid(kind_subject(&definition, &write.target.name), &errors));
            }
        }
        match &write.old {
            None => {
                if strategy.has_status()
                    && let Some(object) = write.object.as_object_mut()
                {
                    let zero = definition.builtin_type().map(|node| TypeNode::zero(&node)["status"].clone());
                    match zero.filter(|status| !status.is_null()) {
                        Some(status) => object.insert("status".to_owned(), status),
                        None => object.remove("status"),
                    };
                }
                if strategy.generation() != Generation::Untracked {
                    metadata::of_mut(&mut write.object).insert("generation".to_owned(), json!(1));
                }
                strategy.prepare_create(&mut write.object, &around);
                let rule = strategy.name_rule();
                metadata::check_new(&write.object, definition.namespaced, rule, finalizers_rule, &mut errors);
                strategy.check_create(&write.object, &mut errors);
            }
            Some((_, old)) => {
                let subresource = write.target.subresource.as_str();
                if strategy.has_status() {
                    let keeps = strategy.writes_status(subresource).then(|| strategy.status_keeps());
                    keep_other_half(&mut write.object, old, keeps);
                }
                strategy.prepare_update(&mut write.object, old, subresource, &around);
                if moves_generation(strategy.generation(), &write.object, old)
                    || (subresource.is_empty() && strategy.metadata_moves_generation(&write.object, old))
                {
                    let generation = old["metadata"]["generation"].as_i64().unwrap_or_default().saturating_add(1);
                    metadata::of_mut(&mut write.object).insert("generation".to_owned(), json!(generation));
                }
                let (identity_checks, map_checks) = strategy.metadata_checks();
                let (mut of_identity, mut of_maps) = (Errors::new(), Errors::new());
                metadata::check_identity(&write.object, old, &mut of_identity);
                metadata::check_maps(&write.object, finalizers_rule, &mut of_maps);
                errors.extend_repeatedly(&of_identity, identity_checks);
                errors.extend_repeatedly(&of_maps, map_checks);
                for message in koord_schema::names::path_segment(metadata::text(&write.object, "name")) {
                    let at = koord_schema::field::Path::root("metadata");
                    errors.invalid(&at.child("name"), metadata::text(&write.object, "name"), message);
                }
                strategy.check_update(&write.object, old, subresource, &mut errors);
            }
        }
        if errors.is_empty() {
            if write.target.subresource.is_empty() && write.effect == Effect::Store {
                let old = write.old.as_ref().map(|(_, old)| old);
                write.warnings.extend(strategy.warnings(&write.object, old));
            }
            Ok(())
        } else {
            Err(ApiError::invalid(kind_subject(&definition, &write.target.name), &errors))
        }
    }
}

/// The main endpoint does not write status; the status endpoint writes nothing else, but for the metadata of some kinds.
fn keep_other_half(new: &mut Value, old: &Value, writes_status: Option<StatusKeeps>) {
    let Some(fields) = new.as_object_mut() else { return };
    let Some(keeps) = writes_status else {
        put(fields, "status", old.get("status"));
        return;
    };
    let written = fields.get("metadata").cloned().unwrap_or_default();
    let status = fields.remove("status");
    if let Some(old) = old.as_object() {
        fields.clone_from(old);
    }
    put(fields, "status", status.as_ref());
    let metadata = metadata::of_mut(new);
    match keeps {
        StatusKeeps::Metadata => {
            for field in ["managedFields", "resourceVersion"] {
                if let Some(value) = written.get(field) {
                    metadata.insert(field.to_owned(), value.clone());
                }
            }
        }
        StatusKeeps::Labels | StatusKeeps::Nothing => {
            if let Value::Object(written) = written {
                *metadata = written;
            }
            if keeps == StatusKeeps::Labels {
                put(metadata, "labels", old["metadata"].get("labels"));
            }
        }
    }
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    match value {
        Some(value) => fields.insert(name.to_owned(), value.clone()),
        None => fields.remove(name),
    };
}

fn moves_generation(rule: Generation, new: &Value, old: &Value) -> bool {
    let counts = |key: &str| match rule {
        Generation::Untracked | Generation::Never => false,
        Generation::Spec => !matches!(key, "metadata" | "status" | "apiVersion" | "kind"),
        Generation::All => !matches!(key, "metadata" | "apiVersion" | "kind"),
    };
    let differs = |one: &Value, two: &Value| {
        one.as_object().into_iter().flatten().any(|(key, value)| counts(key) && two.get(key) != Some(value))
    };
    differs(new, old) || differs(old, new)
}
