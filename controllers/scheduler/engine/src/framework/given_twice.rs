//! What is given to more pods than may have it.

use std::collections::BTreeSet;

use koord_core::uid::Uid;

use crate::cluster::Subject;

/// Something that is given to more than may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenTwice {
    /// Which kind of thing it is, in one word.
    pub what: &'static str,
    /// Which one it is, and who has it.
    pub details: String,
    /// The pods that have it.
    pub pods: BTreeSet<Uid>,
    /// The object that an event about it names; none for the node.
    pub subject: Option<Subject>,
}
