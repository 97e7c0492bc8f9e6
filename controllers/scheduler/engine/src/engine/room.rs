//! Room that is made for a pod that no node takes.

use koord_core::uid::Uid;

/// What came of looking for pods whose eviction makes room for a pod that no node takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// No plugin had anything to do with it.
    #[default]
    NotSought,
    /// There is none.
    None,
    /// It is being made since an earlier attempt.
    Awaited,
    /// It is being made from now on: these pods leave, those among them that are being deleted already.
    Found(Vec<Uid>),
}
