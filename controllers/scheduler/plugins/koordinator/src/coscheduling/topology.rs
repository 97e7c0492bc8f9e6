//! Where in the network the pods of a gang may be: the tree of the cluster's network, and a place in it (2.13, 3E.6).

mod placement;
mod tree;

pub use placement::{Offer, Requirements, Unplaceable};
pub use tree::Tree;
