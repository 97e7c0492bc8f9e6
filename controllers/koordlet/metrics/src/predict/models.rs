//! Models of pods, of priority classes and of the node: training, saving, forgetting.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_types::priority::PriorityClass;

use super::{
    checkpoint::{Checkpoint, CheckpointError, CheckpointFolder},
    histogram::{Buckets, Histogram},
};
use crate::{
    ring::percentile,
    store::{Measure, Store, Subject},
};

/// How models are trained and saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSettings {
    pub cpu_half_life: Duration,
    pub memory_half_life: Duration,
    /// How often models are trained, and over which span of samples.
    pub training_interval: Duration,
    /// A model that was not trained for longer is forgotten.
    pub expiration: Duration,
    /// A model is saved when it was not for longer.
    pub checkpoint_interval: Duration,
    /// Most models that are saved at a time.
    pub checkpoints_max: usize,
}

/// The usage of a pod or of an item of the node over time.
#[derive(Clone, Debug)]
pub struct Model {
    cpu: Histogram,
    memory: Histogram,
    /// When it was trained last, by the monotonic clock: the time of day may be set back.
    trained: Moment,
    /// The time of day of that.
    updated: Timestamp,
    /// `None` when it never was.
    saved: Option<Moment>,
}

/// All models, by the uid of their pod or the name of their [item](node_item).
#[derive(Debug)]
pub struct Models {
    settings: ModelSettings,
    by_uid: BTreeMap<Arc<str>, Model>,
    has_trained: bool,
}

/// What a model predicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// Thousandths of CPUs.
    pub milli_cpu: Quantiles,
    /// Bytes.
    pub memory_bytes: Quantiles,
}

/// Usage that is not exceeded for a share of the time; what is not whole is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    pub p60: i64,
    pub p90: i64,
    pub p95: i64,
    pub p98: i64,
    pub max: i64,
}

/// The names of models that are not of a pod.
pub mod node_item {
    use koord_types::priority::PriorityClass;

    /// The node.
    pub const NODE: &str = "__node__";
    /// The node without its pods.
    pub const SYSTEM: &str = "__node-sys__";

    /// All pods of a class, or of none.
    pub fn of_class(class: Option<PriorityClass>) -> &'static str {
        match class {
            Some(PriorityClass::Prod) => "__node-koord-prod__",
            Some(PriorityClass::Mid) => "__node-koord-mid__",
            Some(PriorityClass::Batch) => "__node-koord-batch__",
            Some(PriorityClass::Free) => "__node-koord-free__",
            None => "__node-__",
        }
    }
}

const CLASSES: [Option<PriorityClass>; 5] =
    [Some(PriorityClass::Prod), Some(PriorityClass::Mid), Some(PriorityClass::Batch), Some(PriorityClass::Free), None];

impl Default for ModelSettings {
    /// As the original agent is set by default.
    fn default() -> Self {
        let minutes = Duration::from_mins;
        Self {
            cpu_half_life: minutes(12 * 60),
            memory_half_life: minutes(24 * 60),
            training_interval: minutes(1),
            expiration: minutes(30),
            checkpoint_interval: minutes(10),
            checkpoints_max: 12,
        }
    }
}

impl Models {
    pub fn new(settings: ModelSettings) -> Self {
        Self { settings, by_uid: BTreeMap::new(), has_trained: false }
    }

    /// Trains all models with the 90th percentile of the samples of one training interval up to now. Pods without samples of CPU or memory are left out, of
    /// sums too. The model of a class without pods is trained with 0, those of the node and of the system only when the node has samples.
    pub fn train(&mut self, store: &Store, pods: &[Arc<Pod>], now: Moment, at: Timestamp) {
        let p90 = |subject, measure| {
            let window = store.window(subject, measure, before(now, self.settings.training_interval), now);
            percentile(&window.sorted(), 0.9)
        };
        let usage = |subject| p90(subject, Measure::Cpu).zip(p90(subject, Measure::Memory));
        let mut sums = [(0.0, 0.0); CLASSES.len()];
        let mut trainings: Vec<(Arc<str>, (f64, f64))> = Vec::new();
        for pod in pods {
            let Some((cpu, memory)) = usage(Subject::Pod(&pod.uid)) else { continue };
            trainings.push((Arc::clone(&pod.uid), (cpu, memory)));
            let class = pod.priority_class();
            if let Some((_, sum)) = CLASSES.iter().zip(&mut sums).find(|(known, _)| **known == class) {
                *sum = (sum.0 + cpu, sum.1 + memory);
            }
        }
        let of_pods = sums.iter().fold((0.0, 0.0), |all, sum| (all.0 + sum.0, all.1 + sum.1));
        trainings.extend(CLASSES.into_iter().zip(sums).map(|(class, sum)| (node_item::of_class(class).into(), sum)));
        if let Some(node) = usage(Subject::Node) {
            let system = ((node.0 - of_pods.0).max(0.0), (node.1 - of_pods.1).max(0.0));
            trainings.extend([(node_item::NODE.into(), node), (node_item::SYSTEM.into(), system)]);
        }
        for (uid, (cpu, memory)) in trainings {
            let settings = &self.settings;
            let model = self.by_uid.entry(uid).or_insert_with(|| Model::new(settings, now, at));
            model.cpu.add(cpu, at);
            model.memory.add(memory, at);
            (model.trained, model.updated) = (now, at);
        }
        self.has_trained = true;
    }

    /// How many models there are, of pods and of items of the node.
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_uid.is_empty()
    }

    /// What the model of a pod or item predicts; `None` without a model.
    pub fn predict(&self, uid: &str) -> Option<Prediction> {
        let model = self.by_uid.get(uid)?;
        let quantiles = |histogram: &Histogram, unit: f64| {
            let at = |share| (histogram.percentile(share) * unit) as i64;
            Quantiles { p60: at(0.6), p90: at(0.9), p95: at(0.95), p98: at(0.98), max: at(1.0) }
        };
        Some(Prediction { milli_cpu: quantiles(&model.cpu, 1000.0), memory_bytes: quantiles(&model.memory, 1.0) })
    }

    /// Whether models were trained since the start.
    pub fn has_trained(&self) -> bool {
        self.has_trained
    }

    /// The uids and items that have models, in order.
    pub fn uids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_uid.keys()
    }

    /// Takes the models that were saved, for a start. Checkpoints of pods that are gone, and of what is no model, are removed; the latter are errors, too.
    pub fn restore(
        &mut self,
        folder: &CheckpointFolder,
        pods: &[Arc<Pod>],
        now: Moment,
        at: Timestamp,
    ) -> Vec<CheckpointError> {
        let (checkpoints, mut errors) = folder.read_all();
        let mut known: BTreeSet<&str> = pods.iter().map(|pod| &*pod.uid).collect();
        known.extend([node_item::NODE, node_item::SYSTEM]);
        known.extend(CLASSES.map(node_item::of_class));
        for (uid, checkpoint) in checkpoints {
            if !known.contains(&*uid) {
                errors.extend(folder.remove(&uid).err());
                continue;
            }
            match Model::restore(&self.settings, &checkpoint, now, at) {
                Ok(model) => {
                    self.by_uid.insert(uid.into(), model);
                }
                Err((resource, source)) => {
                    errors.extend(folder.remove(&uid).err());
                    errors.extend(folder.file(&uid).map(|path| CheckpointError::Histogram { path, resource, source }));
                }
            }
        }
        errors
    }

    /// Forgets models that were not trained for long, with their checkpoints, and saves those that were not saved for long, oldest first. It is called once a
    /// minute; without a folder nothing is saved.
    pub fn maintain(&mut self, folder: Option<&CheckpointFolder>, now: Moment) -> Vec<CheckpointError> {
        let mut errors = Vec::new();
        let Self { settings, by_uid: models, .. } = self;
        models.retain(|uid, model| {
            let is_kept = now.since(model.trained) <= settings.expiration;
            if !is_kept && let Some(folder) = folder {
                errors.extend(folder.remove(uid).err());
            }
            is_kept
        });
        let Some(folder) = folder else { return errors };
        let is_due = |model: &Model| model.saved.is_none_or(|saved| now.since(saved) >= settings.checkpoint_interval);
        let mut due: Vec<_> = models.iter_mut().filter(|(_, model)| is_due(model)).collect();
        due.sort_by_key(|(_, model)| model.saved);
        for (uid, model) in due.into_iter().take(settings.checkpoints_max) {
            match folder.write(uid, &model.checkpoint(uid)) {
                Ok(()) => model.saved = Some(now),
                Err(error) => {
                    let is_of_folder = matches!(error, CheckpointError::Io { .. });
                    errors.push(error);
                    if is_of_folder {
                        // The next one would fail in the same way: the disk is full, or the folder is gone.
                        break;
                    }
                    model.saved = Some(now);
                }
            }
        }
        errors
    }
}

impl Model {
    fn new(settings: &ModelSettings, now: Moment, at: Timestamp) -> Self {
        Self {
            cpu: Histogram::new(Buckets::CPU, settings.cpu_half_life),
            memory: Histogram::new(Buckets::MEMORY, settings.memory_half_life),
            trained: now,
            updated: at,
            saved: None,
        }
    }

    fn restore(
        settings: &ModelSettings,
        checkpoint: &Checkpoint,
        now: Moment,
        at: Timestamp,
    ) -> Result<Self, (&'static str, super::histogram::HistogramError)> {
        let mut model = Self { saved: Some(now), ..Self::new(settings, now, at) };
        if let Some(cpu) = &checkpoint.cpu {
            model.cpu =
                Histogram::restore(Buckets::CPU, settings.cpu_half_life, cpu, at).map_err(|error| ("CPU", error))?;
        }
        if let Some(memory) = &checkpoint.memory {
            let restored = Histogram::restore(Buckets::MEMORY, settings.memory_half_life, memory, at);
            model.memory = restored.map_err(|error| ("Memory", error))?;
        }
        Ok(model)
    }

    fn checkpoint(&self, uid: &str) -> Checkpoint {
        Checkpoint {
            uid: uid.to_owned(),
            cpu: Some(self.cpu.checkpoint()),
            memory: Some(self.memory.checkpoint()),
            last_updated: Some(self.updated),
        }
    }
}

/// A moment before another, or the origin of the clock.
fn before(now: Moment, span: Duration) -> Moment {
    Moment::at(now.since(Moment::default()).saturating_sub(span))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::collect::tree::{at as moment, plain_pods as pods};

    const NOON: &str = "2026-03-01T12:00:00Z";

    fn later(seconds: i64) -> Timestamp {
        let noon: Timestamp = NOON.parse().unwrap();
        noon + jiff::SignedDuration::from_secs(seconds)
    }

    fn store(samples: &[(Subject<'_>, f64, f64)]) -> Store {
        store_from(0, samples)
    }

    fn store_from(first: u64, samples: &[(Subject<'_>, f64, f64)]) -> Store {
        let mut store = Store::default();
        for second in first + 1..=first + 60 {
            for (subject, cpu, memory) in samples {
                store.append(*subject, Measure::Cpu, moment(second), *cpu);
                store.append(*subject, Measure::Memory, moment(second), *memory);
            }
        }
        store
    }

    fn trained(folder_pods: &[Arc<Pod>]) -> Models {
        let mut models = Models::new(ModelSettings::default());
        let store = store(&[(Subject::Node, 2.0, 1e9), (Subject::Pod("a"), 1.0, 1e8), (Subject::Pod("b"), 0.5, 1e7)]);
        models.train(&store, folder_pods, moment(60), later(0));
        models
    }

    fn names(folder: &std::path::Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn pods_classes_the_node_and_the_system_are_trained() {
        let pods = pods(&["a LS Burstable {}", "b BE BestEffort {}", "without-samples LS Burstable {}"]);
        let models = trained(&pods);
        let cpu = |uid: &str| models.predict(uid).map(|prediction| prediction.milli_cpu.p95);
        let end = |value: f64| Some((Buckets::CPU.start(Buckets::CPU.of(value) + 1) * 1000.0) as i64);
        for (uid, value) in [
            ("a", end(1.0)),
            ("b", end(0.5)),
            (node_item::NODE, end(2.0)),
            (node_item::SYSTEM, end(0.5)),
            ("__node-koord-prod__", end(1.0)),
            ("__node-koord-batch__", end(0.5)),
            ("__node-koord-mid__", Some(25)),
            ("__node-__", Some(25)),
            ("without-samples", None),
        ] {
            assert_eq!(cpu(uid), value, "{uid}");
        }
        let mut without_node = Models::new(ModelSettings::default());
        without_node.train(&Store::default(), &pods, moment(60), later(0));
        assert!(without_node.has_trained() && without_node.predict(node_item::SYSTEM).is_none());
        assert_eq!(without_node.predict("__node-koord-prod__").map(|prediction| prediction.milli_cpu.max), Some(25));
    }

    #[test]
    fn models_are_saved_and_taken_over_by_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let (checkpoints, pods) = (CheckpointFolder::new(folder.path().to_owned()), pods(&["a LS Burstable {}"]));
        let mut models = trained(&pods);
        assert!(models.maintain(Some(&checkpoints), moment(120)).is_empty());
        let items = ["__node-__", "__node-koord-batch__", "__node-koord-free__", "__node-koord-mid__"];
        let saved = [&["a"][..], &items, &["__node-koord-prod__", "__node-sys__", "__node__"]].concat();
        let mut sorted = saved.clone();
        sorted.sort_unstable();
        assert_eq!(names(folder.path()), sorted);
        let text = fs::read_to_string(folder.path().join("a")).unwrap();
        assert_eq!(
            text,
            r#"{"UID":"a","CPU":{"referenceTimestamp":"2026-03-01T12:00:00Z","bucketWeights":{"22":10000},"totalWeight":1.0},"Memory":{"referenceTimestamp":"2026-03-02T00:00:00Z","bucketWeights":{"13":10000},"totalWeight":0.7071067811865476},"LastUpdated":"2026-03-01T12:00:00Z"}"#
        );
        let mut next = Models::new(ModelSettings::default());
        assert!(next.restore(&checkpoints, &pods, moment(180), later(120)).is_empty());
        assert!(next.uids().eq(models.uids()) && !next.has_trained());
        assert_eq!(next.predict("a"), models.predict("a"));
        // A pod that is gone is not taken over.
        assert!(next.restore(&checkpoints, &[], moment(180), later(120)).is_empty());
        assert!(!folder.path().join("a").exists());
    }

    #[test]
    fn what_is_no_checkpoint_is_removed_and_named() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("__node-sys__", "not json"),
            ("__node__", "{}"),
            ("nobody", "{}"),
            ("x.tmp", "{}"),
            ("__node-__", r#"{"CPU":{"bucketWeights":{"158":1},"totalWeight":1}}"#),
            (
                "__node-koord-mid__",
                r#"{"uid":"x","memory":{"BUCKETWEIGHTS":{"1":3},"totalWeight":2,"referenceTimestamp":null},"lastUpdated":"0001-01-01T00:00:00Z"}"#,
            ),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let checkpoints = CheckpointFolder::new(folder.path().to_owned());
        let mut models = Models::new(ModelSettings::default());
        let errors = models.restore(&checkpoints, &[], moment(0), later(0));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].contains("__node-sys__ is removed: it is no checkpoint"), "{errors:?}");
        assert!(
            errors[1].ends_with("__node-__ is removed: CPU: bucket 158 is outside of the 158 buckets"),
            "{errors:?}"
        );
        assert_eq!(names(folder.path()), ["__node-koord-mid__", "__node__"]);
        assert_eq!(models.predict("__node__"), Some(Prediction::default()));
        let memory = models.predict("__node-koord-mid__").unwrap().memory_bytes;
        assert_eq!(memory.max, Buckets::MEMORY.start(2) as i64);
        let nowhere = CheckpointFolder::new(folder.path().join("missing"));
        assert!(models.restore(&nowhere, &[], moment(0), later(0)).is_empty());
        assert_eq!(models.maintain(Some(&nowhere), moment(600)).len(), 1, "the folder is named once");
    }

    #[test]
    fn a_few_models_are_saved_at_a_time_and_old_ones_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = CheckpointFolder::new(folder.path().to_owned());
        let pods = pods(&["a LS Burstable {}", "b BE BestEffort {}"]);
        let mut models = trained(&pods);
        models.settings.checkpoints_max = 5;
        for (minute, files) in [(1, 5), (2, 9), (3, 9)] {
            models.maintain(Some(&checkpoints), moment(60 + minute * 60));
            assert_eq!(names(folder.path()).len(), files, "minute {minute}");
        }
        // The time of day was set back by an hour meanwhile.
        let store = store_from(1800, &[(Subject::Node, 2.0, 1e9), (Subject::Pod("a"), 1.0, 1e8)]);
        models.train(&store, &pods[..1], moment(1860), later(-1800));
        models.maintain(Some(&checkpoints), moment(1861));
        assert!(models.predict("b").is_none() && !folder.path().join("b").exists());
        assert!(models.predict("a").is_some());
        assert!(models.maintain(None, moment(1861)).is_empty());
    }
}
