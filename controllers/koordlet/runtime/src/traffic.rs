//! Traffic control: the classes of the node's network card, and how packets of pods find them.

mod addresses;
mod card;
mod classes;
mod message;
mod socket;

pub use card::DefaultCard;
use koord_koordlet_hooks::network::traffic::TrafficPlan;

/// The network card of a node.
pub trait TrafficControl: Send {
    /// Makes the card as the plan says; without a plan nothing of ours is left there. What is so already is not changed.
    ///
    /// # Errors
    ///
    /// What the node lacks, or the kernel refuses.
    fn apply(&mut self, plan: Option<&TrafficPlan>) -> Result<(), TrafficError>;
}

/// Why the network card is not as it shall be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TrafficError {
    pub reason: String,
    /// What makes it work.
    pub remedy: &'static str,
}
