//! Koordinator's own strategies, which all look at all nodes: LowNodeLoad, CustomPriority, FragmentationAware and ScaleDownBinPack.
//!
//! Read first: [`FragmentationAware`] (the smallest), [`LowNodeLoad`] (nodes that are used too much, by what koordlet reports), [`CustomPriority`] (from
//! dear nodes to cheap ones).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod custom_priority;
mod fragmentation_aware;
mod low_node_load;
mod scale_down_bin_pack;
mod selection;
mod targets;

pub use self::{
    custom_priority::CustomPriority, fragmentation_aware::FragmentationAware, low_node_load::LowNodeLoad,
    scale_down_bin_pack::ScaleDownBinPack,
};

/// Why a plugin cannot be made of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    #[error("{field}: {error}")]
    Selector { field: &'static str, error: String },
}
