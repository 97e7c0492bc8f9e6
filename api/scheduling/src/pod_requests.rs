//! What a pod requests as a whole.

use koord_resource::Quantity;

/// An amount of one resource, or of several, that can be added up over containers.
pub trait Amounts: Clone + Default {
    /// Adds another amount.
    fn add(&mut self, other: &Self);

    /// The larger amount, of each resource.
    fn larger(self, other: Self) -> Self;
}

impl Amounts for Quantity {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
}

/// Adds up the requests of a pod's containers by the rule of the scheduler and the kubelet: the containers that run
/// together, or an init container where that needs more. An init container that is restarted (`restartPolicy: Always`)
/// runs beside everything that comes after it.
///
/// ```
/// use koord_resource::Quantity;
/// use koord_scheduling::PodRequests;
/// let mut requests = PodRequests::<Quantity>::default();
/// requests.container("1".parse()?);
/// requests.init_container("2".parse()?, true);
/// requests.init_container("500m".parse()?, false);
/// assert_eq!(requests.total(|sum| sum, Some(&"100m".parse()?)).to_string(), "3100m");
/// # Ok::<(), koord_resource::quantity::ParseQuantityError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PodRequests<A> {
    /// None before the first container: a single amount keeps the form in which it was written.
    running: Option<A>,
    sidecars: A,
    starting: A,
}

impl<A: Amounts> PodRequests<A> {
    /// Counts a container.
    pub fn container(&mut self, request: A) {
        match &mut self.running {
            Some(running) => running.add(&request),
            none => *none = Some(request),
        }
    }

    /// Counts the next init container, in their order.
    pub fn init_container(&mut self, request: A, is_restarted: bool) {
        let mut needed = request;
        if is_restarted {
            let running = self.running.get_or_insert_default();
            running.add(&needed);
            self.sidecars.add(&needed);
            needed = self.sidecars.clone();
        } else {
            needed.add(&self.sidecars);
        }
        let starting = std::mem::take(&mut self.starting);
        self.starting = starting.larger(needed);
    }

    /// The request of the pod. `pod_level` puts what `spec.resources` requests in the place of the containers' sum, and
    /// the overhead is added to that. Without an overhead a single amount keeps its form.
    pub fn total(self, pod_level: impl FnOnce(A) -> A, overhead: Option<&A>) -> A {
        let mut total = pod_level(self.running.unwrap_or_default().larger(self.starting));
        if let Some(overhead) = overhead {
            total.add(overhead);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Cores(i64);

    impl Amounts for Cores {
        fn add(&mut self, other: &Self) {
            self.0 += other.0;
        }

        fn larger(self, other: Self) -> Self {
            Self(self.0.max(other.0))
        }
    }

    fn total(containers: &[i64], init: &[(i64, bool)], overhead: i64) -> i64 {
        let mut requests = PodRequests::default();
        for cores in containers {
            requests.container(Cores(*cores));
        }
        for (cores, restarted) in init {
            requests.init_container(Cores(*cores), *restarted);
        }
        requests.total(|sum| sum, Some(&Cores(overhead))).0
    }

    #[test]
    fn init_containers_count_beside_the_sidecars_before_them() {
        for (containers, init, expected) in [
            (&[][..], &[][..], 0),
            (&[1, 1], &[], 2),
            (&[1, 1], &[(3, false)], 3),
            (&[1, 1], &[(3, false), (2, true), (4, false)], 6),
            (&[1], &[(2, true), (2, true)], 5),
            (&[1], &[(9, false), (2, true)], 9),
        ] {
            assert_eq!(total(containers, init, 0), expected, "{containers:?} {init:?}");
        }
    }

    #[test]
    fn what_the_pod_requests_for_itself_replaces_the_sum_but_not_the_overhead() {
        let mut requests = PodRequests::default();
        requests.container(Cores(7));
        assert_eq!(requests.total(|_| Cores(5), Some(&Cores(1))), Cores(6));
    }

    #[test]
    fn a_single_amount_keeps_its_form() {
        let mut requests = PodRequests::<Quantity>::default();
        requests.container("1.000001".parse().unwrap());
        assert_eq!(requests.total(|sum| sum, None).to_string(), "1.000001");
    }

    proptest! {
        /// The definition, phase by phase: at any time the sidecars that have started run, and one init container or
        /// all containers.
        #[test]
        fn the_request_covers_every_phase_and_no_more(
            containers in proptest::collection::vec(0..100_i64, 0..4),
            init in proptest::collection::vec((0..100_i64, any::<bool>()), 0..5),
        ) {
            let mut phases = vec![containers.iter().sum::<i64>() + init.iter().filter(|one| one.1).map(|one| one.0).sum::<i64>()];
            for (at, (cores, _)) in init.iter().enumerate() {
                phases.push(cores + init[..at].iter().filter(|one| one.1).map(|one| one.0).sum::<i64>());
            }
            prop_assert_eq!(total(&containers, &init, 0), phases.into_iter().max().unwrap());
        }
    }
}
