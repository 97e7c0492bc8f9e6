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
        koord_webhook::METRICS,
        koord_webhooks::METRICS,
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_one_name_and_says_what_it_means() {
        let all = metrics();
        let names: BTreeSet<_> = all.iter().map(|description| description.name).collect();
        assert_eq!(names.len(), all.len());
        for Description { name, help, labels, .. } in all {
            assert!(help.ends_with('.') && help.len() > 5, "{name}: {help:?}");
            assert!(labels.iter().collect::<BTreeSet<_>>().len() == labels.len(), "{name}: {labels:?}");
            assert!(
                name.bytes()
                    .chain(labels.iter().flat_map(|label| label.bytes()))
                    .all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit()),
                "{name}"
            );
        }
    }
}
