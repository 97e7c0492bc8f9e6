//! Templates of pods. One serves all pods of a workload, and is made of the first of them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use koord_api::pod_annotations::REPLACE_RESOURCES;
use koord_engine::pod::{Controller, Template};
use koord_runtime::{intern::Interner, projection::DecodeError};
use serde_json::value::RawValue;

use super::{
    labels,
    wire::{Container, Spec, Status},
};
use crate::{
    resize,
    transform::{self, Transformers},
};

/// All that the template of a pod is made of, as it stands in the text.
pub(super) struct MadeOf<'a> {
    pub(super) namespace: &'a str,
    pub(super) controller: Option<Controller>,
    pub(super) labels: Option<&'a RawValue>,
    pub(super) annotations: Vec<(&'a str, &'a str)>,
    pub(super) spec: &'a Spec<'a>,
}

/// The text by which the template of equal pods is found.
#[derive(PartialEq, Eq, Hash)]
struct Key(Box<str>);

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl MadeOf<'_> {
    /// The template, with what the containers have where they are being resized.
    pub(super) fn template(
        &self,
        status: &Status<'_>,
        strings: &mut Interner,
        transformers: Transformers,
    ) -> Result<Arc<Template>, DecodeError> {
        let resized = self.resized(status)?;
        let key = self.key(resized.as_ref())?;
        let known = strings.kept::<Key, Template>().find(key.as_str());
        if let Some(known) = known {
            return Ok(Arc::clone(known));
        }
        let template = self.make(resized, strings, transformers)?;
        Ok(strings.kept().keep(Key(key.into()), template))
    }

    /// Only what is in the key is in the template: the spec is read from the same words.
    fn key(&self, resized: Option<&PodSpec>) -> Result<String, DecodeError> {
        let controller = self.controller.as_ref().map(|Controller { kind, name }| (*kind as u8, &**name));
        let resized: Vec<_> = resized.iter().flat_map(|spec| containers(spec)).map(|one| &one.resources).collect();
        let parts = (self.namespace, controller, self.labels, &self.annotations, self.spec, resized);
        // Long enough for most, so that it is not moved while it grows.
        let mut text = Vec::with_capacity(2048);
        serde_json::to_writer(&mut text, &parts).map_err(|error| DecodeError::new("spec", error))?;
        String::from_utf8(text).map_err(|error| DecodeError::new("spec", error))
    }

    fn make(
        &self,
        mut resized: Option<PodSpec>,
        strings: &mut Interner,
        transformers: Transformers,
    ) -> Result<Template, DecodeError> {
        let labels = labels(self.labels, strings)?;
        let annotations = self.annotations.iter().copied().collect();
        let mut spec = self.spec()?;
        for spec in [&mut spec].into_iter().chain(&mut resized) {
            transform::pod(spec, &labels);
            let replacements = self.annotations.iter().find(|(key, _)| *key == REPLACE_RESOURCES.name());
            transformers.replace_resources(spec, replacements.map(|(_, text)| *text));
        }
        let template = Template::of(self.namespace, labels, &annotations, &spec)
            .and_then(|template| match &resized {
                Some(resized) => template.resized(resized),
                None => Ok(template),
            })
            .map_err(|error| DecodeError::new("spec.containers.resources", error))?;
        let mut template = Template { controller: self.controller.clone(), ..template };
        transformers.apply_to(&mut template, spec.priority);
        Ok(template)
    }

    fn spec(&self) -> Result<PodSpec, DecodeError> {
        let spec = serde_json::to_string(self.spec).and_then(|text| serde_json::from_str(&text));
        spec.map_err(|error| DecodeError::new("spec", error))
    }

    /// The pod as it counts while its containers are resized; none where it counts as it is.
    fn resized(&self, status: &Status<'_>) -> Result<Option<PodSpec>, DecodeError> {
        let statuses = || status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        let has_all = |container: &Container<'_>| {
            let requests = container.resources.as_ref().and_then(|resources| resources.requests);
            statuses().find(|status| status.name == container.name).is_none_or(|status| status.has(requests))
        };
        if self.spec.containers.iter().chain(&self.spec.init_containers).flatten().all(has_all) {
            return Ok(None);
        }
        let is_infeasible = status.reason("PodResizePending").or(status.resize.as_deref()) == Some("Infeasible");
        let resized = resize::resized(&self.spec()?, statuses(), is_infeasible);
        resized.map_err(|error| DecodeError::new("status.containerStatuses", error))
    }
}

fn containers(spec: &PodSpec) -> impl Iterator<Item = &k8s_openapi::api::core::v1::Container> {
    spec.containers.iter().chain(spec.init_containers.iter().flatten())
}
