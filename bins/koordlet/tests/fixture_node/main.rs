//! What the agent does with the files of a node that is a tree of files.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]

mod kubelet_root;
mod node;
mod pressure;
