//! Deletecollection: the selected objects one after the other, each through admission.

use std::{collections::VecDeque, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    ApiResponse, ApiServer, Outcome,
    admit::Admission,
    convert,
    delete::{self, Deletion},
    list,
    write::Write,
};
use crate::{
    filter::Filter,
    negotiate::{self, Format},
    options::{DeleteOptions, ListOptions},
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
    store::Record,
};

/// The rest of a deletecollection.
#[derive(Clone, Debug)]
pub(super) struct CollectionDeletion {
    request: ApiRequest,
    target: Target,
    definition: Arc<ResourceDef>,
    options: DeleteOptions,
    format: Format,
    /// Names of the objects that are still to be deleted.
    pending: VecDeque<String>,
    /// Where the list of objects goes on, when a limit cut it.
    metadata: Map<String, Value>,
    /// Objects that are deleted, as they were before.
    deleted: Vec<Arc<Record>>,
    warnings: Vec<String>,
}

impl CollectionDeletion {
    fn warn(&mut self, warnings: &[String]) {
        for warning in warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
    }

    /// The list of the deleted objects.
    fn response(self, revision: u64) -> ApiResponse {
        let Self { definition, format, mut metadata, deleted, warnings, .. } = self;
        metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        if definition.custom {
            metadata.entry("continue").or_insert_with(|| json!(""));
        }
        let text = list::list_bytes(&definition, &deleted, &Value::Object(metadata));
        let response = match format {
            Format::Json => ApiResponse::json(200, text),
            Format::Yaml => ApiResponse::value(200, &serde_json::from_slice(&text).unwrap_or_default(), format),
        };
        ApiResponse { warnings, ..response }
    }
}

impl ApiServer {
    pub(super) fn delete_collection(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let list = ListOptions::read(request)?;
        let options = DeleteOptions::read(request)?;
        let filter = Filter::new(&definition, &target, &list)?;
        let format = negotiate::representation(&request.accept)?.format;
        let page = self.page(&definition, &filter, &definition.key_prefix(&target.namespace), &list)?;
        if let Some(conversion) = convert::of_records(request, &definition, &page.records) {
            return Ok(conversion);
        }
        let pending = page.keys.iter().map(|key| key.rsplit('/').next().unwrap_or_default().to_owned()).collect();
        let mut metadata = Map::new();
        page.add_next(&mut metadata);
        let warnings = delete::warning(&definition, &options).map(ToOwned::to_owned).into_iter().collect();
        let request = request.clone();
        let deleted = Vec::new();
        self.delete_rest(Box::new(CollectionDeletion {
            request,
            target,
            definition,
            options,
            format,
            pending,
            metadata,
            deleted,
            warnings,
        }))
    }

    /// Goes on with a deletecollection, of which `write` has passed admission.
    pub(super) fn delete_item_and_rest(
        &mut self,
        write: &Write,
        mut rest: Box<CollectionDeletion>,
    ) -> Result<Outcome, ApiError> {
        match self.delete_item(write, &mut rest)? {
            Some(restarted) => Ok(restarted),
            None => self.delete_rest(rest),
        }
    }

    /// Deletes one object after the other, until one waits for webhooks or none is left.
    fn delete_rest(&mut self, mut rest: Box<CollectionDeletion>) -> Result<Outcome, ApiError> {
        while let Some(name) = rest.pending.pop_front() {
            let target = Target { name, ..rest.target.clone() };
            let definition = Arc::clone(&rest.definition);
            let Ok(write) = self.delete_write(&rest.request, target, definition, rest.options.clone()) else {
                // It was deleted while webhooks were asked about another.
                continue;
            };
            let admission = self.admit(write).map_err(|error| error.after_warnings(rest.warnings.clone()))?;
            match admission {
                Admission::Passed(write) => {
                    if let Some(restarted) = self.delete_item(&write, &mut rest)? {
                        return Ok(restarted);
                    }
                }
                waiting @ Admission::Asks(..) => return self.carry_out(waiting, Some(rest)),
            }
        }
        Ok(Outcome::Done(rest.response(self.store.revision())))
    }

    /// Deletes one object of a collection; the outcome of the whole request where it starts anew.
    fn delete_item(&mut self, write: &Write, rest: &mut CollectionDeletion) -> Result<Option<Outcome>, ApiError> {
        rest.warn(&write.warnings);
        match self.delete_stored(write, &rest.options) {
            Ok(Deletion::Done { before, .. }) => {
                rest.deleted.push(before);
                Ok(None)
            }
            Ok(Deletion::Unconverted) => Ok(Some(self.handle(&rest.request))),
            Err(error) if error.code() == 404 => Ok(None),
            Err(error) => Err(error.after_warnings(rest.warnings.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::{
        environment::SeededEnvironment,
        kinds,
        server::{Admitted, Phase},
        store::HistoryLimits,
    };

    const MANY: usize = 50_000;
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";

    fn core() -> ApiServer {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        core
    }

    /// Puts ConfigMaps into namespace `default`; every second one has a finalizer.
    fn put_maps(core: &mut ApiServer, count: usize) {
        let definition = maps(core);
        for number in 0..count {
            let name = format!("m{number:05}");
            let mut object = json!({"metadata": {"name": name, "namespace": "default", "uid": name}});
            if number % 2 == 1 {
                object["metadata"]["finalizers"] = json!(["a.b/c"]);
            }
            core.put_object(&definition, &format!("default/{name}"), &mut object);
        }
        core.follow_changes();
    }

    fn maps(core: &ApiServer) -> Arc<ResourceDef> {
        Arc::clone(core.registry.get("", "v1", "configmaps").unwrap())
    }

    fn delete_all(core: &mut ApiServer) -> Outcome {
        core.handle(&ApiRequest::new(Method::DELETE, MAPS, ""))
    }

    fn configure_webhooks(core: &mut ApiServer) {
        for kind in ["mutating", "validating"] {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            let body = json!({"metadata": {"name": "w"}});
            let outcome = core.handle(&ApiRequest::new(Method::POST, &path, body.to_string()));
            assert_eq!(admitted(core, outcome, &mut Vec::new()).code, 201);
        }
    }

    /// Lets webhooks admit everything, with a warning.
    fn admitted(core: &mut ApiServer, mut outcome: Outcome, asked: &mut Vec<Phase>) -> ApiResponse {
        loop {
            match outcome {
                Outcome::Done(response) => return response,
                Outcome::Review(review) => {
                    asked.push(review.phase());
                    let warnings = vec!["seen".to_owned()];
                    outcome = core.resume(*review, Ok(Admitted { object: None, warnings }));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Every object is in the answer; those with a finalizer stay, and are marked.
    fn check(core: &ApiServer, response: &ApiResponse) {
        assert_eq!(response.code, 200);
        let list: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), MANY);
        let definition = maps(core);
        assert_eq!(core.store.collection(definition.collection).len(), MANY / 2);
        assert!(crate::metadata::is_deleting(&core.object(&definition, "default", "m49999").unwrap()));
    }

    #[test]
    fn one_request_deletes_fifty_thousand_objects() {
        let mut core = core();
        put_maps(&mut core, MANY);
        let Outcome::Done(response) = delete_all(&mut core) else { panic!("no webhook is configured") };
        check(&core, &response);
    }

    #[test]
    fn webhooks_are_asked_about_each_of_fifty_thousand_objects() {
        let mut core = core();
        put_maps(&mut core, MANY);
        configure_webhooks(&mut core);
        let mut asked = Vec::new();
        let outcome = delete_all(&mut core);
        let response = admitted(&mut core, outcome, &mut asked);
        check(&core, &response);
        assert_eq!(response.warnings, ["seen"]);
        let mutating = asked.iter().filter(|phase| **phase == Phase::Mutating).count();
        assert_eq!((mutating, asked.len()), (MANY, 2 * MANY));
    }

    #[test]
    fn an_object_that_was_deleted_while_webhooks_were_asked_is_passed_over() {
        let mut core = core();
        put_maps(&mut core, 5);
        configure_webhooks(&mut core);
        let outcome = delete_all(&mut core);
        let definition = maps(&core);
        for name in ["m00000", "m00002"] {
            let last = core.object(&definition, "default", name).unwrap();
            core.remove_object(&definition, &format!("default/{name}"), last);
        }
        let response = admitted(&mut core, outcome, &mut Vec::new());
        let list: Value = serde_json::from_slice(&response.body).unwrap();
        let names: Vec<&str> =
            list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["m00001", "m00003", "m00004"]);
    }
}
