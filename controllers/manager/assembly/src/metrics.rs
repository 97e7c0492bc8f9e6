//! Every metric of the program as data: for the reference page, dashboards, alerts, and the test that scrapes it.

use koord_runtime::metrics::{Description, Unit};

/// Which build runs.
pub(crate) const BUILD_INFO: Description =
    Description::gauge("koord_manager_build_info", &["version", "language"], "Always 1; the labels say what runs.")
        .unit(Unit::YesNo);

/// Every metric, by name.
pub fn metrics() -> Vec<Description> {
    koord_program::metrics(&[
        &[BUILD_INFO],
        koord_manager_controllers::METRICS,
        koord_webhook_server::METRICS,
        koord_webhook_handlers::METRICS,
    ])
}
