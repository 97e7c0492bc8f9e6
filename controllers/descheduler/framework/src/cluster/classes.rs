//! Equivalence classes of pods.

use std::{collections::BTreeMap, sync::Arc};

use koord_scheduling::{ResourceNames, ResourceVector};

use crate::pod::{OwnerReference, Pod, Template};

/// The number of a class of pods: those that share a template and owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassId(u32);

/// All classes.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    slots: Vec<Option<Class>>,
    free: Vec<ClassId>,
    /// By the addresses of their template and owners, which they hold.
    ids: BTreeMap<Addresses, ClassId>,
}

type Addresses = (usize, usize);

#[derive(Clone, Debug)]
struct Class {
    template: Arc<Template>,
    owners: Arc<[OwnerReference]>,
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

    /// How many pods a class has.
    pub(super) fn size(&self, class: usize) -> usize {
        self.slots.get(class).and_then(Option::as_ref).map_or(0, |class| class.pods)
    }

    /// The class of a pod, which is one pod larger now.
    pub(super) fn enter(&mut self, pod: &Pod, resources: &mut ResourceNames) -> ClassId {
        let Pod { template, owners, .. } = pod;
        let addresses = addresses(template, owners);
        if let Some(id) = self.ids.get(&addresses) {
            if let Some(Some(class)) = self.slots.get_mut(id.0 as usize) {
                class.pods += 1;
            }
            return *id;
        }
        let requests = resources.vector(&template.placement.requests);
        let (template, owners) = (Arc::clone(template), Arc::clone(owners));
        let class = Some(Class { template, owners, requests, pods: 1 });
        let id = if let Some(id) = self.free.pop() {
            self.slots[id.0 as usize] = class;
            id
        } else {
            self.slots.push(class);
            ClassId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        };
        self.ids.insert(addresses, id);
        id
    }

    /// A pod of a class is gone.
    pub(super) fn leave(&mut self, id: ClassId) {
        let Some(slot) = self.slots.get_mut(id.0 as usize) else { return };
        let Some(class) = slot else { return };
        class.pods -= 1;
        if class.pods == 0 {
            self.ids.remove(&addresses(&class.template, &class.owners));
            *slot = None;
            self.free.push(id);
        }
    }

    /// The templates of all classes. Classes whose owners differ may share one.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Arc<Template>> {
        self.slots.iter().flatten().map(|class| &class.template)
    }

    /// What each pod of a class requests.
    pub(super) fn requests(&self, id: ClassId) -> Option<&ResourceVector> {
        self.slots.get(id.0 as usize)?.as_ref().map(|class| &class.requests)
    }
}

fn addresses(template: &Arc<Template>, owners: &Arc<[OwnerReference]>) -> Addresses {
    (Arc::as_ptr(template).addr(), Arc::as_ptr(owners).addr())
}
