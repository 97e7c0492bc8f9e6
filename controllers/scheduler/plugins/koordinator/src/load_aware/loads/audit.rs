//! The load of a node, counted anew.

use std::sync::Arc;

use koord_scheduler_framework::{cluster::Cluster, columns::Row};

use super::{Known, Loads};

impl Loads {
    /// Compares what is known of a node with its object, its report and its pods, and sets right what differs.
    pub(in super::super) fn audit_row(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        let (actual, nothing) = (self.recount(cluster, row), Known::default());
        let cached = self.rows.get(row.index()).unwrap_or(&nothing);
        let mut wrong = Vec::new();
        if cached.load != actual.load {
            wrong.push(("load", format!("{} instead of {}", cached.load, actual.load)));
        }
        let is_same = (&cached.capacity, &cached.thresholds, &cached.metric, cached.expires)
            == (&actual.capacity, &actual.thresholds, &actual.metric, actual.expires);
        if !is_same || cached.metric.is_some() && cached.is_expired != actual.is_expired {
            wrong.push(("load_report", "a node or a report as it was instead of as it is".to_owned()));
        }
        if !wrong.is_empty() {
            let before = cached.expires;
            self.expire(row, before, actual.expires);
            *self.known(row) = actual;
        }
        wrong
    }

    /// What is to be known of a node.
    fn recount(&mut self, cluster: &Cluster, row: Row) -> Known {
        let settings = Arc::clone(&self.settings);
        let (metric, expires) = self.reported(cluster, row);
        let load = self.load(cluster, row, metric.as_deref());
        let node = cluster.node(row);
        Known {
            capacity: node.map(|node| settings.capacity(node)).unwrap_or_default(),
            thresholds: node.and_then(|node| settings.thresholds(node)),
            load,
            is_expired: expires.is_none(),
            metric,
            expires,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use koord_config::scheduler::LoadAwareSchedulingArgs;
    use koord_core::{key::ObjectKey, uid::Uid};
    use koord_scheduler_framework::{hold::Holds, object::Object};
    use koord_scheduler_testing::{node, pod};
    use koord_types::node_metric;
    use serde_json::json;

    use super::*;
    use crate::load_aware::{LoadAwareSettings, LoadsBySettings, NodeLoad};

    /// What makes a sum wrong.
    type Spoil = fn(&mut Known);

    fn settings() -> LoadAwareSettings {
        LoadAwareSettings::from(&koord_config::arguments::<LoadAwareSchedulingArgs>(&json!({})).unwrap())
    }

    #[test]
    fn loads_that_are_spoilt_are_found_and_counted_anew() {
        let spoil: [(&str, Spoil); 4] = [
            ("load", |known| known.load = NodeLoad::default()),
            ("load_report", |known| known.metric = None),
            ("load_report", |known| known.expires = Some(7)),
            ("load_report", |known| known.capacity = smallvec::SmallVec::default()),
        ];
        for (sum, spoil) in spoil {
            let mut cluster = Cluster::default();
            cluster.add_state(Box::new(LoadsBySettings::new(Arc::new(settings()))));
            cluster.tick(Timestamp::from_second(1_800_000_000).unwrap());
            cluster.set_node(node("n", &json!({"status": {"allocatable": {"cpu": "9", "memory": "9Gi"}}})));
            let usage = json!({"resources": {"cpu": "1", "memory": "1Gi"}});
            let status = json!({"updateTime": "2027-01-15T08:00:00Z", "nodeMetric": {"nodeUsage": usage}});
            let metric: node_metric::NodeMetric =
                serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {}, "status": status})).unwrap();
            cluster.set_object(Object::new(ObjectKey::cluster("n"), Uid::from("n"), false, Arc::new(metric)));
            let container = json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}});
            cluster.place(pod("p", &json!({"containers": [container]})), &"n".into(), Holds::default());
            let row = cluster.row("n").unwrap();
            assert_eq!(cluster.audit(row), []);
            let loads = |cluster: &Cluster| cluster.state::<LoadsBySettings>().unwrap().at(0).unwrap().clone();
            let Loads { rows: right, expiries, .. } = loads(&cluster);
            assert_eq!(expiries.len(), 1);
            spoil(cluster.state_mut::<LoadsBySettings>().unwrap().first_mut().known(row));
            let found = cluster.audit(row);
            assert_eq!(found.iter().map(|found| found.sum).collect::<Vec<_>>(), [sum], "{found:?}");
            let after = loads(&cluster);
            assert_eq!((format!("{:?}", after.rows), after.expiries), (format!("{right:?}"), expiries));
        }
    }
}
