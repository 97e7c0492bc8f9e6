//! Reservations as figures: their phases, and what they reserve and what of it is used.

use koord_api::reservation::{Reservation, ReservationPhase};
use koord_engine::{cluster::Cluster, plugin::Figure};

/// The figures of all reservations.
pub(super) fn figures(cluster: &Cluster) -> Vec<Figure> {
    cluster.objects().of::<Reservation>().flat_map(|(key, object)| of(key.name(), object)).collect()
}

fn of(name: &str, Reservation { status, .. }: &Reservation) -> Vec<Figure> {
    let phase = status.phase.as_ref().map_or("Pending", ReservationPhase::as_str);
    let labels = vec![name.to_owned(), phase.to_owned()];
    let phase = Figure { name: "scheduler_reservation_status_phase", labels, value: 1.0 };
    let lists = [("allocatable", &status.allocatable), ("allocated", &status.allocated)];
    let amounts = lists.into_iter().flat_map(|(type_, amounts)| {
        amounts.iter().map(move |(resource, amount)| Figure {
            name: "scheduler_reservation_resource",
            labels: [type_, name, resource, unit(resource)].map(str::to_owned).to_vec(),
            value: amount.as_f64(),
        })
    });
    std::iter::once(phase).chain(amounts).collect()
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "core",
        "memory" | "ephemeral-storage" => "byte",
        _ => "integer",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reservation_has_one_phase_and_what_it_reserves() {
        let status = json!({
            "phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "4", "memory": "1Gi"}, "allocated": {"cpu": "1500m"},
        });
        let object = json!({"metadata": {"name": "r"}, "spec": {"template": {}, "owners": []}, "status": status});
        let shown: Vec<String> = of("r", &serde_json::from_value(object).unwrap())
            .into_iter()
            .map(|figure| {
                format!("{} {} {}", figure.name.trim_start_matches("scheduler_"), figure.labels.join(" "), figure.value)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "reservation_status_phase r Available 1",
                "reservation_resource allocatable r cpu core 4",
                "reservation_resource allocatable r memory byte 1073741824",
                "reservation_resource allocated r cpu core 1.5",
            ]
        );
    }
}
