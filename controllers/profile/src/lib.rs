//! What a ClusterColocationProfile makes of a pod: which profiles apply to it, and what they change in its labels and
//! annotations.
//!
//! The webhook asks it for new pods and the controller for pending ones, so that both decide alike. It knows neither
//! requests nor writes. Read first: [`Profile`] (a profile with everything prepared), [`matching`], [`Texts`] (labels
//! and annotations that are changed in place), [`Overlay`] (a profile's own patch, prepared).
//!
//! ```
//! use koord_profile::{Profile, Texts, apply, matching};
//! use koord_core::cache::Cache;
//! let mut profiles = Cache::<Profile>::default();
//! profiles.upsert(
//!     r#"{"metadata": {"name": "batch", "uid": "u", "resourceVersion": "1"},
//!         "spec": {"selector": {"matchLabels": {"app": "web"}}, "qosClass": "BE"}}"#,
//! )?;
//! let mut labels: Texts<'_> = serde_json::from_str(r#"{"app": "web"}"#)?;
//! let mut annotations = Texts::default();
//! let matched = matching(&profiles, &labels);
//! for profile in &matched {
//!     apply(profile, &mut labels, &mut annotations);
//! }
//! assert_eq!(labels.get("koordinator.sh/qosClass"), Some("BE"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod apply;
mod draw;
mod excerpt;
mod go_types;
mod matching;
mod namespace;
mod overlay;
mod overridden;
mod pod_lists;
mod profile;
mod texts;

pub use apply::apply;
pub use draw::{Identity, draw, drawn};
pub use excerpt::Excerpt;
pub use go_types::{GoField, GoKind, GoType, METADATA, POD, POD_TEMPLATE, type_error, typed_patch};
pub use matching::{Matched, matching, retain_of_namespace};
pub use namespace::NamespaceLabels;
pub use overlay::{Overlay, OverlayError};
pub use overridden::{Author, Field, Overridden, overridden};
pub use pod_lists::PodNode;
pub use profile::{CONTROLLER_MANAGED, Profile, ProfileMembers, SKIP_UPDATE_RESOURCES};
pub use texts::{Text, Texts};
