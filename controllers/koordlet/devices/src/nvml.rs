//! GPUs of NVIDIA by its management library (NVML), which is loaded while the program runs.

mod abi;
mod error;
mod gpus;
mod health;
mod library;
mod session;

pub use error::{NvmlError, ReturnCode};
pub use gpus::{Gpu, GpuFailure, Gpus, XidEvent};
pub use health::{RECOVERY_QUIET, is_application_fault};

/// The library by the name that the loader searches.
pub const LIBRARY: &str = "libnvidia-ml.so.1";
