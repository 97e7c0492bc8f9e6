//! What a plugin implements and reads, in one place.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;

use super::{
    AllocationRestore, Audit, BeforePreFilter, Bind, Diagnostics, EnqueueExtensions, ExtenderCalls, FailureHandler,
    Filter, FindOneNode, MetricSource, NextPod, NumaHintProvider, NumaTopologyManager, Permit, Plugin, PluginState,
    PodActivation, PostFilter, PreBind, PreEnqueue, PreFilter, PreferNodes, ReservationFilter, ReservationRestore,
    Reserve, ReservePodSource, SchedulingHintSource, SchedulingSignature, Score, ServiceEndpoint, SignatureFields,
    StatusWriter, WorkloadSource,
};
use crate::event::Events;

/// Declares [`Registration`]: for each extension point a field that holds who implements it, and a method that registers for it.
macro_rules! registration {
    ($($point:ident: $trait:ident,)*) => {
        /// A plugin with the extension points that it implements. It is called at no others.
        #[derive(Clone)]
        pub struct Registration {
            name: &'static str,
            /// The kinds of objects beside nodes and pods that it reads.
            pub reads: &'static [ResourceKind],
            /// The only objects that it reads of a kind, by name; all of them where it names none.
            pub reads_only: Vec<(ResourceKind, String)>,
            /// Topology keys that it looks up whatever pods say.
            pub topology_keys: Vec<Arc<str>>,
            $(
                #[doc = concat!("Its [`", stringify!($trait), "`].")]
                pub $point: Option<Arc<dyn $trait>>,
            )*
        }

        impl Registration {
            /// A plugin that implements no extension point yet.
            pub fn of<P: Plugin>(plugin: &Arc<P>) -> Self {
                let name = plugin.name();
                let (reads, reads_only, topology_keys) = (&[][..], Vec::new(), Vec::new());
                Self { name, reads, reads_only, topology_keys, $($point: None,)* }
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
    pre_enqueue: PreEnqueue,
    next_pod: NextPod,
    enqueue_extensions: EnqueueExtensions,
    pod_activation: PodActivation,
    reservation_restore: ReservationRestore,
    before_pre_filter: BeforePreFilter,
    pre_filter: PreFilter,
    find_one_node: FindOneNode,
    prefer_nodes: PreferNodes,
    filter: Filter,
    extender_calls: ExtenderCalls,
    score: Score,
    numa_topology_manager: NumaTopologyManager,
    numa_hint_provider: NumaHintProvider,
    reservation_filter: ReservationFilter,
    scheduling_hint: SchedulingHintSource,
    post_filter: PostFilter,
    failure_handler: FailureHandler,
    reserve: Reserve,
    permit: Permit,
    pre_bind: PreBind,
    bind: Bind,
    allocation_restore: AllocationRestore,
    reserve_pod: ReservePodSource,
    state: PluginState,
    status_writer: StatusWriter,
    diagnostics: Diagnostics,
    service_endpoint: ServiceEndpoint,
    metrics: MetricSource,
    workload: WorkloadSource,
    audit: Audit,
    scheduling_signature: SchedulingSignature,
}

impl Registration {
    /// What implements an extension point, in the order of plugins.
    pub(super) fn each<'p, P: ?Sized + 'p>(
        plugins: &'p [Self],
        point: impl Fn(&'p Self) -> &'p Option<Arc<P>>,
    ) -> impl Iterator<Item = &'p P> {
        plugins.iter().filter_map(move |plugin| point(plugin).as_deref())
    }

    /// The name of the plugin.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kinds of events after which pods that it refused may fit.
    pub fn events(&self) -> Events {
        self.enqueue_extensions.as_ref().map_or(Events::ALL, |point| point.events_to_register())
    }

    /// What of a pod, beside what it requests, the answers of the plugin depend on.
    pub(crate) fn signature(&self) -> SignatureFields {
        self.scheduling_signature.as_ref().map_or(SignatureFields::All, |point| point.signature())
    }

    /// Has pods that the plugin refused tried again after each event of these kinds. [`EnqueueExtensions`] may look closer.
    #[must_use]
    pub fn retried_after(self, events: Events) -> Self {
        self.enqueue_extensions(&Arc::new(events))
    }

    /// Reads all objects of these kinds.
    #[must_use]
    pub fn reads(mut self, kinds: &'static [ResourceKind]) -> Self {
        self.reads = kinds;
        self
    }

    /// Reads these objects alone of their kinds.
    #[must_use]
    pub fn reads_only(mut self, objects: Vec<(ResourceKind, String)>) -> Self {
        self.reads_only = objects;
        self
    }

    /// Looks up these topology keys whatever pods say.
    #[must_use]
    pub fn topology_keys(mut self, keys: Vec<Arc<str>>) -> Self {
        self.topology_keys = keys;
        self
    }
}
