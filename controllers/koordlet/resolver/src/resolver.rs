//! What all strategies want, and the writes that follow from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    time::Duration,
};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Constraints, Reason, Target};
use koord_koordlet_system::{ReadError, Resource, Value};

use crate::{
    decide::{Decision, Wanted, decide},
    node_files::{NodeFiles, WriteError, quota_of},
    order::{Step, ordered},
};

/// Makes one value for each file of what strategies want, and writes it when the kernel shows another.
#[derive(Debug)]
pub struct Resolver {
    /// How often a file is compared with what it shall say, though nothing changed.
    verify_every: Duration,
    files: BTreeMap<Target, File>,
    /// Files that are looked at in the next pass.
    due: BTreeSet<Target>,
    /// Which files each strategy named last.
    named: BTreeMap<&'static str, BTreeSet<Target>>,
}

/// A file, and what is known of it.
#[derive(Clone, Debug, Default)]
pub struct File {
    wanted: Vec<Wanted>,
    decision: Option<Decision>,
    state: State,
    looked_at: Option<Moment>,
    /// How often in a row the file said something else than was written, without a change of what is wanted.
    reverts: u32,
}

/// How a file and what it shall say are related.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// It was not looked at yet.
    #[default]
    New,
    /// It says what it shall say.
    Agrees,
    /// Its cgroup is not there, or not any more.
    Gone { tries: u32, again: Moment },
    /// The kernel has no such file.
    Unsupported,
    /// The kernel, or the range of the file, refuses the value.
    Refused { reason: String, tries: u32, again: Option<Moment> },
    /// The kernel takes less than is wanted, and has that now.
    Cut { wanted: Value, taken: Value, reason: String },
    /// Another program writes the file, which is left to it.
    Foreign { theirs: Value },
}

/// A value that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub target: Target,
    /// What the file said before; `None` where it could not be read.
    pub before: Option<Value>,
    pub value: Value,
    pub strategy: &'static str,
    pub reason: Reason,
}

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// In the order in which it was written.
    pub written: Vec<Written>,
    /// Refusals that are new, with what the file should say.
    pub refused: Vec<(Target, Value, String)>,
    /// Files that another program has written for the third time.
    pub foreign: Vec<(Target, Value)>,
    /// How many files of the pass the kernel does not have.
    pub unsupported: usize,
}

/// After so many reverts a foreign writer is not fought any more.
const REVERTS_MAX: u32 = 3;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_mins(1);
const GONE_RETRY_MAX: Duration = Duration::from_secs(10);

impl Resolver {
    /// A resolver that compares each file with what it shall say this often.
    pub fn new(verify_every: Duration) -> Self {
        let (files, due, named) = Default::default();
        Self { verify_every, files, due, named }
    }

    /// Takes everything that a strategy wants now, in the place of what it wanted before. Files that it does not name any more are left as they are, unless
    /// another strategy wants something of them.
    pub fn submit(&mut self, strategy: &'static str, constraints: Constraints) {
        let mut before = self.named.remove(strategy).unwrap_or_default();
        let mut named = BTreeSet::new();
        for (target, wanted) in by_target(strategy, constraints) {
            before.remove(&target);
            self.want(&target, strategy, wanted);
            named.insert(target);
        }
        for target in before {
            self.want(&target, strategy, Vec::new());
        }
        self.named.insert(strategy, named);
    }

    /// Takes what a strategy wants of further files, beside what it wants already.
    pub fn submit_more(&mut self, strategy: &'static str, constraints: Constraints) {
        for (target, wanted) in by_target(strategy, constraints) {
            self.want(&target, strategy, wanted);
            self.named.entry(strategy).or_default().insert(target);
        }
    }

    /// Forgets everything about cgroups that are not there any more.
    pub fn forget(&mut self, is_gone: impl Fn(&Target) -> bool) {
        self.files.retain(|target, _| !is_gone(target));
        self.due.retain(|target| !is_gone(target));
        for named in self.named.values_mut() {
            named.retain(|target| !is_gone(target));
        }
    }

    /// Looks at the files again whose cgroups were not there: a pod has come.
    pub fn look_for_gone(&mut self) {
        let gone = self.files.iter().filter(|(_, file)| matches!(file.state, State::Gone { .. }));
        self.due.extend(gone.map(|(target, _)| target.clone()));
    }

    fn want(&mut self, target: &Target, strategy: &'static str, wanted: Vec<Wanted>) {
        let file = self.files.entry(target.clone()).or_default();
        let is_same = file.wanted.iter().filter(|other| other.strategy == strategy).eq(wanted.iter());
        if is_same && file.decision.is_some() {
            return;
        }
        file.wanted.retain(|other| other.strategy != strategy);
        file.wanted.extend(wanted);
        // The order of strategies decides between equal precedences, not the order in which they submit.
        file.wanted.sort_by_key(|wanted| wanted.strategy);
        if file.wanted.is_empty() {
            self.files.remove(target);
            self.due.remove(target);
        } else {
            self.due.insert(target.clone());
        }
    }

    /// The files that something is wanted of, in order.
    pub fn files(&self) -> impl Iterator<Item = (&Target, &File)> {
        self.files.iter()
    }

    /// A file that something is wanted of.
    pub fn file(&self, target: &Target) -> Option<&File> {
        self.files.get(target)
    }

    /// How many files all strategies name, one of several as often.
    pub fn named(&self) -> usize {
        self.named.values().map(BTreeSet::len).sum()
    }

    /// Whether the next pass has something to do at this time.
    pub fn is_due(&self, now: Moment) -> bool {
        !self.due.is_empty() || self.files.values().any(|file| file.is_due(now, self.verify_every))
    }

    /// Compares the files that are due with what they shall say, and writes those that differ: what is raised from parents to children, then what is lowered
    /// from children to parents. CPUs of a cgroup first become those that it has or shall have, and then those that it shall have.
    pub fn pass(&mut self, now: Moment, node: &mut dyn NodeFiles) -> Outcome {
        let mut due = std::mem::take(&mut self.due);
        let late = self.files.iter().filter(|(_, file)| file.is_due(now, self.verify_every));
        due.extend(late.map(|(target, _)| target.clone()));
        let mut outcome = Outcome::default();
        let mut steps = Vec::new();
        for target in due {
            if let Some(step) = self.look(&target, now, node, &mut outcome) {
                steps.push(step);
            }
        }
        for step in ordered(steps) {
            self.carry_out(step, now, node, &mut outcome);
        }
        outcome
    }

    /// Compares one file with what it shall say.
    fn look(&mut self, target: &Target, now: Moment, node: &dyn NodeFiles, outcome: &mut Outcome) -> Option<Step> {
        let file = self.files.get_mut(target)?;
        file.looked_at = Some(now);
        if !node.supports(target) {
            outcome.unsupported += 1;
            file.decision = decide(&file.wanted, None);
            file.state = State::Unsupported;
            return None;
        }
        let actual = match node.read(target) {
            Ok(value) => Some(value),
            Err(ReadError::Gone { .. }) => {
                file.decision = decide(&file.wanted, None);
                file.is_gone(now);
                return None;
            }
            // What cannot be read is written all the same: a text that is none is not what is wanted.
            Err(ReadError::Io { .. } | ReadError::Text { .. } | ReadError::Unsupported(_)) => None,
        };
        let decision = decide(&file.wanted, actual.as_ref());
        let is_changed = file.decision != decision;
        file.decision = decision;
        let value = &file.decision.as_ref()?.value;
        // No limit is written once, also over a number that means none, as the original does: what reads the file finds the same number on every node.
        let is_written_once = file.state == State::New && node.is_rounded(target, value);
        if actual.as_ref() == Some(value) && !is_written_once {
            file.agrees();
            return None;
        }
        match (&file.state, &actual) {
            // As long as the limit is the same. The quota may have changed.
            (State::Cut { taken, .. }, Some(actual))
                if !is_changed
                    && taken == actual
                    && cut(target, value, node).is_some_and(|(limit, _)| limit == *taken) =>
            {
                return None;
            }
            (State::Foreign { theirs }, Some(actual)) if !is_changed && theirs == actual => return None,
            (State::Agrees | State::Foreign { .. }, Some(actual)) if !is_changed => {
                file.reverts += 1;
                if file.reverts >= REVERTS_MAX {
                    if !matches!(file.state, State::Foreign { .. }) {
                        outcome.foreign.push((target.clone(), actual.clone()));
                    }
                    file.state = State::Foreign { theirs: actual.clone() };
                    return None;
                }
            }
            _ if is_changed => file.reverts = 0,
            _ => {}
        }
        Some(Step { target: target.clone(), value: value.clone(), actual })
    }

    fn carry_out(&mut self, step: Step, now: Moment, node: &mut dyn NodeFiles, outcome: &mut Outcome) {
        let Step { target, actual, value } = step;
        let Some(file) = self.files.get_mut(&target) else { return };
        let Some(decision) = file.decision.clone() else { return };
        let written = |value: Value| Written {
            target: target.clone(),
            before: actual.clone(),
            value,
            strategy: decision.strategy,
            reason: decision.bounded_by.as_ref().map_or(&decision.reason, |bound| &bound.1).clone(),
        };
        let mut result = node.write(&target, &value);
        if let Err(WriteError::Refused { .. }) = &result
            && let Some(lowered) = lower_burst(&target, &value, node)
        {
            outcome.written.push(Written { target: lowered.0, before: None, ..written(lowered.1) });
            result = node.write(&target, &value);
        }
        let error = match result {
            Ok(()) => {
                outcome.written.push(written(value.clone()));
                if decision.value == value {
                    file.state = State::Agrees;
                }
                // What the kernel takes of a burst may be another amount now.
                if let Some(burst) = burst_of(&target).filter(|burst| self.files.contains_key(burst)) {
                    self.due.insert(burst);
                }
                return;
            }
            Err(error) => error,
        };
        let reason = match error {
            WriteError::Gone { .. } => return file.is_gone(now),
            // Out of the range of the file: nothing but another value helps.
            WriteError::Value(error) => {
                outcome.refused.push((target.clone(), value, error.to_string()));
                file.state = State::Refused { reason: error.to_string(), tries: 1, again: None };
                return;
            }
            WriteError::Refused { source, .. } => source.to_string(),
        };
        if let Some((taken, limit)) = cut(&target, &value, node)
            && (actual.as_ref() == Some(&taken) || node.write(&target, &taken).is_ok())
        {
            let reason = format!("{reason}; {limit}");
            // The limit may change often; what is wanted changes with the objects.
            if !matches!(&file.state, State::Cut { wanted, .. } if *wanted == value) {
                outcome.refused.push((target.clone(), value.clone(), reason.clone()));
            }
            if actual.as_ref() != Some(&taken) {
                outcome.written.push(written(taken.clone()));
            }
            file.state = State::Cut { wanted: value, taken, reason };
            return;
        }
        let tries = if let State::Refused { tries, .. } = &file.state { tries + 1 } else { 1 };
        if tries == 1 {
            outcome.refused.push((target.clone(), value, reason.clone()));
        }
        file.state = State::Refused { reason, tries, again: Some(now + pause(tries, RETRY_MAX)) };
    }
}

impl File {
    /// What all strategies want of it.
    pub fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// What it shall say; `None` when it may say what it does.
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    fn agrees(&mut self) {
        self.state = State::Agrees;
    }

    fn is_gone(&mut self, now: Moment) {
        let tries = if let State::Gone { tries, .. } = self.state { tries + 1 } else { 1 };
        self.state = State::Gone { tries, again: now + pause(tries, GONE_RETRY_MAX) };
    }

    fn is_due(&self, now: Moment, verify_every: Duration) -> bool {
        match &self.state {
            State::Gone { again, .. } | State::Refused { again: Some(again), .. } => *again <= now,
            State::Refused { again: None, .. } => false,
            State::New | State::Agrees | State::Unsupported | State::Cut { .. } | State::Foreign { .. } => {
                self.looked_at.is_none_or(|at| now.since(at) > verify_every)
            }
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("not looked at yet"),
            Self::Agrees => f.write_str("in effect"),
            Self::Gone { .. } => f.write_str("its cgroup is not there"),
            Self::Unsupported => f.write_str("this kernel has no such file"),
            Self::Refused { reason, .. } => write!(f, "refused: {reason}"),
            Self::Cut { taken, reason, .. } => write!(f, "{taken} is in effect: {reason}"),
            Self::Foreign { theirs } => write!(f, "another program keeps writing {theirs}; it is not fought"),
        }
    }
}

fn by_target(strategy: &'static str, constraints: Constraints) -> BTreeMap<Target, Vec<Wanted>> {
    let mut by_target: BTreeMap<Target, Vec<Wanted>> = BTreeMap::new();
    for mut constraint in constraints.0 {
        let target = std::mem::replace(&mut constraint.target, Target::System(PathBuf::new()));
        by_target.entry(target).or_default().push(Wanted::new(strategy, constraint));
    }
    by_target
}

fn pause(tries: u32, longest: Duration) -> Duration {
    RETRY_FIRST.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(longest)
}

/// The burst of the cgroup of a quota.
fn burst_of(target: &Target) -> Option<Target> {
    match target {
        Target::Cgroup { cgroup, resource: Resource::CpuQuota } => {
            Some(Target::Cgroup { cgroup: cgroup.clone(), resource: Resource::CpuBurst })
        }
        _ => None,
    }
}

/// Lowers a burst above a quota that is to be written, which the kernel refuses otherwise; gives the burst that was written.
fn lower_burst(target: &Target, quota: &Value, node: &mut dyn NodeFiles) -> Option<(Target, Value)> {
    let burst = burst_of(target)?;
    let Value::Amount(quota_us) = *quota else { return None };
    let is_above = matches!(node.read(&burst), Ok(Value::Amount(burst_us)) if burst_us > quota_us);
    (is_above && node.write(&burst, quota).is_ok()).then(|| (burst, quota.clone()))
}

/// Which smaller value the kernel takes of one that it refused, and why.
fn cut(target: &Target, value: &Value, node: &dyn NodeFiles) -> Option<(Value, String)> {
    let Target::Cgroup { cgroup, resource: Resource::CpuBurst } = target else { return None };
    let quota = node.read(&quota_of(cgroup)).ok()?;
    let (quota_us, burst_us) = (quota.amount()?, value.amount()?);
    (quota != Value::Unlimited && burst_us > quota_us)
        .then(|| (Value::Amount(quota_us), format!("a burst is at most the quota, {quota_us} µs")))
}
