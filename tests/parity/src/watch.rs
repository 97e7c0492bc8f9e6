//! A watch that is open while the later steps of a conversation run.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, http::Response};
use futures::StreamExt;
use http_body_util::{BodyExt, BodyStream};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{task::JoinHandle, time::Instant};

use crate::answer::Answer;

/// The longest that a watch waits for the events it was promised.
const PATIENCE: Duration = Duration::from_secs(6);
/// How long a watch that has all its events waits for one too many.
const SURPLUS: Duration = Duration::from_millis(250);
const POLL: Duration = Duration::from_millis(10);

#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    closed: bool,
}

/// An open watch, or the answer that refused it.
pub(crate) struct Watch {
    pub(crate) answer: Answer,
    pub(crate) refused: bool,
    until: Value,
    seen: Arc<Mutex<Seen>>,
    reader: Option<JoinHandle<()>>,
}

impl Watch {
    pub(crate) async fn open(response: Response<Body>, step: &Value) -> Self {
        let until = step.get("until").cloned().unwrap_or_else(|| serde_json::json!({"events": 1}));
        let seen = Arc::new(Mutex::new(Seen::default()));
        if response.status() != 200 {
            let answer = Answer::read(response).await;
            seen.lock().closed = true;
            return Self { answer, refused: true, until, seen, reader: None };
        }
        let (parts, body) = response.into_parts();
        let answer = Answer::head(&parts);
        let counts_events = step.get("until").is_some_and(|until| until.get("events").is_some());
        let reader = tokio::spawn(read_lines(body, Arc::clone(&seen), counts_events));
        Self { answer, refused: false, until, seen, reader: Some(reader) }
    }

    /// Waits for what the recording promises; gives the events and whether the server closed the stream.
    pub(crate) async fn finish(&self) -> (Vec<Value>, bool) {
        let start = Instant::now();
        let seconds = |key: &str| self.until.get(key).and_then(Value::as_f64).map(Duration::from_secs_f64);
        if let Some(wanted) = self.until.get("events").and_then(Value::as_u64) {
            let enough = |seen: &Seen| seen.closed || seen.events.len() as u64 >= wanted;
            self.wait(start + seconds("seconds").unwrap_or(PATIENCE), enough).await;
            tokio::time::sleep(SURPLUS).await;
        } else {
            let limit = seconds("closed").or_else(|| seconds("seconds")).unwrap_or(PATIENCE);
            self.wait(start + limit, |seen| seen.closed).await;
        }
        let seen = self.seen.lock();
        (seen.events.clone(), seen.closed)
    }

    async fn wait(&self, deadline: Instant, done: impl Fn(&Seen) -> bool) {
        while !done(&self.seen.lock()) && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

async fn read_lines(body: Body, seen: Arc<Mutex<Seen>>, skip_bookmarks: bool) {
    let mut stream = BodyStream::new(body.map_err(drop));
    let mut pending = Vec::new();
    while let Some(Ok(frame)) = stream.next().await {
        let Ok(data) = frame.into_data() else { continue };
        pending.extend_from_slice(&data);
        while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            keep(&line, &seen, skip_bookmarks);
        }
    }
    keep(&pending, &seen, skip_bookmarks);
    seen.lock().closed = true;
}

fn keep(line: &[u8], seen: &Mutex<Seen>, skip_bookmarks: bool) {
    let text = String::from_utf8_lossy(line);
    let periodic = text.get(..40.min(text.len())).is_some_and(|head| head.contains("\"BOOKMARK\""))
        && !text.contains("initial-events-end");
    if text.trim().is_empty() || (skip_bookmarks && periodic) {
        return;
    }
    let event =
        serde_json::from_str(&text).unwrap_or_else(|_| serde_json::json!({"type": "<not json>", "object": text}));
    seen.lock().events.push(event);
}
