//! Collectors: each reads its files, keeps what it needs of the sample before, and appends to the [`Store`](crate::Store).
//!
//! Descriptors stay open and texts are parsed in place: a round of samples of the same pods allocates no memory. A file of a pod that is not there is normal,
//! for pods come and go; what else cannot be read or understood makes the collector [degraded](Activity::Degraded) while it lasts, and harms that file's
//! samples alone. A counter that goes backwards belongs to a cgroup that was made anew: its sample is left out, and the next one counts from there.

mod all;
mod best_effort;
mod cold_pages;
mod cycles;
mod host_application;
mod kept_pods;
mod node_resource;
mod pod_resource;
mod pressure;
mod reader;
mod resctrl;
mod system;
#[cfg(test)]
pub(crate) mod tree;

pub use all::{CollectorSettings, Collectors};
pub use best_effort::BestEffortCollector;
pub use cold_pages::ColdPageCollector;
pub use cycles::{COUNTERS_MAX, CounterGroup, CounterReading, CpuCounters, CyclesCollector};
pub use host_application::HostApplicationCollector;
pub use node_resource::{NodeCollector, NodeUsage, NumaUsage};
pub use pod_resource::{ContainerSampling, PodCollector, PodsUsage};
pub use pressure::{PressureCollector, PressureReading};
pub use reader::{Activity, Time};
pub use resctrl::{ResctrlCollector, ResctrlReading};
pub use system::SystemCollector;
