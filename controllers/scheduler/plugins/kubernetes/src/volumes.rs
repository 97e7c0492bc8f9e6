//! The plugins for pods with volumes: what a claim is bound to, or may be bound to, decides where its pod can run.
//!
//! Claims, volumes and their classes are objects that others change, so answers for a pod with claims are asked anew in each
//! attempt ([`is_individual`](koord_scheduler_framework::SchedulingSignature::is_individual)). Read first: [`VolumeBinding`].

mod binding;
mod limits;
mod matching;
mod restrictions;
mod storage;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod vectors;
mod zone;

pub use binding::VolumeBinding;
pub use limits::NodeVolumeLimits;
pub use restrictions::VolumeRestrictions;
pub use zone::VolumeZone;
