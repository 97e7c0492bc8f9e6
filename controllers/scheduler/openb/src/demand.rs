//! GPUs that are free and of no use to a pod.

/// What a pod requests of GPUs, and of CPU beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// Of each GPU, in thousandths.
    pub each_milli: i64,
    /// How many GPUs.
    pub gpus: i64,
    /// CPU, in thousandths.
    pub cpu_milli: i64,
}

impl Demand {
    /// What of a node's free GPUs such a pod cannot use, in thousandths: all of it where the node has no place for the pod, else
    /// what is left of GPUs that are too small for it.
    pub fn of_no_use(&self, free_milli: &[i64], cpu_milli: i64, is_allowed: bool) -> i64 {
        let fitting = free_milli.iter().filter(|free| **free >= self.each_milli).count();
        let fits = i64::try_from(fitting).is_ok_and(|fitting| fitting >= self.gpus) && cpu_milli >= self.cpu_milli;
        let has_place = self.gpus > 0 && is_allowed && fits;
        free_milli.iter().filter(|free| !has_place || **free < self.each_milli).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_small_or_without_cpu_or_not_allowed_is_of_no_use() {
        let half = Demand { each_milli: 500, gpus: 1, cpu_milli: 4000 };
        assert_eq!(half.of_no_use(&[400, 1000, 500], 4000, true), 400);
        assert_eq!(half.of_no_use(&[400, 1000, 500], 3999, true), 1900);
        assert_eq!(half.of_no_use(&[400, 1000, 500], 4000, false), 1900);
        let pair = Demand { each_milli: 1000, gpus: 2, cpu_milli: 0 };
        assert_eq!(pair.of_no_use(&[1000, 900], 0, true), 1900);
        assert_eq!(pair.of_no_use(&[1000, 900, 1000], 0, true), 900);
        let none = Demand { each_milli: 0, gpus: 0, cpu_milli: 1 };
        assert_eq!(none.of_no_use(&[1000, 200], 8000, true), 1200, "a pod without GPUs uses none");
    }
}
