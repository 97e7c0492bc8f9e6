//! What pods of one template have in common, in the numbers of the columns.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use koord_core::intern::Sweep;
use koord_scheduling::{ResourceId, ResourceNames, ResourceVector};

use super::unoffered::{Unoffered, UnofferedSets};
use crate::pod::Template;

/// A template with its requests as a vector.
#[derive(Debug)]
pub struct Class {
    template: Arc<Template>,
    requests: ResourceVector,
    unoffered: Option<Arc<Unoffered>>,
}

/// Identifies a class while one of its pods exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassId(usize);

/// Keeps the id of a class from becoming another's, and nothing of what the class is made of: what is kept by class must not keep what
/// users have written.
#[derive(Clone, Debug)]
pub struct ReservedId(Weak<Template>);

impl Class {
    pub fn template(&self) -> &Arc<Template> {
        &self.template
    }

    /// What a pod requests of resources that some node offers, with one of [`ResourceId::PODS`].
    pub fn requests(&self) -> &ResourceVector {
        &self.requests
    }

    /// What a pod requests beside that, and no node offers; none where there is nothing.
    pub fn unoffered(&self) -> Option<&Arc<Unoffered>> {
        self.unoffered.as_ref()
    }

    /// Which class it is.
    pub fn id(&self) -> ClassId {
        ClassId::of(&self.template)
    }

    /// Reserves its id, for who keeps something by it.
    pub fn reserve_id(&self) -> ReservedId {
        ReservedId(Arc::downgrade(&self.template))
    }
}

impl ClassId {
    fn of(template: &Arc<Template>) -> Self {
        Self(Arc::as_ptr(template).addr())
    }
}

impl ReservedId {
    /// Whether pods of the class may still come: its template is still referenced.
    pub fn is_used(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// The classes that are in use: a class is gone with the last one who holds it. Their order is that of addresses, so nothing may depend
/// on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    known: BTreeMap<ClassId, Weak<Class>>,
    sweep: Sweep,
    unoffered: UnofferedSets,
}

impl Classes {
    pub(super) fn get(&self, template: &Arc<Template>) -> Option<Arc<Class>> {
        // A class holds its template, so that no other can have this address while it is there.
        self.known.get(&ClassId::of(template)).and_then(Weak::upgrade)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Arc<Class>> {
        self.known.values().filter_map(Weak::upgrade)
    }

    pub(super) fn unoffered(&self) -> &UnofferedSets {
        &self.unoffered
    }

    pub(super) fn of(&mut self, template: &Arc<Template>, resources: &ResourceNames) -> Arc<Class> {
        if let Some(class) = self.get(template) {
            return class;
        }
        let is_used = |class: &Weak<Class>| class.strong_count() > 0;
        self.sweep.run(&mut self.known, BTreeMap::len, |known| known.retain(|_, class| is_used(class)));
        self.add(template, resources)
    }

    /// Numbers the requests of these classes again.
    pub(super) fn number(
        &mut self,
        is_meant: impl Fn(&Class) -> bool,
        resources: &ResourceNames,
    ) -> BTreeMap<ClassId, Arc<Class>> {
        let old: Vec<Arc<Class>> = self.iter().filter(|class| is_meant(class)).collect();
        old.iter().map(|class| (class.id(), self.add(&class.template, resources))).collect()
    }

    fn add(&mut self, template: &Arc<Template>, resources: &ResourceNames) -> Arc<Class> {
        let mut requests = resources.known(&template.requests);
        requests.set(ResourceId::PODS, 1);
        let unoffered = self.unoffered.of(&template.requests, resources);
        let class = Arc::new(Class { template: Arc::clone(template), requests, unoffered });
        self.known.insert(class.id(), Arc::downgrade(&class));
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_classes_are_dropped_with_their_templates() {
        let (mut classes, resources) = (Classes::default(), ResourceNames::default());
        let template = Arc::new(Template::default());
        let kept = classes.of(&template, &resources);
        let (mut gone, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..5 * 1024 {
            let template = Arc::new(Template::default());
            ids.push(classes.of(&template, &resources).reserve_id());
            gone.push(Arc::downgrade(&template));
        }
        assert!(gone.iter().all(|template| template.strong_count() == 0), "whoever reserves an id keeps no template");
        assert!(ids.iter().all(|id| !id.is_used()) && kept.reserve_id().is_used());
        assert!(classes.known.len() <= 2 * 1024, "{}", classes.known.len());
        assert!(Arc::ptr_eq(&kept, &classes.of(&template, &resources)));
    }
}
