//! Which controllers run, with which settings.

use koord_manager_controllers::{
    ConfigSource,
    colocationprofile::{self, ColocationProfileController},
    nodemetric::{self, NodeMetricController},
    noderesource::{self, NodeResourceController, Plugins},
    nodeslo::{self, NodeSloController},
    quotaprofile::{self, QuotaProfileController},
};
use koord_runtime::Core;

use crate::options::Checked;

/// Adds every controller that the flags and gates let run.
pub fn add_controllers(core: &mut Core, checked: &Checked) -> anyhow::Result<()> {
    let options = &checked.options;
    let source = ConfigSource { namespace: options.config_namespace.clone(), name: options.slo_config_name.clone() };
    let profiles = ColocationProfileController::SPEC;
    if options.runs(profiles.name) && profiles.gate.is_none_or(|gate| checked.enabled(gate)) {
        let settings = options.colocation_profiles();
        core.add(profiles, colocationprofile::COMPONENT, |wiring| ColocationProfileController::wire(wiring, settings))?;
    }
    if options.runs(NodeMetricController::SPEC.name) {
        core.add(NodeMetricController::SPEC, nodemetric::COMPONENT, |wiring| {
            NodeMetricController::wire(wiring, &source)
        })?;
    }
    if options.runs(NodeResourceController::SPEC.name) {
        let plugins = Plugins::chosen(&options.noderesource_plugins, checked.enabled("EnableSyncGPUSharedResource"));
        core.add(NodeResourceController::SPEC, noderesource::COMPONENT, |wiring| {
            NodeResourceController::wire(wiring, &source, plugins)
        })?;
    }
    if options.runs(NodeSloController::SPEC.name) {
        core.add(NodeSloController::SPEC, nodeslo::COMPONENT, |wiring| NodeSloController::wire(wiring, &source))?;
    }
    if options.runs(QuotaProfileController::SPEC.name) {
        core.add(QuotaProfileController::SPEC, quotaprofile::COMPONENT, QuotaProfileController::wire)?;
    }
    Ok(())
}
