//! Extension points, and which of them each plugin has.

use super::Plugins;
use crate::PluginSet;

/// An extension point of the scheduling framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the extension point of its name")]
pub enum Point {
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
}

use Point::{
    Bind, Filter, Permit, PostBind, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve, Score,
};

/// Every plugin with its extension points (`spec/scheduler.md` 3 and 4.6).
const POINTS: &[(&str, &[Point])] = &[
    ("Coscheduling", &[PreEnqueue, PreFilter, PostFilter, PreScore, Score, Reserve, Permit, PreBind, PostBind]),
    ("DefaultBinder", &[Bind]),
    ("DefaultPreBind", &[PreBind]),
    ("DefaultPreemption", &[PreEnqueue, PostFilter]),
    ("DeviceShare", &[PreFilter, Filter, PreScore, Score, Reserve, PreBind]),
    ("DynamicResources", &[PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind]),
    ("ElasticQuota", &[PreFilter, PostFilter, Reserve]),
    ("GangScheduling", &[PreEnqueue, Reserve, Permit]),
    ("ImageLocality", &[Score]),
    ("InterPodAffinity", &[PreFilter, Filter, PreScore, Score]),
    ("LoadAwareScheduling", &[PreFilter, Filter, Score, Reserve]),
    ("NodeAffinity", &[PreFilter, Filter, PreScore, Score]),
    ("NodeDeclaredFeatures", &[PreFilter, Filter]),
    ("NodeNUMAResource", &[PreFilter, Filter, PreScore, Score, Reserve, PreBind]),
    ("NodeName", &[Filter]),
    ("NodePorts", &[PreFilter, Filter]),
    ("NodeResourcesBalancedAllocation", &[PreScore, Score]),
    ("NodeResourcesFit", &[PreFilter, Filter, PreScore, Score]),
    ("NodeResourcesFitPlus", &[PreScore, Score]),
    ("NodeUnschedulable", &[Filter]),
    ("NodeVolumeLimits", &[PreFilter, Filter]),
    ("PodTopologySpread", &[PreFilter, Filter, PreScore, Score]),
    ("PrioritySort", &[QueueSort]),
    ("Reservation", &[PreFilter, Filter, PostFilter, PreScore, Score, Reserve, PreBind, Bind]),
    ("ScarceResourceAvoidance", &[PreScore, Score]),
    ("SchedulingGates", &[PreEnqueue]),
    ("SchedulingHint", &[PreFilter]),
    ("TaintToleration", &[Filter, PreScore, Score]),
    ("VolumeBinding", &[PreFilter, Filter, PreScore, Score, Reserve, PreBind]),
    ("VolumeRestrictions", &[PreFilter, Filter]),
    ("VolumeZone", &[PreFilter, Filter]),
];

impl Point {
    /// All points, in the order in which they run.
    pub const ALL: [Self; 12] = [
        PreEnqueue, QueueSort, PreFilter, Filter, PostFilter, PreScore, Score, Reserve, Permit, PreBind, Bind, PostBind,
    ];

    /// Its name in a profile.
    pub const fn name(self) -> &'static str {
        match self {
            PreEnqueue => "preEnqueue",
            QueueSort => "queueSort",
            PreFilter => "preFilter",
            Filter => "filter",
            PostFilter => "postFilter",
            PreScore => "preScore",
            Score => "score",
            Reserve => "reserve",
            Permit => "permit",
            PreBind => "preBind",
            Bind => "bind",
            PostBind => "postBind",
        }
    }

    /// The points of a plugin; none of one that is not known.
    pub fn of(plugin: &str) -> &'static [Self] {
        POINTS.iter().find(|(name, _)| *name == plugin).map_or(&[], |(_, points)| points)
    }
}

impl Plugins {
    /// What a profile says of one point.
    pub fn at(&self, point: Point) -> &PluginSet {
        match point {
            PreEnqueue => &self.pre_enqueue,
            QueueSort => &self.queue_sort,
            PreFilter => &self.pre_filter,
            Filter => &self.filter,
            PostFilter => &self.post_filter,
            PreScore => &self.pre_score,
            Score => &self.score,
            Reserve => &self.reserve,
            Permit => &self.permit,
            PreBind => &self.pre_bind,
            Bind => &self.bind,
            PostBind => &self.post_bind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::CATALOGUE;

    #[test]
    fn every_known_plugin_has_a_point() {
        let without: Vec<&str> = CATALOGUE.names().filter(|name| Point::of(name).is_empty()).collect();
        assert_eq!(without, [""; 0]);
        assert_eq!(CATALOGUE.names().count(), POINTS.len());
    }
}
