//! Prediction of the usage of pods, of priority classes and of the node from decaying histograms, with checkpoints that the original agent reads too.

mod checkpoint;
mod histogram;
mod models;
mod prod;

pub use checkpoint::{Checkpoint, CheckpointError, CheckpointFolder, HistogramCheckpoint};
pub use histogram::{Buckets, Histogram, HistogramError};
pub use models::{Model, ModelSettings, Models, Prediction, Quantiles, node_item};
pub use prod::{Amounts, Forecast, ForecastSettings, MissingModel, ProdForecast, forecast_prod, raw_allocatable};
