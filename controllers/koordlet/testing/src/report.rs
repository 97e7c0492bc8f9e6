//! Plays many cases, and compares the differences with those that are known.

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    agent::Start,
    case::{Case, Corpus},
    compare::{Difference, compare, lines},
    fixtures::Fixtures,
    known::parse_known,
    play::play,
};

/// What became of a case.
#[derive(Debug)]
pub enum Outcome {
    Passed,
    /// What differs from the recording.
    Differs(Vec<Difference>),
    /// The agent panicked, with this message.
    Panicked(String),
    /// The case is not played, for this reason.
    Skipped(&'static str),
}

/// The outcomes of cases, by `group/name`.
#[derive(Debug, Default)]
pub struct Report {
    pub outcomes: BTreeMap<String, Outcome>,
}

/// Plays a case.
pub fn check(case: &Case, fixtures: &Fixtures, start: Start<'_>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(|| compare(case, &play(case, fixtures, start)))) {
        Ok(differences) if differences.is_empty() => Outcome::Passed,
        Ok(differences) => Outcome::Differs(differences),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| panic.downcast_ref::<&str>().map(|message| (*message).to_owned()));
            Outcome::Panicked(message.unwrap_or_default())
        }
    }
}

/// Whether a case is played by the environment: `GROUP=name` chooses a group, `CASE=group/name` one case; without them all are.
pub fn is_chosen(case: &Case) -> bool {
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|wanted| wanted == value);
    let is_set = |variable: &str| std::env::var_os(variable).is_some();
    (!is_set("GROUP") || is("GROUP", &case.group)) && (!is_set("CASE") || is("CASE", &case.id()))
}

/// Plays cases on all CPUs. Those of the second list are skipped: `group/name` and the reason.
pub fn check_all(corpus: &Corpus, cases: &[Case], skipped: &[(&str, &'static str)], start: Start<'_>) -> Report {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let fixtures = Fixtures::in_folder(corpus.fixtures());
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let skip = skipped.iter().find(|(name, _)| *name == case.id());
                    let outcome =
                        skip.map_or_else(|| check(case, &fixtures, start), |(_, reason)| Outcome::Skipped(reason));
                    outcomes.lock().unwrap().insert(case.id(), outcome);
                }
            });
        }
    });
    Report { outcomes: outcomes.into_inner().unwrap() }
}

impl Report {
    /// What is wrong: cases that differ and are not known to, and cases that are known to differ and do not. The known ones come as lines
    /// `group/name POINTER…: reason`, where a pointer is a pattern of what may differ and none stands for everything; a line that begins with `#` is a
    /// comment. Known cases that were not played are not looked at.
    ///
    /// # Errors
    ///
    /// The text names all that is wrong.
    pub fn judge(&self, known: &str) -> Result<(), String> {
        let known = parse_known(known)?;
        let mut wrong = Vec::new();
        for (name, outcome) in &self.outcomes {
            let known = known.get(name.as_str());
            match (outcome, known) {
                (Outcome::Differs(differences), known) => {
                    let is_new = |difference: &&Difference| known.is_none_or(|known| !known.has(difference));
                    let new: Vec<Difference> = differences.iter().filter(is_new).cloned().collect();
                    if !new.is_empty() {
                        let shown: Vec<String> =
                            lines(&new).iter().take(8).map(|line| format!("\n    {line}")).collect();
                        wrong.push(format!("{name} differs:{}", shown.concat()));
                    }
                    for pattern in known.into_iter().flat_map(|known| known.unused(differences)) {
                        wrong.push(format!("{name} is known to differ in {pattern}, and does not"));
                    }
                }
                (Outcome::Panicked(message), _) => wrong.push(format!("{name} panicked: {message}")),
                (Outcome::Passed, Some(_)) => wrong.push(format!("{name} is known to differ, and passes")),
                (Outcome::Skipped(_), Some(_)) => wrong.push(format!("{name} is known to differ, and is not played")),
                _ => {}
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("{self}\n{}", wrong.join("\n"))) }
    }

    /// How many passed, differ (panics among them), and were skipped.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&Outcome) -> bool| self.outcomes.values().filter(|outcome| is(outcome)).count();
        let (passed, skipped) = (
            count(|outcome| matches!(outcome, Outcome::Passed)),
            count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        );
        (passed, self.outcomes.len() - passed - skipped, skipped)
    }
}

/// Counts, in all and by group.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for (name, outcome) in &self.outcomes {
            let group = groups.entry(name.split('/').next().unwrap_or_default()).or_default();
            match outcome {
                Outcome::Passed => group[0] += 1,
                Outcome::Differs(_) | Outcome::Panicked(_) => group[1] += 1,
                Outcome::Skipped(_) => group[2] += 1,
            }
        }
        for (group, [passed, differ, skipped]) in groups {
            writeln!(f, "{group:12} {passed:4} pass {differ:4} differ {skipped:4} skipped")?;
        }
        let (passed, differ, skipped) = self.counts();
        write!(f, "{passed} pass, {differ} differ, {skipped} skipped")
    }
}

/// Cases about what only a process has, and the reason. The driver of the recordings plays them with the program.
pub const PROCESS_CASES: &[(&str, &str)] = &[
    ("process/process-addr-in-use", "an address that cannot be bound"),
    ("process/process-hook-socket-dir-missing", "a socket that cannot be bound"),
    ("process/process-no-kubeconfig", "a kubeconfig that is not there"),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Report {
        let case = Case { recorded: json!({"alive": true}), ..Case::default() };
        let differs = Outcome::Differs(compare(&case, &json!({"alive": false})));
        let outcomes = [("a/passes", Outcome::Passed), ("a/differs", differs), ("b/skipped", Outcome::Skipped("x"))];
        Report { outcomes: outcomes.into_iter().map(|(name, outcome)| (name.to_owned(), outcome)).collect() }
    }

    #[test]
    fn only_known_differences_are_accepted_and_only_while_they_last() {
        let error = |known: &str| report().judge(known).unwrap_err();
        assert!(report().judge("# a comment\n\na/differs: a reason: with a colon\nc/not-played: x\n").is_ok());
        assert!(error("").contains("a/differs differs:\n    /alive: recorded true, seen false"));
        assert!(error("a/differs: x\na/passes: y").contains("a/passes is known to differ, and passes"));
        assert!(error("a/differs: x\nb/skipped: y").contains("b/skipped is known to differ, and is not played"));
        assert_eq!(error("a/differs"), "no reason: a/differs");
        assert_eq!(error("a/differs: x\na/differs /alive: y"), "named twice: a/differs");
        assert!(report().judge("a/differs /al*: a reason").is_ok());
        assert!(
            error("a/differs /alive /files/*: x").ends_with("a/differs is known to differ in /files/*, and does not")
        );
        assert!(error("a/differs /files/*: x").contains("a/differs differs:\n    /alive"));
        assert!(error("").contains("a               1 pass    1 differ    0 skipped\n"));
    }
}
