//! Names of the default installation.

/// The namespace of koord-manager.
pub(crate) const NAMESPACE: &str = "koordinator-system";
/// The ClusterRole and Role of koord-manager.
pub(crate) const MANAGER_ROLE: &str = "koord-manager-role";
/// The ClusterRole of the controller of ClusterColocationProfiles, which is behind a gate.
pub(crate) const PROFILE_ROLE: &str = "koord-manager-colocation-profile-role";
/// The ClusterRole and Role of koord-scheduler.
pub(crate) const SCHEDULER_ROLE: &str = "koord-scheduler-role";
/// The ClusterRole and Role of koord-descheduler.
pub(crate) const DESCHEDULER_ROLE: &str = "koord-descheduler-role";
/// The ClusterRole of koordlet.
pub(crate) const KOORDLET_ROLE: &str = "koordlet-role";
/// The ClusterRole of koord-scheduler for what is behind a gate.
pub(crate) fn gated_role(name: &str) -> String {
    format!("koord-scheduler-{name}-role")
}
/// The Service through which the metrics of koord-manager are scraped.
pub(crate) const METRICS_SERVICE: &str = "koordinator-manager-metrics";
