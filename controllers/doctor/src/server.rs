//! Whether the server is new enough, and whether its clock agrees with ours.

use std::time::Duration;

use koord_program::findings::Report;

use crate::cluster::Cluster;

/// The oldest minor version with everything that our objects use: validation rules in definitions.
const MINOR_MIN: u32 = 25;

/// The header has whole seconds, and the answer takes its time.
const SKEW_MAX: Duration = Duration::from_secs(3);

pub(crate) fn look(cluster: &Cluster, report: &mut Report) {
    if cluster.version.is_null() {
        report.note(
            "API server",
            "this user may not read its version",
            "let system:public-info-viewer be bound, as it is by default, or ask as another user (--context)",
        );
    } else {
        judge_version(cluster, report);
    }
    let Some(server_time) = cluster.server_time else { return };
    let skew = cluster.now.duration_since(server_time);
    if skew.unsigned_abs() > SKEW_MAX {
        let seconds = skew.unsigned_abs().as_secs();
        let direction = if skew.is_negative() { "ahead of" } else { "behind" };
        report.warning(
            "API server",
            format!(
                "its clock is {seconds} s {direction} this machine's: leases, certificates and ages are judged wrongly"
            ),
            "synchronise both clocks: timedatectl status, chronyc tracking",
        );
    }
}

fn judge_version(cluster: &Cluster, report: &mut Report) {
    let text = |field: &str| cluster.version[field].as_str().unwrap_or_default();
    // Providers write `28+`.
    let digits: String = text("minor").chars().take_while(char::is_ascii_digit).collect();
    let version = text("gitVersion");
    match (text("major"), digits.parse::<u32>()) {
        ("1", Ok(minor)) if minor < MINOR_MIN => report.warning(
            "API server",
            format!("{version} is older than 1.{MINOR_MIN} and ignores the rules of the hardened definitions"),
            "upgrade the cluster, or install the compatible definitions: koordctl crd apply --profile=compatible",
        ),
        (_, Ok(_)) => {}
        (_, Err(_)) => report.note(
            "API server",
            format!("its version {version:?} says no minor version"),
            "see what answers there: kubectl version",
        ),
    }
}
