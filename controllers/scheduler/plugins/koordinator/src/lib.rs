//! The plugins of Koordinator.
//!
//! Each says what it refuses, how it compares nodes, and what it says about both (`spec/scheduler.md` 3). They see the snapshot: they know no
//! objects of the API server, no tasks, and not each other; what several of them need is in [`koord_scheduler_allocation`], and where one
//! depends on another they meet at extension points of [`koord_scheduler_framework`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod coscheduling;
pub mod device_share;
pub mod elastic_quota;
pub mod load_aware;
mod node_resources_fit_plus;
mod numa;
pub mod reservation;
mod scarce_resource_avoidance;
mod scheduling_hint;

pub use coscheduling::Coscheduling;
pub use device_share::DeviceShare;
pub use node_resources_fit_plus::NodeResourcesFitPlus;
pub use numa::NodeNumaResource;
pub use reservation::Reservation;
pub use scarce_resource_avoidance::ScarceResourceAvoidance;
pub use scheduling_hint::SchedulingHint;
