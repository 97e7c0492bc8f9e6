//! Gang groups as workloads.

use std::sync::Arc;

use koord_core::uid::Uid;
use koord_scheduler_framework::Workload;

use super::Gangs;

impl Gangs {
    /// The group that a pod is scheduled with; none where it is scheduled alone.
    pub fn workload(&self, uid: &Uid) -> Option<Workload> {
        let (_, gang) = self.gang(uid).filter(|_| !self.is_scheduled_alone(uid))?;
        let group = self.groups.get(&gang.group)?;
        Some(Workload { name: Arc::clone(gang.group.name()), has_enough_pods: group.is_complete })
    }
}

#[cfg(test)]
mod tests {
    use koord_core::key::ObjectKey;

    use super::*;
    use crate::coscheduling::{Member, gangs::tests::once};

    #[test]
    fn members_are_one_workload_until_their_gang_is_satisfied() {
        let mut gangs = Gangs::default();
        let (a, b, c) = (Uid::from("a"), Uid::from("b"), Uid::from("c"));
        let member = |name: &str, is_bound| Member {
            key: ObjectKey::new("ns", name),
            gang: ObjectKey::cluster("g"),
            scheduler: Arc::default(),
            is_ready: true,
            is_bound,
            priority: 0,
            created: 0,
            index: None,
        };
        let workload = |gangs: &Gangs, uid: &Uid| {
            gangs.workload(uid).map(|workload| (workload.name.to_string(), workload.has_enough_pods))
        };
        gangs.set(&a, member("a", false), Some(once("g", 2)), true);
        assert_eq!(workload(&gangs, &a), Some(("g".to_owned(), false)));
        gangs.set(&b, member("b", false), None, true);
        assert_eq!(
            (workload(&gangs, &a), workload(&gangs, &b)),
            (Some(("g".to_owned(), true)), Some(("g".to_owned(), true)))
        );
        gangs.set(&b, member("b", true), None, true);
        gangs.set(&c, member("c", false), None, true);
        assert_eq!(workload(&gangs, &c), None, "it had enough");
        assert_eq!(workload(&gangs, &Uid::from("nobody")), None);
    }
}
