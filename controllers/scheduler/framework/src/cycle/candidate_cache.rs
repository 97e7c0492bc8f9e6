//! What is kept of the nodes for the next pods: candidates by class, where classes that are evaluated alike share them.

use std::{collections::BTreeMap, sync::Arc};

use super::{Candidates, Prepared, Profile};
use crate::{
    Request,
    cluster::{ClassId, Cluster, ReservedId},
    timing::Timing,
};

/// The candidates of the classes that were searched for lately.
#[derive(Default)]
pub struct CandidateCache {
    /// By their number, with when they were used last.
    candidates: BTreeMap<u64, (u64, Candidates)>,
    classes: BTreeMap<ClassId, Known>,
    /// The length of the texts of which the templates of the candidates were made.
    texts: usize,
    searches: u64,
    /// How many nodes the next sample passes over first.
    passed_over: usize,
}

/// Which candidates are those of a class.
struct Known {
    _id: ReservedId,
    number: u64,
    /// How often these had been prepared again by then: what has to be asked may be something else for each class after that.
    renewals: u64,
}

/// What is wrong where candidates that are shared are not those of a search that begins anew.
const APART: &str = "a plugin tells workloads apart by more than its marks say";

impl CandidateCache {
    /// Candidates that are kept at least; a cluster schedules few kinds of pods at a time.
    const CANDIDATES_MIN: usize = 64;
    /// Rows that are kept of all candidates together, where that is for more of them.
    const ROWS_MAX: usize = 64 * 5000;
    /// The length of the texts of all candidates together. A template takes a few times as much memory, as does what plugins prepare of it.
    const TEXTS_MAX: usize = 1 << 20;
    /// How many classes share candidates on average before those are forgotten that were not the last to use theirs.
    const SHARING: usize = 4;

    /// How many candidates are kept in a cluster.
    fn candidates_max(cluster: &Cluster) -> usize {
        (Self::ROWS_MAX / cluster.width().max(1)).clamp(Self::CANDIDATES_MIN, 16 * Self::CANDIDATES_MIN)
    }

    /// Takes the candidates of a class, up to date; none where there are none, or where everything is to be evaluated anew.
    pub(super) fn bring_up_to_date(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) -> Option<Candidates> {
        let known = self.classes.get(&request.class.id())?;
        let (_, candidates) = self.candidates.get(&known.number)?;
        let is_own = Arc::ptr_eq(&candidates.class, request.class);
        if !is_own && (candidates.renewals != known.renewals || candidates.is_restored(cluster)) {
            return None;
        }
        let candidates = self.take(known.number, profile, request, cluster, timing)?;
        debug_assert!(is_own || candidates.are_as_anew(profile, request, cluster), "{APART}");
        Some(candidates)
    }

    /// Takes the candidates of another class that is evaluated alike, up to date: pods of a new workload are seldom unlike all that
    /// were there before. None where there are none.
    pub(super) fn alike(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        prepared: &Prepared,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) -> Option<Candidates> {
        let is_alike = |cached: &Candidates| cached.is_evaluated_like(profile, request, prepared, cluster);
        let number = *self.candidates.iter().find(|(_, (_, cached))| is_alike(cached))?.0;
        // What is prepared again meanwhile is what was prepared for this class: they are evaluated alike afterwards too.
        let candidates = self.take(number, profile, request, cluster, timing)?;
        debug_assert!(
            candidates.is_evaluated_like(profile, request, prepared, cluster)
                && candidates.are_as_anew(profile, request, cluster),
            "{APART}"
        );
        Some(candidates)
    }

    /// Takes candidates for a class, up to date; none where everything is to be evaluated anew, which holds for all classes that share them.
    fn take(
        &mut self,
        number: u64,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) -> Option<Candidates> {
        let mut candidates = self.remove(number)?;
        candidates.class = Arc::clone(request.class);
        candidates.bring_up_to_date(profile, request, cluster, timing).then_some(candidates)
    }

    /// Keeps the candidates of the class for which they were used last.
    pub(super) fn keep(&mut self, mut candidates: Candidates, cluster: &Cluster) {
        let max = Self::candidates_max(cluster);
        let length = candidates.text_length();
        while self.candidates.len() >= max || !self.candidates.is_empty() && self.texts + length > Self::TEXTS_MAX {
            let oldest = self.candidates.iter().min_by_key(|(_, (used, _))| *used).map(|(number, _)| *number);
            oldest.map(|number| self.remove(number));
        }
        if self.classes.len() >= Self::SHARING * max {
            let Self { classes, candidates, .. } = self;
            let is_last = |id: &ClassId, known: &Known| {
                candidates.get(&known.number).is_some_and(|(_, last)| last.class.id() == *id)
            };
            classes.retain(|id, known| is_last(id, known));
        }
        self.searches += 1;
        let number = *candidates.number.get_or_insert(self.searches);
        let (class, renewals) = (&candidates.class, candidates.renewals);
        self.classes.insert(class.id(), Known { _id: class.reserve_id(), number, renewals });
        self.texts += length;
        self.candidates.insert(number, (self.searches, candidates));
    }

    fn remove(&mut self, number: u64) -> Option<Candidates> {
        let (_, candidates) = self.candidates.remove(&number)?;
        self.texts -= candidates.text_length();
        Some(candidates)
    }

    /// How many nodes the next sample passes over first.
    pub(super) fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// The next sample passes over so many nodes first.
    pub(super) fn pass_over(&mut self, nodes: usize) {
        self.passed_over = nodes;
    }

    /// Forgets what is known of nodes, as when a profile changes.
    pub fn clear(&mut self) {
        self.candidates.clear();
        self.classes.clear();
        self.texts = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use koord_core::{key::ObjectKey, uid::Uid};

    use super::*;
    use crate::{
        Filter, Found, NodeFilter, NodeScore, Plugin, PreparedFilter, Refusal, Registration, SchedulingSignature,
        Score, SignatureFields,
        columns::Row,
        node::Node,
        pod::{Pod, Template},
    };

    /// Keeps pods from the node that a label of theirs names, while it has anything to ask.
    struct Shuns {
        marks: SignatureFields,
        epoch: AtomicU64,
    }

    struct ShunnedNode(Option<String>);

    impl Plugin for Shuns {
        fn name(&self) -> &'static str {
            "Shuns"
        }

        fn register(self: Arc<Self>) -> Registration {
            Registration::of(&self).filter(&self).scheduling_signature(&self)
        }
    }

    impl Filter for Shuns {
        fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
            if self.epoch.load(Ordering::Relaxed) == 0 {
                return PreparedFilter::Skip;
            }
            PreparedFilter::Nodes(Box::new(ShunnedNode(request.template().labels.get("shuns").map(str::to_owned))))
        }
    }

    impl SchedulingSignature for Shuns {
        fn signature(&self) -> SignatureFields {
            self.marks
        }

        fn epoch(&self, _: &Cluster) -> u64 {
            self.epoch.load(Ordering::Relaxed)
        }
    }

    impl NodeFilter for ShunnedNode {
        fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
            let is_shunned = cluster.node(row).is_some_and(|node| self.0.as_deref() == Some(&*node.name));
            if is_shunned { Err(Refusal::unresolvable(0)) } else { Ok(()) }
        }
    }

    fn pod(labels: &[(&str, &str)]) -> Arc<Pod> {
        let template = Arc::new(Template { labels: labels.iter().copied().collect(), ..Template::default() });
        Arc::new(Pod { key: ObjectKey::new("ns", "p"), uid: Uid::from("p"), template, ..Pod::default() })
    }

    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        for name in ["n0", "n1"] {
            cluster.set_node(Arc::new(Node { name: name.into(), ..Node::default() }));
        }
        cluster
    }

    fn profile(marks: SignatureFields, epoch: u64) -> (Profile, Arc<Shuns>) {
        let plugin = Arc::new(Shuns { marks, epoch: epoch.into() });
        let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::clone(&plugin) as _];
        (Profile { filters: vec![0], ..Profile::of("test", plugins) }, plugin)
    }

    /// How many nodes take a pod.
    fn takers(profile: &Profile, pod: &Arc<Pod>, cluster: &mut Cluster, cache: &mut CandidateCache) -> u32 {
        match profile.search(pod, cluster, cache, |_| 0) {
            Found::Node { ties, .. } => ties,
            other => panic!("{other:?}"),
        }
    }

    const SHUNS: SignatureFields = SignatureFields::Labels(&["shuns"]);

    #[test]
    fn workloads_of_one_signature_share_candidates() {
        let (first, second) = (pod(&[("job", "1"), ("shuns", "n0")]), pod(&[("job", "2"), ("shuns", "n0")]));
        for (marks, kept) in [(SHUNS, 1), (SignatureFields::All, 2), (SignatureFields::Images, 1)] {
            let ((profile, _), mut cluster, mut cache) = (profile(marks, 1), cluster(), CandidateCache::default());
            for pod in [&first, &second, &first, &second] {
                assert_eq!(takers(&profile, pod, &mut cluster, &mut cache), 1);
            }
            assert_eq!(cache.candidates.len(), kept, "{marks:?}");
        }
    }

    #[test]
    fn workloads_of_different_signatures_do_not_share_candidates() {
        let ((profile, _), mut cluster, mut cache) = (profile(SHUNS, 1), cluster(), CandidateCache::default());
        for (labels, expected) in [(&[("shuns", "n0")][..], 1), (&[("shuns", "n1")], 1), (&[], 2)] {
            assert_eq!(takers(&profile, &pod(labels), &mut cluster, &mut cache), expected);
        }
        assert_eq!(cache.candidates.len(), 3);
    }

    #[test]
    fn workloads_whose_signatures_become_different_share_no_longer() {
        let ((profile, plugin), mut cluster, mut cache) =
            (profile(SignatureFields::All, 0), cluster(), CandidateCache::default());
        let (shuns, other) = (pod(&[("shuns", "n0")]), pod(&[]));
        for pod in [&shuns, &other] {
            assert_eq!(takers(&profile, pod, &mut cluster, &mut cache), 2);
        }
        assert_eq!(cache.candidates.len(), 1, "nothing is asked of nodes");
        plugin.epoch.store(1, Ordering::Relaxed);
        for (pod, expected) in [(&shuns, 1), (&other, 2), (&shuns, 1), (&other, 2)] {
            assert_eq!(takers(&profile, pod, &mut cluster, &mut cache), expected);
        }
        assert_eq!(cache.candidates.len(), 2);
    }

    /// Prefers no node; what it says may have to be prepared again for every pod.
    #[derive(Clone, Copy)]
    struct Prefers {
        follows_rows: bool,
    }

    impl Plugin for Prefers {
        fn name(&self) -> &'static str {
            "Prefers"
        }

        fn register(self: Arc<Self>) -> Registration {
            Registration::of(&self).score(&self).scheduling_signature(&self)
        }
    }

    impl Score for Prefers {
        fn prepare_score(&self, _: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
            Some(Box::new(*self))
        }
    }

    impl SchedulingSignature for Prefers {
        fn signature(&self) -> SignatureFields {
            SignatureFields::NONE
        }
    }

    impl NodeScore for Prefers {
        fn follows_rows(&self) -> bool {
            self.follows_rows
        }

        fn score(&self, _: &Cluster, _: Row) -> i64 {
            0
        }

        fn is_local(&self) -> bool {
            false
        }
    }

    #[test]
    fn workloads_share_what_is_known_of_nodes_after_a_score_was_prepared_again() {
        let plugins = [false, true].map(|follows_rows| Arc::new(Prefers { follows_rows }) as Arc<dyn Plugin>);
        let profile = Profile { scores: vec![(0, 1), (1, 1)], ..Profile::of("test", plugins.to_vec()) };
        let (mut cluster, mut cache) = (cluster(), CandidateCache::default());
        let (first, second) = (pod(&[("job", "1")]), pod(&[("job", "2")]));
        for pod in [&first, &first, &second, &first] {
            assert_eq!(takers(&profile, pod, &mut cluster, &mut cache), 2);
        }
        assert_eq!(cache.candidates.len(), 1);
    }

    #[test]
    fn templates_that_users_wrote_are_not_cached_for_long() {
        let ((profile, _), mut cluster, mut cache) =
            (profile(SignatureFields::All, 1), cluster(), CandidateCache::default());
        let (mut templates, text_length) = (Vec::new(), CandidateCache::TEXTS_MAX / 4);
        for number in 0..40 {
            let labels = [("job", &*number.to_string())].into_iter().collect();
            let template = Arc::new(Template { labels, text_length, ..Template::default() });
            templates.push(Arc::downgrade(&template));
            let pod = Arc::new(Pod { uid: Uid::from("p"), template, ..Pod::default() });
            takers(&profile, &pod, &mut cluster, &mut cache);
        }
        let kept: Vec<bool> = templates.iter().map(|template| template.strong_count() > 0).collect();
        assert_eq!((kept.iter().filter(|kept| **kept).count(), kept[39]), (4, true));
        let template = Arc::new(Template { text_length: 2 * CandidateCache::TEXTS_MAX, ..Template::default() });
        let pod = Arc::new(Pod { uid: Uid::from("p"), template, ..Pod::default() });
        takers(&profile, &pod, &mut cluster, &mut cache);
        assert_eq!(
            (cache.candidates.len(), cache.texts),
            (1, 2 * CandidateCache::TEXTS_MAX),
            "the last one is kept in any case"
        );
        cache.clear();
        assert_eq!(cache.texts, 0);
    }

    #[test]
    fn classes_that_share_are_forgotten_in_time() {
        let ((profile, _), mut cluster, mut cache) =
            (profile(SignatureFields::NONE, 0), cluster(), CandidateCache::default());
        for number in 0..5 * CandidateCache::SHARING * CandidateCache::candidates_max(&cluster) {
            takers(&profile, &pod(&[("job", &number.to_string())]), &mut cluster, &mut cache);
        }
        let max = CandidateCache::SHARING * CandidateCache::candidates_max(&cluster);
        assert!(cache.candidates.len() == 1 && cache.classes.len() <= max, "{}", cache.classes.len());
    }
}
