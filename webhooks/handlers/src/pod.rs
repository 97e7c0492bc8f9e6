//! Pods as the handlers need them: a view that borrows from the request, and edits that become a patch.

mod excerpt;
mod merge;
mod requests;
mod resources;
mod texts;
mod view;

pub(crate) use excerpt::Excerpt;
pub(crate) use merge::{PodNode, ReservationNode};
pub(crate) use requests::request_of;
pub(crate) use resources::{Amount, Amounts, Resources};
pub(crate) use texts::Texts;
pub(crate) use view::{Container, Parts, Pod};
