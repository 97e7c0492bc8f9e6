//! The body of a watch: lines as they happen, bookmarks, the end that the client asked for.

use std::{collections::VecDeque, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::time::Instant;

use super::{Server, watchers::Registration};
use crate::{
    faults::Fault,
    server::{Frame, Watch},
    status::ApiError,
};

/// How often a watch without events gets a bookmark.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// How long before its end a watch gets a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// Frames that are read under one lock.
const FRAMES_PER_READ: usize = 128;

struct Stream {
    server: Server,
    watch: Box<Watch>,
    registration: Registration,
    /// Lines that are read and not sent yet.
    lines: VecDeque<Bytes>,
    ends: Option<Instant>,
    bookmark_at: Instant,
    is_last_bookmark_sent: bool,
    /// Set by a fault: nothing follows.
    is_closed: bool,
}

/// The body of a watch's response.
pub(super) fn body(server: &Server, watch: Box<Watch>) -> Body {
    let now = Instant::now();
    let ends = watch.timeout_seconds().map(|seconds| now + Duration::from_secs(seconds));
    let state = Stream {
        server: server.clone(),
        registration: server.shared.watchers.register(&watch),
        watch,
        lines: VecDeque::new(),
        ends,
        bookmark_at: now + BOOKMARK_PERIOD,
        is_last_bookmark_sent: false,
        is_closed: false,
    };
    Body::from_stream(stream::unfold(state, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), state))
    }))
}

impl Stream {
    /// Queues these frames, with the faults that are injected into them.
    async fn queue(&mut self, frames: Vec<Frame>) {
        if !self.server.faults().has_rules() {
            self.lines.extend(frames.into_iter().map(|frame| frame.text));
            return;
        }
        for frame in frames {
            match self.server.faults().of_event(&self.watch.definition().plural) {
                Some(Fault::DropEvent) => continue,
                Some(Fault::RepeatEvent) => self.lines.push_back(frame.text.clone()),
                Some(Fault::DelayEvent(delay)) => tokio::time::sleep(delay).await,
                Some(Fault::CutWatch) => {
                    self.is_closed = true;
                    return;
                }
                Some(Fault::Expire) => {
                    self.is_closed = true;
                    self.lines.push_back(Frame::error(&ApiError::expired("too old resource version")).text);
                    return;
                }
                _ => {}
            }
            self.lines.push_back(frame.text);
        }
    }

    fn read(&mut self) -> Vec<Frame> {
        let mut core = self.server.shared.core.lock();
        self.registration.read(&mut core, &mut self.watch, FRAMES_PER_READ)
    }

    /// The next line; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.is_closed {
                return None;
            }
            let frames = self.read();
            if !frames.is_empty() {
                self.queue(frames).await;
                continue;
            }
            if self.watch.has_ended() {
                return None;
            }
            if let Some((webhook, object)) = self.watch.conversion() {
                let desired = self.watch.definition().api_version();
                let answer = self.server.convert(&webhook, &object, &desired).await;
                self.watch.converted(answer);
                continue;
            }
            let mut wake = self.bookmark_at;
            if let Some(ends) = self.ends {
                wake = wake.min(ends);
                if !self.is_last_bookmark_sent && self.watch.sends_bookmarks() {
                    wake = wake.min(ends.checked_sub(LAST_BOOKMARK).unwrap_or(ends));
                }
            }
            tokio::select! {
                biased;
                () = self.registration.marked() => {}
                () = tokio::time::sleep_until(wake) => {
                    if self.ends.is_some_and(|ends| wake >= ends) {
                        return None;
                    }
                    self.is_last_bookmark_sent |= wake < self.bookmark_at;
                    self.bookmark_at = Instant::now() + BOOKMARK_PERIOD;
                    let frames = self.read();
                    if !frames.is_empty() {
                        self.queue(frames).await;
                        continue;
                    }
                    let bookmark = self.server.shared.core.lock().bookmark(&mut self.watch);
                    if let Some(frame) = bookmark {
                        return Some(frame.text);
                    }
                }
            }
        }
    }
}
