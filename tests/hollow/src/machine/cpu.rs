//! Who gets how much of the CPUs of a machine.

/// What a pod would use, and what its cgroups let it use, in cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    pub cores: f64,
    pub limit: f64,
    pub is_best_effort: bool,
}

/// The cores that each pod gets. Pods of other classes come first; best-effort pods share what these leave, and no more than the limit of their class.
pub fn share_out(cores: f64, best_effort_limit: f64, demands: &[Demand]) -> Vec<f64> {
    let wanted = |of: bool| -> f64 {
        demands.iter().filter(|demand| demand.is_best_effort == of).map(|demand| demand.cores.min(demand.limit)).sum()
    };
    let portion = |available: f64, wanted: f64| if wanted > available { available.max(0.0) / wanted } else { 1.0 };
    let first = portion(cores, wanted(false));
    let rest = (cores - wanted(false) * first).min(best_effort_limit);
    let last = portion(rest, wanted(true));
    let given = |demand: &Demand| demand.cores.min(demand.limit) * if demand.is_best_effort { last } else { first };
    demands.iter().map(given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: f64 = f64::INFINITY;

    fn demand(cores: f64, limit: f64, is_best_effort: bool) -> Demand {
        Demand { cores, limit, is_best_effort }
    }

    #[test]
    fn best_effort_pods_share_what_the_others_leave_and_the_limit_of_their_class() {
        let demands = [demand(4.0, NONE, false), demand(6.0, NONE, true), demand(2.0, NONE, true)];
        assert_eq!(share_out(16.0, NONE, &demands), [4.0, 6.0, 2.0]);
        assert_eq!(share_out(8.0, NONE, &demands), [4.0, 3.0, 1.0]);
        assert_eq!(share_out(16.0, 2.0, &demands), [4.0, 1.5, 0.5]);
        assert_eq!(share_out(2.0, NONE, &demands), [2.0, 0.0, 0.0]);
    }

    #[test]
    fn a_pod_gets_no_more_than_its_quota() {
        assert_eq!(share_out(16.0, NONE, &[demand(4.0, 1.5, false), demand(6.0, 0.5, true)]), [1.5, 0.5]);
        assert_eq!(share_out(16.0, NONE, &[]), [0.0; 0]);
    }
}
