//! Coscheduling: the pods of a gang are placed together or not at all (`spec/scheduler.md` 3E).
//!
//! [`Gangs`] knows which pods belong together and which of them may be tried. A gang that needs more pods than it has is
//! tried as a whole, in a [`Round`]: its members are placed on a trial one after the other, and what was placed is kept only
//! when every gang of the group has enough. So no pod ever waits on a node for others, and gangs cannot hold what another
//! one needs to be complete.

mod declaration;
mod gangs;
mod pod_group;
mod round;
mod topology;

pub use declaration::{Declaration, Defaults, MatchPolicy, gang_of_pod};
pub use gangs::{Gangs, Member, NotYet};
pub use pod_group::{Counts, is_abandoned, status};
pub use round::{Outcome, Round, bind_annotations};
pub use topology::{Offer, Requirements, Tree, Unplaceable};
