//! The body of a request, arriving within its time and the budget of all; and how a handler reads it.

use std::{
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::http::StatusCode;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{budget::Charge, chunks::Chunks, connections::InFlight};

/// A body that waits for room asks again this often: others may have become slow meanwhile.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Why a body does not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    #[error("the request body did not arrive within {} s", .0.as_secs())]
    Slow(Duration),
    #[error("the server holds as many bytes of request bodies as it may; try again")]
    NoRoom,
}

/// A request body within the limits of time and memory.
pub(crate) struct Arriving {
    body: Incoming,
    request: Arc<InFlight>,
    began: Instant,
    /// Read, but not counted yet.
    held: Option<(Frame<Bytes>, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
}

// === impl Arriving ===

impl Arriving {
    pub(crate) fn new(body: Incoming, request: Arc<InFlight>) -> Self {
        let arriving = Self { body, request, began: Instant::now(), held: None, timer: None };
        arriving.note_end();
        arriving
    }

    fn note_end(&self) {
        if self.is_end_stream() {
            self.request.arrived();
        }
    }

    /// Calls the task again at a time.
    fn wake_at(&mut self, context: &mut Context<'_>, time: Instant) {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(time)));
        timer.as_mut().reset(time);
        // One that is over already wakes at once.
        if timer.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some((frame, since)) = self.held.take() else { return Poll::Pending };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        if bytes == 0 {
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.request.charge(bytes, context.waker()) {
            Charge::Granted => {
                self.note_end();
                Poll::Ready(Some(Ok(frame)))
            }
            Charge::GivenUp => Poll::Ready(Some(Err(BodyError::NoRoom))),
            Charge::Wait => {
                let now = Instant::now();
                let ends = since + self.request.limits().bodies.wait_max;
                if now >= ends {
                    return Poll::Ready(Some(Err(BodyError::NoRoom)));
                }
                self.held = Some((frame, since));
                self.wake_at(context, ends.min(now + ASK_AGAIN));
                Poll::Pending
            }
        }
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if this.held.is_some() {
            return this.poll_room(context);
        }
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                this.held = Some((frame, Instant::now()));
                this.poll_room(context)
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => {
                this.request.arrived();
                Poll::Ready(None)
            }
            Poll::Pending => {
                let body_max = this.request.limits().body_max;
                let ends = this.began + body_max;
                if Instant::now() >= ends {
                    return Poll::Ready(Some(Err(BodyError::Slow(body_max))));
                }
                if this.request.charge(0, context.waker()) == Charge::GivenUp {
                    return Poll::Ready(Some(Err(BodyError::NoRoom)));
                }
                this.wake_at(context, ends);
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.request.arrived();
    }
}

/// Why a handler does not get a body.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is longer than the handler takes.
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    /// It did not arrive in time.
    #[error("{0}")]
    Slow(String),
    /// The server has no room for it.
    #[error("{0}")]
    NoRoom(String),
    /// The client or the connection broke it off.
    #[error("{0}")]
    Broken(String),
}

impl ReadError {
    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(one) = cause {
            match one.downcast_ref() {
                Some(BodyError::Slow(_)) => return Self::Slow(one.to_string()),
                Some(BodyError::NoRoom) => return Self::NoRoom(one.to_string()),
                _ => cause = one.source(),
            }
        }
        Self::Broken(error.to_string())
    }
}

/// Reads a body whole, up to `bytes_max`. What it holds is what has arrived: a length that is only announced
/// allocates little.
pub async fn read<B>(body: B, bytes_max: usize) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ReadError::TooLarge(bytes_max));
    }
    let mut body = std::pin::pin!(body);
    let mut chunks = Chunks::default();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame.map_err(|error| ReadError::of(error.into().as_ref()))?;
        let Ok(data) = frame.into_data() else { continue };
        if chunks.len() + data.len() > bytes_max {
            return Err(ReadError::TooLarge(bytes_max));
        }
        if chunks.len() == 0 && body.is_end_stream() {
            return Ok(data);
        }
        chunks.push(data, usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX));
    }
    Ok(chunks.into_bytes())
}
