//! Many runs: the seeds that go wrong, of which the shortest story is shown.

use std::{collections::BTreeMap, env, error::Error, fmt};

use crate::{Failure, Fault, Options, Report, Simulation};

/// After so many seeds that went wrong, no others are begun.
const FAILURES_MAX: usize = 3;
/// The variable that names the one seed to play.
const SEED: &str = "SEED";

/// What good runs were like, all together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Seeds that were played.
    pub seeds: u64,
    /// Writes that were carried out, by users and the operator.
    pub writes: u64,
    /// What went wrong, and how often.
    pub faults: BTreeMap<Fault, u64>,
}

/// A seed that went wrong, cut to the shortest beginning that still does.
#[derive(Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// What is wrong, and the end of the story.
    pub failure: Failure,
    /// Faults stop after so many writes ([`Options::writes`]).
    pub writes: u64,
}

/// Why seeds were not all good. As [`fmt::Debug`], which tests show of an error, it reads as it does as [`fmt::Display`].
#[derive(Clone, PartialEq, Eq)]
pub enum Failed {
    /// A seed went wrong.
    Wrong(Box<Counterexample>),
    /// The variable `SEED` holds this, which is no number.
    NoSeed(String),
}

impl Simulation<'_> {
    /// Plays so many seeds, or the one that the variable `SEED` names. Of up to three that go wrong the one with the shortest story is shown.
    pub fn play(&self, seeds: u64) -> Result<Played, Failed> {
        match env::var(SEED) {
            Err(_) => self.play_seeds(0..seeds),
            Ok(text) => match text.trim().parse::<u64>() {
                Ok(seed) => self.play_seeds([seed]),
                Err(_) => Err(Failed::NoSeed(text)),
            },
        }
    }

    /// Plays these seeds, the first of them twice: it must give the same run.
    pub fn play_seeds(&self, seeds: impl IntoIterator<Item = u64>) -> Result<Played, Failed> {
        let (mut played, mut wrong) = (Played::default(), Vec::new());
        for seed in seeds {
            match self.run_like_before(seed, played.seeds == 0) {
                Ok(report) => played.add(report),
                Err(failure) => wrong.push(self.cut(failure)),
            }
            if wrong.len() == FAILURES_MAX {
                break;
            }
        }
        match wrong.into_iter().min_by_key(|found| found.writes) {
            None => Ok(played),
            Some(shortest) => Err(Failed::Wrong(Box::new(shortest))),
        }
    }

    fn run_like_before(&self, seed: u64, twice: bool) -> Result<Report, Failure> {
        let run = || self.run(seed, Options::default());
        let first = run()?;
        if twice && run()? != first {
            let what = "two runs differ: something reads a clock, randomness or a map without order of its own";
            return Err(Failure { seed, what: what.to_owned(), story: String::new() });
        }
        Ok(first)
    }

    /// The same seed with the fewest writes before the faults stop that are found to go wrong: twice as many each time until it does,
    /// then half of what lies between. As long as its faults go on, a shorter run is the beginning of a longer one.
    fn cut(&self, failure: Failure) -> Counterexample {
        let (seed, full) = (failure.seed, Options::default());
        let wrong = |writes| self.run(seed, Options { writes, ..full }).err();
        let (mut good, mut found) = (0, Counterexample { failure, writes: full.writes });
        let doubled = std::iter::successors(Some(0_u64), |writes| Some((writes * 2).max(1)));
        for writes in doubled.take_while(|writes| *writes < full.writes) {
            if let Some(failure) = wrong(writes) {
                found = Counterexample { failure, writes };
                break;
            }
            good = writes;
        }
        while found.writes - good > 1 {
            let middle = good + (found.writes - good) / 2;
            match wrong(middle) {
                Some(failure) => found = Counterexample { failure, writes: middle },
                None => good = middle,
            }
        }
        found
    }
}

impl Played {
    fn add(&mut self, report: Report) {
        self.seeds += 1;
        self.writes += report.writes;
        for (fault, times) in report.faults {
            *self.faults.entry(fault).or_default() += times;
        }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, what, story } = &self.failure;
        writeln!(f, "{what}")?;
        writeln!(f, "seed {seed}, whose faults may stop after {} writes; {SEED}={seed} plays it alone", self.writes)?;
        write!(f, "what happened last, by seconds:\n{story}")
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(found) => found.fmt(f),
            Self::NoSeed(text) => write!(f, "{SEED}={text} is not a number"),
        }
    }
}

impl fmt::Debug for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Failed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failing_test_shows_is_the_story() {
        let failure = Failure { seed: 17, what: "no card".to_owned(), story: "  1.000 life 1\n".to_owned() };
        let shown = format!("{:?}", Failed::Wrong(Box::new(Counterexample { failure, writes: 5 })));
        let wanted = "no card\nseed 17, whose faults may stop after 5 writes; SEED=17 plays it alone\nwhat happened last, by seconds:\n  1.000 life 1\n";
        assert_eq!(shown, wanted);
        assert_eq!(Failed::NoSeed("x".to_owned()).to_string(), "SEED=x is not a number");
    }
}
