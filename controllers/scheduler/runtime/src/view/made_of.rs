//! Templates of pods. One serves all pods of a workload, and is made of the first of them.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use k8s_openapi::api::core::v1::PodSpec;
use koord_runtime::{
    intern::{Interner, Kept, Shares},
    projection::DecodeError,
};
use koord_scheduler_framework::pod::{Controller, Template};
use koord_types::pod_annotations::REPLACE_RESOURCES;
use serde::Serialize;
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

/// Templates by 128 bits of what they are made of, with secret keys: that two texts have the same is not to be expected of any
/// cluster, and cannot be brought about. The texts would take more memory than the templates.
#[derive(Default)]
struct Templates {
    known: Kept<[u64; 2], Template>,
    keys: [RandomState; 2],
    /// What the last pod was made of, and its key: in a list, pods of a workload follow each other.
    last: (Vec<u8>, [u64; 2]),
    /// Where the text of the next one is made.
    text: Vec<u8>,
}

impl Shares for Templates {
    fn sweep(&mut self) {
        self.known.sweep();
    }

    fn len(&self) -> usize {
        self.known.len()
    }
}

impl Templates {
    /// The memory of a longer text is given back when the next one comes.
    const TEXT_MAX: usize = 1 << 16;

    fn key(&mut self, made_of: &impl Serialize) -> Result<[u64; 2], serde_json::Error> {
        self.text.clear();
        self.text.shrink_to(Self::TEXT_MAX);
        serde_json::to_writer(&mut self.text, made_of)?;
        let (last, key) = &mut self.last;
        if *last != self.text {
            *key = self.keys.each_ref().map(|state| state.hash_one(&*self.text));
            std::mem::swap(last, &mut self.text);
        }
        Ok(*key)
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
        let templates = strings.own::<Templates>();
        let key = templates.key(&self.read(resized.as_ref())).map_err(|error| DecodeError::new("spec", error))?;
        if let Some(known) = templates.known.find(&key) {
            return Ok(Arc::clone(known));
        }
        let template = self.make(resized, strings, transformers)?;
        Ok(strings.own::<Templates>().known.keep(key, template))
    }

    /// All that is read to make the template.
    fn read(&self, resized: Option<&PodSpec>) -> impl Serialize {
        let controller = self.controller.as_ref().map(|Controller { kind, name }| (*kind as u8, &**name));
        let resized: Vec<_> = resized.into_iter().flat_map(containers).map(|one| one.resources.clone()).collect();
        (self.namespace, controller, self.labels, &self.annotations, self.spec, resized)
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
        let is_infeasible = status.reason_of("PodResizePending").or(status.resize.as_deref()) == Some("Infeasible");
        let resized = resize::resized(&self.spec()?, statuses(), is_infeasible);
        resized.map_err(|error| DecodeError::new("status.containerStatuses", error))
    }
}

fn containers(spec: &PodSpec) -> impl Iterator<Item = &k8s_openapi::api::core::v1::Container> {
    spec.containers.iter().chain(spec.init_containers.iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_that_of_the_text_whichever_came_before() {
        let mut templates = Templates::default();
        let long = "b".repeat(2 * Templates::TEXT_MAX);
        let keys = ["a", "a", &*long, "a", &*long, &*long].map(|text| templates.key(&text).unwrap());
        assert_eq!([keys[1], keys[3]], [keys[0]; 2]);
        assert_eq!([keys[4], keys[5]], [keys[2]; 2]);
        assert_ne!(keys[0], keys[2]);
        templates.key(&"a").unwrap();
        templates.key(&"b").unwrap();
        let kept = [&templates.text, &templates.last.0].map(Vec::capacity);
        assert!(kept.iter().all(|kept| *kept <= Templates::TEXT_MAX), "{kept:?}");
    }
}
