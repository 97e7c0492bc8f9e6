//! When runs are due: the schedules of robfig/cron's standard parser, in UTC.

use std::{iter, str::FromStr};

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions, parse_crontab_with};
use koord::Duration;
use koord::jiff::{SignedDuration, Timestamp};

/// So many missed runs are looked at; more of them are a sign of a wrong clock.
const MISSED_MAX: usize = 100;

/// When runs are due.
pub enum Schedule {
    /// At the minutes that match cron's five fields.
    Fields(Crontab),
    /// So long after the run before, in whole seconds.
    Every(SignedDuration),
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(delay) = text.strip_prefix("@every ") {
            let delay = delay.parse::<Duration>().map_err(|error| error.to_string())?;
            let seconds = SignedDuration::from_nanos(delay.as_nanos()).as_secs();
            return Ok(Self::Every(SignedDuration::from_secs(seconds.max(1))));
        }
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            fields => fields,
        };
        let fields = fields.split_whitespace().map(|field| if field == "?" { "*" } else { field });
        let fields: Vec<&str> = fields.collect();
        if fields.len() != 5 {
            return Err(format!("expected exactly 5 fields, found {}: {text}", fields.len()));
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        parse_crontab_with(&fields.join(" "), options).map(Self::Fields).map_err(|error| {
            // Only the last of its lines says what is wrong; the others show where.
            error.to_string().rsplit("^ ").next().unwrap_or_default().to_owned()
        })
    }
}

impl Schedule {
    /// The first run after a time; none where no run ever comes, as on February 30.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Fields(crontab) => crontab.find_next(time).ok().map(|next| next.timestamp()),
            Self::Every(delay) => Timestamp::from_second(time.as_second()).ok()?.checked_add(*delay).ok(),
        }
    }

    /// The latest run after `since` and not after `now`. Fails where there are too many of them.
    pub fn latest(&self, since: Timestamp, now: Timestamp) -> Result<Option<Timestamp>, String> {
        let runs = iter::successors(self.next_after(since), |run| self.next_after(*run));
        let mut missed = runs.take_while(|run| *run <= now);
        let latest = missed.by_ref().take(MISSED_MAX).last();
        match missed.next() {
            None => Ok(latest),
            Some(_) => Err(format!(
                "more than {MISSED_MAX} runs were missed; set or decrease spec.startingDeadlineSeconds, or check the clocks"
            )),
        }
    }
}
