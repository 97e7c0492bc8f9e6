//! Reservations as figures: their phases, and what they reserve and what of it is used.

use koord_resource::Quantity;
use koord_scheduler_framework::{Figure, cluster::Cluster};
use koord_types::reservation::{Reservation, ReservationPhase};

const GIB: f64 = (1_u64 << 30) as f64;

/// The figures of all reservations.
pub(super) fn figures(cluster: &Cluster) -> Vec<Figure> {
    cluster.objects().of::<Reservation>().flat_map(|(key, object)| of(key.name(), object)).collect()
}

fn of(name: &str, Reservation { status, .. }: &Reservation) -> Vec<Figure> {
    let current = status.phase.as_ref().unwrap_or(&ReservationPhase::Pending);
    let all =
        [ReservationPhase::Pending, ReservationPhase::Available, ReservationPhase::Succeeded, ReservationPhase::Failed];
    let phases = all.iter().map(|phase| Figure {
        name: "scheduler_reservation_status_phase",
        labels: vec![name.to_owned(), phase.as_str().to_owned()],
        value: if phase == current { 1.0 } else { 0.0 },
    });
    let amounts = status.allocatable.iter().flat_map(|(resource, allocatable)| {
        let (unit, value): (_, fn(&Quantity) -> f64) = match resource {
            "cpu" => ("core", Quantity::as_f64),
            "memory" => ("Gi", |bytes| bytes.as_f64() / GIB),
            _ => ("raw", Quantity::as_f64),
        };
        let (allocatable, allocated) = (value(allocatable), status.allocated.get(resource).map_or(0.0, value));
        let utilization = (allocatable > 0.0).then(|| ("utilization", "ratio", allocated / allocatable));
        let figures = [("allocatable", unit, allocatable), ("allocated", unit, allocated)];
        figures.into_iter().chain(utilization).map(move |(type_, unit, value)| Figure {
            name: "scheduler_reservation_resource",
            labels: [type_, name, resource, unit].map(str::to_owned).to_vec(),
            value,
        })
    });
    phases.chain(amounts).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reservation_has_one_phase_and_what_it_reserves() {
        let status = json!({
            "phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "2"},
            "allocated": {"cpu": "1500m"},
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
                "reservation_status_phase r Pending 0",
                "reservation_status_phase r Available 1",
                "reservation_status_phase r Succeeded 0",
                "reservation_status_phase r Failed 0",
                "reservation_resource allocatable r cpu core 4",
                "reservation_resource allocated r cpu core 1.5",
                "reservation_resource utilization r cpu ratio 0.375",
                "reservation_resource allocatable r memory Gi 1",
                "reservation_resource allocated r memory Gi 0",
                "reservation_resource utilization r memory ratio 0",
                "reservation_resource allocatable r nvidia.com/gpu raw 2",
                "reservation_resource allocated r nvidia.com/gpu raw 0",
                "reservation_resource utilization r nvidia.com/gpu ratio 0",
            ]
        );
    }
}
