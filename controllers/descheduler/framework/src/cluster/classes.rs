//! What pods of one template request, as vectors.

use std::{collections::BTreeMap, sync::Arc};

use koord_scheduling::{ResourceNames, ResourceVector};

use crate::pod::Template;

/// The number of a class of pods: those that share a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassId(u32);

/// All classes.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    slots: Vec<Option<Class>>,
    free: Vec<ClassId>,
    /// By the address of their template, which they hold.
    ids: BTreeMap<usize, ClassId>,
}

#[derive(Clone, Debug)]
struct Class {
    template: Arc<Template>,
    requests: ResourceVector,
    pods: usize,
}

impl ClassId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Classes {
    /// The bound that is greater than the number of every class.
    pub(super) fn max(&self) -> usize {
        self.slots.len()
    }

    /// The class of a pod with this template, which is one pod larger now.
    pub(super) fn enter(&mut self, template: &Arc<Template>, resources: &mut ResourceNames) -> ClassId {
        let address = Arc::as_ptr(template).addr();
        if let Some(id) = self.ids.get(&address) {
            if let Some(Some(class)) = self.slots.get_mut(id.0 as usize) {
                class.pods += 1;
            }
            return *id;
        }
        let requests = resources.vector(&template.placement.requests);
        let class = Some(Class { template: Arc::clone(template), requests, pods: 1 });
        let id = if let Some(id) = self.free.pop() {
            self.slots[id.0 as usize] = class;
            id
        } else {
            self.slots.push(class);
            ClassId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        };
        self.ids.insert(address, id);
        id
    }

    /// A pod of a class is gone.
    pub(super) fn leave(&mut self, id: ClassId) {
        let Some(slot) = self.slots.get_mut(id.0 as usize) else { return };
        let Some(class) = slot else { return };
        class.pods -= 1;
        if class.pods == 0 {
            self.ids.remove(&Arc::as_ptr(&class.template).addr());
            *slot = None;
            self.free.push(id);
        }
    }

    /// The templates of all classes.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Arc<Template>> {
        self.slots.iter().flatten().map(|class| &class.template)
    }

    /// What each pod of a class requests.
    pub(super) fn requests(&self, id: ClassId) -> Option<&ResourceVector> {
        self.slots.get(id.0 as usize)?.as_ref().map(|class| &class.requests)
    }
}
