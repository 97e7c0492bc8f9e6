//! An attempt that has failed, for the plugins that make room.

use super::{Found, Profile};
use crate::cluster::Cluster;

/// An attempt in which no node took the pod, for the plugins that make room.
pub struct Attempted<'a> {
    /// The cluster.
    pub cluster: &'a mut Cluster,
    /// The profile of the pod.
    pub profile: &'a Profile,
    /// What was found.
    pub found: &'a Found,
    /// Gives a number below its argument.
    pub draw: &'a mut dyn FnMut(u32) -> u32,
}
