//! Watching what the handlers that are served need, and nothing else.

use std::sync::Arc;

use koord_runtime::{
    Core,
    projection::Projection,
    reflector::Selection,
    store::{Sink, Store},
};

/// Caches that are waited for.
pub(crate) struct Follow<'c> {
    core: &'c mut Core,
    pub(crate) awaited: Vec<Arc<dyn Sink>>,
}

impl<'c> Follow<'c> {
    pub(crate) fn new(core: &'c mut Core) -> Self {
        Self { core, awaited: Vec::new() }
    }

    /// The cache of a kind; one that stays empty, and is not watched, where nobody needs it.
    pub(crate) fn when<P: Projection>(&mut self, needed: bool, selection: &Selection) -> Arc<Store<P>> {
        if !needed {
            return Arc::default();
        }
        let store = self.core.store::<P>(selection);
        self.awaited.push(Arc::clone(&store) as _);
        store
    }
}
