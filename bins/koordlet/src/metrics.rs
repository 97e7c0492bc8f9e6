//! Every metric of the program as data: for the reference page, dashboards and alerts.

use koord_runtime::metrics::Description;

use crate::identity::BUILD_INFO;

/// Every metric, by name.
pub fn metrics() -> Vec<Description> {
    koord_program::metrics(&[&[BUILD_INFO], &koord_koordlet_runtime::metrics()])
}
