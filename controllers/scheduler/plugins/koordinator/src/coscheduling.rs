//! Coscheduling: the pods of a gang are placed together or not at all (`spec/scheduler.md` 3E).
//!
//! [`Gangs`] knows which pods belong together and which of them may be tried. A gang that needs more pods than it has is
//! tried as a whole, in a [`Round`]: its members are tried one after the other and no other pod in between, and what was
//! placed is bound only when every gang of the group has enough. Otherwise it is all withdrawn before the next pod is tried,
//! and no pod is tried because of that. So gangs cannot hold what another one needs to be complete.
//!
//! Where its members go is decided at once, for the first of them, if the gang requires a network topology
//! ([`Tree::place`]); and so is who is evicted for all of them.

mod arrangement;
mod context;
mod declaration;
mod gangs;
mod group;
mod network;
mod plugin;
mod pod_group;
mod preemption;
mod round;
mod status_updates;
mod statuses;
mod topology;

pub use declaration::{Declaration, Defaults, MatchPolicy, gang_of_pod};
pub use gangs::{Gangs, Member, NotYet};
pub use group::GangGroup;
pub use plugin::Coscheduling;
pub use pod_group::{Counts, is_abandoned, status};
pub use round::{Outcome, Round, bind_annotations};
pub use topology::{Offer, Requirements, Tree, Unplaceable};
