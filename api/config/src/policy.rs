//! Policies of kubernetes-sigs/descheduler, `DeschedulerPolicy` of `descheduler/v1alpha1` and `descheduler/v1alpha2`, as configurations of
//! koord-descheduler (`spec/descheduler.md` 1.8 and 1.9).
//!
//! A policy is read strictly by its type, translated, and checked as the configuration that it becomes; every mistake is reported at its place in the
//! policy. What a policy asks for and the configuration does not do is a [`Note`].

mod arguments;
mod builder;
mod evictor;
mod from_v1alpha1;
mod from_v1alpha2;
mod v1alpha1;
mod v1alpha2;

use koord_configuration::{Configuration, Effective, Origin, Problem, Step, nearest, read, schema};
use serde_json::Value;

use self::{
    builder::{Builder, Place},
    evictor::check_migration,
};
pub use self::{
    evictor::Evictor,
    v1alpha1::{
        FailedPods, NodeResourceUtilizationThresholds, Parameters, PodLifeTime, PodsHavingTooManyRestarts,
        PolicyV1alpha1, RemoveDuplicates, Strategy,
    },
    v1alpha2::{MetricsCollector, PolicyPluginSet, PolicyPlugins, PolicyProfile, PolicyV1alpha2},
};
use crate::descheduler::{self, DeschedulerConfiguration};

/// A policy as a configuration.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The DeschedulerConfiguration, without what is not set.
    pub document: Value,
    /// What the configuration does otherwise than the policy, in the order of the policy.
    pub notes: Vec<Note>,
    /// Where its parts come from.
    places: Vec<Place>,
}

/// Something of a policy that its configuration does otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub consequence: Consequence,
    /// Where it stands in the policy, what happens to it, and what to do.
    pub problem: Problem,
}

/// What becomes of a field of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The configuration does not have it.
    Lost,
    /// The configuration does something else.
    Changed,
    /// It has no effect in kubernetes-sigs/descheduler either.
    Unused,
}

impl Consequence {
    /// The word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Changed => "changed",
            Self::Unused => "unused",
        }
    }
}

/// Translates a policy.
///
/// # Errors
///
/// What is wrong with the policy, each mistake at its place: what its type refuses, what has no counterpart, and what the configuration would
/// refuse.
pub fn translate(policy: &Value, evictor: Evictor) -> Result<Translation, Vec<Problem>> {
    let mut builder = Builder::new(evictor);
    if is::<PolicyV1alpha1>(policy) {
        let read = read(policy).map_err(explained::<PolicyV1alpha1, PolicyV1alpha2>)?;
        from_v1alpha1::translate(&read, policy, &mut builder);
    } else {
        let read = read(policy).map_err(explained::<PolicyV1alpha2, PolicyV1alpha1>)?;
        from_v1alpha2::translate(&read, &mut builder);
    }
    let (translation, mut problems) = builder.finish();
    let of_configuration = read::<DeschedulerConfiguration>(&translation.document).err().unwrap_or_default();
    for problem in of_configuration.into_iter().chain(check_migration(&translation.document)) {
        let problem = translation.placed(problem);
        // What the translation reports itself it says better.
        if problems.iter().all(|known| known.path != problem.path) {
            problems.push(problem);
        }
    }
    if problems.is_empty() { Ok(translation) } else { Err(problems) }
}

/// A policy says nothing of the time between passes: kubernetes-sigs/descheduler takes it from a flag. `configuration` is the translated document,
/// with what flags have set.
pub fn interval_note(configuration: &Value) -> Option<Note> {
    configuration["deschedulingInterval"].is_null().then(|| {
        changed(
            "a policy has no deschedulingInterval: one pass is made, and the process runs on, where that of kubernetes-sigs/descheduler ends",
            "set deschedulingInterval, such as 5m, or run with --descheduling-interval",
        )
    })
}

/// A policy says nothing of leader election either. `configuration` is the translated document, with what flags have set.
pub fn election_note(configuration: &Value) -> Option<Note> {
    configuration["leaderElection"]["leaderElect"].is_null().then(|| {
        changed(
            "leader election is on, with the Lease koord-descheduler in koordinator-system; that of kubernetes-sigs/descheduler is off unless a flag switches it on",
            "to change it, set leaderElection, or run with --leader-elect=false",
        )
    })
}

/// A note about the process.
fn changed(message: &str, remedy: &str) -> Note {
    let problem = Problem { path: Vec::new(), message: message.to_owned(), suggestion: Some(remedy.to_owned()) };
    Note { consequence: Consequence::Changed, problem }
}

impl Translation {
    /// What is in force with the configuration, and where in the policy each value comes from.
    pub(crate) fn effective(&self, complete: Value) -> Effective {
        let mut effective = Effective::new(complete, &self.document, DeschedulerConfiguration::ITEM_KEYS);
        for (_, origin) in &mut effective.leaves {
            if let Origin::Document(path) = origin {
                *origin = self.source_of(path).map_or(Origin::Default, Origin::Document);
            }
        }
        effective
    }

    /// What the configuration does otherwise, and what of it has no effect, at their places in the policy.
    pub(crate) fn warnings(&self) -> Vec<Problem> {
        let of_configuration = descheduler::warnings(&self.document).into_iter().map(|problem| self.placed(problem));
        self.notes.iter().map(|note| note.problem.clone()).chain(of_configuration).collect()
    }

    /// A problem of the configuration as one of the policy.
    fn placed(&self, problem: Problem) -> Problem {
        Problem { path: self.source_of(&problem.path).unwrap_or_default(), ..problem }
    }

    /// The place in the policy of a place in the configuration; `None` for what the translation adds.
    pub(crate) fn source_of(&self, path: &[Step]) -> Option<Vec<Step>> {
        let places = self.places.iter().filter(|place| path.starts_with(&place.target));
        let nearest = places.max_by_key(|place| place.target.len())?;
        let rest = &path[nearest.target.len()..];
        Some(nearest.source.iter().chain(rest.iter().filter(|_| nearest.has_same_fields)).cloned().collect())
    }
}

/// Whether a document is of the version and kind of a type.
fn is<T: Configuration>(document: &Value) -> bool {
    document["apiVersion"] == T::API_VERSION && document["kind"] == T::KIND
}

/// Problems of a policy with what users of kubernetes-sigs/descheduler may have meant: fields of the other version, and of flags.
fn explained<T: Configuration, Other: Configuration>(mut problems: Vec<Problem>) -> Vec<Problem> {
    for problem in &mut problems {
        let [Step::Key(field)] = problem.path.as_slice() else { continue };
        if problem.message == "unknown field" {
            let suggestion = of_other_version::<T, Other>(field).or_else(|| of_flag(field));
            problem.suggestion = suggestion.or(problem.suggestion.take());
        }
    }
    problems
}

fn of_other_version<T: Configuration, Other: Configuration>(field: &str) -> Option<String> {
    schema::<Other>()["properties"].get(field)?;
    let (here, there) = (T::API_VERSION, Other::API_VERSION);
    Some(format!(
        "{field} is a field of {there}, and this is {here}: a policy is of one version; write all of it in {there}"
    ))
}

fn of_flag(field: &str) -> Option<String> {
    let configuration = schema::<DeschedulerConfiguration>();
    if configuration["properties"].get(field).is_some() {
        let remedy = "koordctl convert -f FILE makes one of the policy";
        return Some(format!("a policy has no {field}; a DeschedulerConfiguration has: {remedy}"));
    }
    let mut known = configuration["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    known.find(|known| known.eq_ignore_ascii_case(field)).and_then(|known| nearest(field, [known]))
}
