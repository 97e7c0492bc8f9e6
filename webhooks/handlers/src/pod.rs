//! Pods as the handlers need them: a view that borrows from the request, and edits that become a patch.

mod requests;
mod resources;
pub mod validate_binding;
mod view;

pub(crate) use requests::request_of;
pub(crate) use resources::{Amount, Amounts, Resources};
pub(crate) use view::{Container, Parts, Pod};
