//! `Synchronize` in several parts: a runtime with many pods cannot send them in one message.

use super::message::service::SynchronizeRequest;
use crate::ttrpc::{Status, code};

/// The parts that have arrived.
#[derive(Debug)]
pub(crate) struct Parts {
    collected: SynchronizeRequest,
    objects_max: usize,
}

/// What a part leads to.
#[derive(Debug, PartialEq)]
pub(crate) enum Collected {
    /// Further parts follow.
    More,
    /// Every pod and container is there.
    All(SynchronizeRequest),
}

impl Parts {
    /// Collects at most `objects_max` pods and containers.
    pub(crate) fn new(objects_max: usize) -> Self {
        Self { collected: SynchronizeRequest::default(), objects_max }
    }

    /// Adds a part. Over the limit nothing is kept.
    pub(crate) fn add(&mut self, part: SynchronizeRequest) -> Result<Collected, Status> {
        let mut collected = std::mem::take(&mut self.collected);
        collected.pods.extend(part.pods);
        collected.containers.extend(part.containers);
        let objects = collected.pods.len() + collected.containers.len();
        if objects > self.objects_max {
            let text = format!("more than {} pods and containers to synchronize", self.objects_max);
            return Err(Status::new(code::RESOURCE_EXHAUSTED, text));
        }
        if part.more {
            self.collected = collected;
            return Ok(Collected::More);
        }
        Ok(Collected::All(collected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nri::{Container, PodSandbox};

    fn part(pods: &[&str], containers: &[&str], more: bool) -> SynchronizeRequest {
        SynchronizeRequest {
            pods: pods.iter().map(|id| PodSandbox { id: (*id).into(), ..Default::default() }).collect(),
            containers: containers.iter().map(|id| Container { id: (*id).into(), ..Default::default() }).collect(),
            more,
        }
    }

    #[test]
    fn parts_are_put_together_in_their_order() {
        let mut parts = Parts::new(10);
        assert_eq!(parts.add(part(&["a"], &["x"], true)), Ok(Collected::More));
        assert_eq!(parts.add(part(&["b"], &[], true)), Ok(Collected::More));
        assert_eq!(parts.add(part(&[], &["y"], false)), Ok(Collected::All(part(&["a", "b"], &["x", "y"], false))));
        assert_eq!(
            parts.add(part(&["c"], &[], false)),
            Ok(Collected::All(part(&["c"], &[], false))),
            "nothing is left"
        );
    }

    #[test]
    fn parts_over_the_limit_are_refused_and_not_kept() {
        let mut parts = Parts::new(2);
        assert_eq!(parts.add(part(&["a", "b"], &[], true)), Ok(Collected::More));
        assert_eq!(parts.add(part(&[], &["x"], true)).unwrap_err().code, code::RESOURCE_EXHAUSTED);
        assert_eq!(parts.add(part(&["c"], &[], false)), Ok(Collected::All(part(&["c"], &[], false))));
    }
}
