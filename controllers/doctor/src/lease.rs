//! Whether a koord-manager leads, and only one; and whether only one koord-scheduler does.

use jiff::{SignedDuration, Timestamp};
use koord_manager_assembly::NAME as LEASE;
use koord_program::{findings::Report, lease::Lease, listing, names::few, obstacle::Obstacle};
use koord_resource::controller::ResourceKind;

use crate::cluster::Cluster;

/// The Lease of koord-scheduler, unless its configuration names another.
const OF_SCHEDULER: &str = "koord-scheduler";

/// Clocks of machines differ by little.
const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(5);

/// The leases of a name in all namespaces; none where they cannot be read.
pub(crate) async fn leases_of(name: &str, cluster: &Cluster, report: &mut Report) -> Option<Vec<Lease>> {
    let path = ResourceKind::LEASE.url_path("", None);
    let mut leases = Vec::new();
    let query = listing::query(&format!("metadata.name={name}"), "");
    let listed = listing::each(&cluster.client, &path, &query, listing::Part::Whole, |text| {
        leases.push(Lease::read(&serde_json::from_str(text)?));
        Ok(())
    });
    report.read(listed.await.map_err(|error| Obstacle::unlisted(&path, &error)))?;
    Some(leases)
}

/// Who holds such leases now, and where.
fn held(leases: &[Lease], now: Timestamp) -> Vec<String> {
    let held = leases.iter().filter(|lease| lease.is_held(now));
    held.map(|lease| format!("{} in {}", lease.holder, lease.namespace)).collect()
}

pub(crate) async fn look(cluster: &Cluster, report: &mut Report) {
    // What other machines write is judged by the server's clock, which they are kept in step with.
    let now = cluster.server_time.unwrap_or(cluster.now);
    look_at_manager(cluster, now, report).await;
    let Some(leases) = leases_of(OF_SCHEDULER, cluster, report).await else { return };
    let held = held(&leases, now);
    if held.len() > 1 {
        report.error(
            format!("Lease {OF_SCHEDULER}"),
            format!("several koord-schedulers lead at once, each with a lease of its own: {}", few(&held)),
            "remove one installation, or give each names of its own: leaderElection.resourceName, and the schedulerName of every profile",
        );
    }
}

async fn look_at_manager(cluster: &Cluster, now: Timestamp, report: &mut Report) {
    let namespace = &cluster.installed.namespace;
    let object = format!("Lease {namespace}/{LEASE}");
    let logs = format!(
        "see whether it runs and what it says: kubectl -n {namespace} get pods; kubectl -n {namespace} logs deploy/koord-manager"
    );
    let Some(leases) = leases_of(LEASE, cluster, report).await else { return };
    let held = held(&leases, now);
    if held.len() > 1 {
        report.error(
            &object,
            format!("several koord-managers lead at once, each with a lease of its own: {}", few(&held)),
            "let all replicas use one namespace (--leader-election-namespace), and remove the other installation",
        );
    }
    let Some(lease) = leases.iter().find(|lease| lease.namespace == *namespace) else {
        if held.is_empty() {
            report.error(object, "no koord-manager has led here: no controller of koord-manager works", logs);
        } else {
            let there = "look there: koordctl doctor --namespace, or set --leader-election-namespace";
            report.warning(object, format!("it is not there, but another is held: {}", few(&held)), there);
        }
        return;
    };
    if lease.holder.is_empty() {
        return report.error(object, "it has no holder: no controller of koord-manager works", logs);
    }
    match lease.age(now) {
        None => report.warning(object, format!("{} holds it without a renewTime", lease.holder), logs),
        Some(age) if age > lease.lasts => report.error(
            object,
            format!(
                "{} has not renewed it for {} s (it lasts {} s): no controller of koord-manager works",
                lease.holder,
                age.as_secs(),
                lease.lasts.as_secs()
            ),
            logs,
        ),
        Some(age) if age < -AHEAD_MAX => report.warning(
            object,
            format!(
                "{} renewed it {} s in the future: its clock is wrong",
                lease.holder,
                age.as_secs().saturating_neg()
            ),
            "synchronise the clock of the machine that it runs on: chronyc tracking",
        ),
        Some(_) => {}
    }
}
