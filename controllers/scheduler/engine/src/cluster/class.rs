//! What pods of one template have in common, in the numbers of the columns.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::intern::{Sweep, is_held};
use koord_scheduling::{ResourceId, ResourceNames, ResourceVector};

use crate::pod::Template;

/// A template with its requests as a vector.
#[derive(Debug)]
pub struct Class {
    template: Arc<Template>,
    requests: ResourceVector,
}

/// Identifies a class while one of its pods exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassId(usize);

impl Class {
    /// The template.
    pub fn template(&self) -> &Arc<Template> {
        &self.template
    }

    /// What a pod requests, with one of [`ResourceId::PODS`].
    pub fn requests(&self) -> &ResourceVector {
        &self.requests
    }

    /// Which class it is.
    pub fn id(&self) -> ClassId {
        ClassId::of(&self.template)
    }
}

impl ClassId {
    fn of(template: &Arc<Template>) -> Self {
        Self(Arc::as_ptr(template).addr())
    }
}

/// The classes that are in use. Their order is that of addresses, so nothing may depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    known: BTreeMap<ClassId, Arc<Class>>,
    sweep: Sweep,
}

impl Classes {
    pub(super) fn get(&self, template: &Arc<Template>) -> Option<Arc<Class>> {
        // A class holds its template, so that no other can have this address.
        self.known.get(&ClassId::of(template)).cloned()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Class>> {
        self.known.values()
    }

    pub(super) fn of(&mut self, template: &Arc<Template>, resources: &mut ResourceNames) -> Arc<Class> {
        if let Some(class) = self.get(template) {
            return class;
        }
        self.sweep.run(&mut self.known, BTreeMap::len, |known| known.retain(|_, class| is_held(class)));
        let mut requests = resources.vector(&template.requests);
        requests.set(ResourceId::PODS, 1);
        let class = Arc::new(Class { template: Arc::clone(template), requests });
        self.known.insert(class.id(), Arc::clone(&class));
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_nobody_uses_are_dropped_in_time() {
        let (mut classes, mut resources) = (Classes::default(), ResourceNames::default());
        let template = Arc::new(Template::default());
        let kept = classes.of(&template, &mut resources);
        for _ in 0..5 * 1024 {
            classes.of(&Arc::new(Template::default()), &mut resources);
        }
        assert!(classes.known.len() <= 2 * 1024, "{}", classes.known.len());
        assert!(Arc::ptr_eq(&kept, &classes.of(&template, &mut resources)));
    }
}
