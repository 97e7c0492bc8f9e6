//! The query of a list or a watch.

use std::{fmt::Write as _, time::Duration};

use super::{Ask, Selection};
use crate::random::Random;

/// Grows parameter by parameter.
pub(super) struct Query(String);

impl Query {
    /// The server is asked to end a watch after 240 s to 300 s, so that load spreads anew now and then.
    const WATCH_TIME: Duration = Duration::from_mins(4);
    const IDLE_MARGIN: Duration = Duration::from_secs(5);

    pub(super) fn of(selection: &Selection) -> Self {
        let mut query = Self(String::new());
        if !selection.fields.is_empty() {
            query.add("fieldSelector", &selection.fields);
        }
        if !selection.labels.is_empty() {
            query.add("labelSelector", &selection.labels);
        }
        query
    }

    pub(super) fn add(&mut self, name: &str, value: &str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => self.0.push(char::from(byte)),
                _ => {
                    // Writing into a String cannot fail.
                    let _ = write!(self.0, "%{byte:02X}");
                }
            }
        }
        self
    }

    /// As the query of a list.
    pub(super) fn list(self) -> String {
        self.0
    }

    /// As the query of a watch.
    pub(super) fn watch(mut self, random: &Random) -> Ask {
        let time = random.jitter(Self::WATCH_TIME, 0.25);
        self.add("watch", "true").add("allowWatchBookmarks", "true").add("timeoutSeconds", &time.as_secs().to_string());
        Ask::Watch { query: self.0, idle: time + Self::IDLE_MARGIN }
    }
}
