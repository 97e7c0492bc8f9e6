//! The event about reservations of a pod with a reservation affinity, taken from the message about its nodes (2.8).

/// Between a count and what it counts.
const RESERVATIONS: &str = " Reservation(s) ";
const TOTAL: &str = "matched owner total";
const OF_NODES: &str = "for node reason that ";
const NAMED: &str = "exactly matches the requested reservation name";

/// What is said of reservations; none where the message says nothing about them.
pub(super) fn of_reservations(message: &str) -> Option<String> {
    let (nodes, details) = message.strip_prefix("0/")?.split_once(" nodes are available: ")?;
    nodes.parse::<u64>().ok()?;
    // QUIRK: a reason that has a comma in itself is told up to that (`a_reason_is_reported_up_to_its_first_comma`).
    let parts = details.split(',').flat_map(|part| part.split(". "));
    let counted = parts.filter_map(|part| {
        let (count, words) = part.trim_matches([' ', '.']).split_once(RESERVATIONS)?;
        count.parse::<u64>().is_ok().then_some((count, words))
    });
    let (totals, mut others): (Vec<_>, Vec<_>) = counted.partition(|(_, words)| *words == TOTAL);
    let (total, _) = totals.first()?;
    others.sort_by_key(|(_, words)| match words {
        words if *words == NAMED => 0,
        words if words.starts_with(OF_NODES) => 2,
        _ => 1,
    });
    let details: Vec<String> = others.iter().map(|(count, words)| format!("{count}{RESERVATIONS}{words}")).collect();
    Some(format!("0/{total} reservations are available: {}.", details.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_reported_up_to_its_first_comma() {
        let message = "0/1 nodes are available: 1 Unaligned. 1 Reservation(s) for node reason that Unaligned NUMA Hint cause cpu prefer \
                       [11] among [11],memory prefer [11] among [11], 1 Reservation(s) matched owner total";
        let expected = "0/1 reservations are available: 1 Reservation(s) for node reason that Unaligned NUMA Hint cause cpu prefer [11] \
                        among [11].";
        assert_eq!(of_reservations(message).unwrap(), expected);
    }

    #[test]
    fn reasons_about_reservations_are_reported_alone_with_the_name_first_and_nodes_last() {
        let of = |message: &str| of_reservations(message).unwrap_or_default();
        assert_eq!(of("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."), "");
        assert_eq!(
            of(
                "0/1 nodes are available: 1 Reservation(s) Insufficient cpu, requested: 6000, used: 0, capacity: 4000. \
                1 Reservation(s) exactly matches the requested reservation name, 1 Reservation(s) matched owner total, \
                preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
            ),
            "0/1 reservations are available: 1 Reservation(s) exactly matches the requested reservation name, \
             1 Reservation(s) Insufficient cpu."
        );
        assert_eq!(
            of(
                "0/1 nodes are available: 1 Reservation(s) Insufficient cpu. 1 Reservation(s) exactly matches the requested \
                reservation name, 1 Reservation(s) didn't match the requested reservation name, 2 Reservation(s) matched owner \
                total"
            ),
            "0/2 reservations are available: 1 Reservation(s) exactly matches the requested reservation name, \
             1 Reservation(s) Insufficient cpu, 1 Reservation(s) didn't match the requested reservation name."
        );
        assert_eq!(of("running PreFilter plugin: 1 Reservation(s) matched owner total"), "");
        assert_eq!(
            of(
                "0/1 nodes are available: node(s) no reservations match reservation affinity. 0 Reservation(s) matched owner \
                total, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            ),
            "0/0 reservations are available: ."
        );
        assert_eq!(
            of(
                "0/3 nodes are available: 3 Insufficient cpu by node. 2 Reservation(s) for node reason that Insufficient cpu \
                by node, 1 Reservation(s) had untolerated taint {gpu: no}, 3 Reservation(s) matched owner total"
            ),
            "0/3 reservations are available: 1 Reservation(s) had untolerated taint {gpu: no}, 2 Reservation(s) for node \
             reason that Insufficient cpu by node."
        );
    }
}
