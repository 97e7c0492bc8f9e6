//! Which program this is, to users and to the API server.

use koord_program::Build;
use koord_runtime::{
    key::ObjectKey,
    metrics::{Description, Unit},
};
use koord_scheduler_assembly::GATES;
pub use koord_scheduler_assembly::NAME;

/// Which build runs.
pub(crate) const BUILD_INFO: Description =
    Description::gauge("koord_scheduler_build_info", &["version", "language"], "Always 1; the labels say what runs.")
        .unit(Unit::YesNo);

/// Which program this is.
pub const BUILD: Build = Build {
    program: NAME,
    version: env!("CARGO_PKG_VERSION"),
    field_manager: NAME,
    namespace: "koordinator-system",
    gates: GATES,
    info: BUILD_INFO,
};

/// The pod in which the program runs, as the environment says by `POD_NAMESPACE` and `POD_NAME`; none where it says nothing.
pub(crate) fn scheduler_pod(environment: impl Fn(&str) -> Option<String>) -> Option<ObjectKey> {
    let of = |variable| environment(variable).filter(|value| !value.is_empty());
    Some(ObjectKey::new(&of("POD_NAMESPACE")?, &of("POD_NAME")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_in_which_pod_the_program_runs() {
        let pod = |set: &[(&str, &str)]| {
            scheduler_pod(|variable| {
                set.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned())
            })
        };
        let whole = pod(&[("POD_NAMESPACE", "koordinator-system"), ("POD_NAME", "koord-scheduler-0")]);
        assert_eq!(whole, Some(ObjectKey::new("koordinator-system", "koord-scheduler-0")));
        assert_eq!(pod(&[("POD_NAMESPACE", "koordinator-system")]), None);
        assert_eq!(pod(&[("POD_NAMESPACE", "koordinator-system"), ("POD_NAME", "")]), None);
    }
}
