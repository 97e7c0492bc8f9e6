//! What a ClusterColocationProfile makes of a pod: which profiles apply to it, and what they change in its labels and
//! annotations.
//!
//! The webhook asks it for new pods and the controller for pending ones, so that both decide alike. It knows neither
//! requests nor writes. Read first: [`Profile`] (a profile with everything prepared), [`matching`], [`Texts`] (labels
//! and annotations that are changed in place), [`Excerpt`] (the part of a pod that a profile's own patch needs).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod apply;
mod draw;
mod excerpt;
mod matching;
mod namespace;
mod overridden;
mod pod_lists;
mod profile;
mod texts;

pub use apply::{apply, apply_again};
pub use draw::{Identity, draw, drawn};
pub use excerpt::Excerpt;
pub use matching::{Matched, matching, retain_of_namespace};
pub use namespace::NamespaceLabels;
pub use overridden::{Author, Field, Overridden, overridden};
pub use pod_lists::PodNode;
pub use profile::{CONTROLLER_MANAGED, Profile, SKIP_UPDATE_RESOURCES, Wire};
pub use texts::{Text, Texts};
