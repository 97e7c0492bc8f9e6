//! Every metric of the program as data: for the reference page, dashboards and alerts.

use koord_runtime::metrics::Description;

use crate::identity::BUILD_INFO;

/// Every metric, by name.
pub fn metrics() -> Vec<Description> {
    koord_program::metrics(&[&[BUILD_INFO], koord_scheduler_runtime::METRICS])
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
        for Description { name, help, .. } in all {
            assert!(help.ends_with('.') && help.len() > 5, "{name}: {help:?}");
        }
    }
}
