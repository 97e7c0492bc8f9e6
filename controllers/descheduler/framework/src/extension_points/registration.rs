//! What a plugin implements and reads, in one place.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;

use super::{Balance, Deschedule, Plugin};
use crate::{
    evictor::{Evict, Filter, PreEvictionFilter},
    usage::Measured,
};

/// Declares [`Registration`]: for each extension point a field that holds who implements it, and a method that registers for it.
macro_rules! registration {
    ($($point:ident: $trait:ident,)*) => {
        /// A plugin with the extension points that it implements. It is called at no others.
        #[derive(Clone)]
        pub struct Registration {
            pub name: &'static str,
            /// The kinds of objects beside nodes and pods that it reads.
            pub reads: &'static [ResourceKind],
            $(
                #[doc = concat!("Its [`", stringify!($trait), "`].")]
                pub $point: Option<Arc<dyn $trait>>,
            )*
        }

        impl Registration {
            /// A plugin that implements no extension point yet.
            pub fn of<P: Plugin>(plugin: &Arc<P>) -> Self {
                Self { name: plugin.name(), reads: &[], $($point: None,)* }
            }

            $(
                #[doc = concat!("Registers for [`", stringify!($trait), "`].")]
                #[must_use]
                pub fn $point<P: $trait>(mut self, plugin: &Arc<P>) -> Self {
                    self.$point = Some(Arc::clone(plugin) as _);
                    self
                }
            )*
        }
    };
}

registration! {
    deschedule: Deschedule,
    balance: Balance,
    filter: Filter,
    pre_eviction_filter: PreEvictionFilter,
    evict: Evict,
    measured: Measured,
}

impl Registration {
    /// The same for a plugin that reads these kinds beside nodes and pods.
    #[must_use]
    pub fn reading(mut self, kinds: &'static [ResourceKind]) -> Self {
        self.reads = kinds;
        self
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("name", &self.name).finish_non_exhaustive()
    }
}
