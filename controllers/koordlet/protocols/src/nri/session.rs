//! The protocol of one connection, without I/O: bytes in, calls and bytes out.

use std::{collections::HashMap, time::Duration};

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use tokio::sync::oneshot;

use super::{
    dispatch::Call,
    event::{ConfigurationError, EventMask},
    message::service::{
        ConfigureRequest, ConfigureResponse, PLUGIN, RUNTIME, RegisterPluginRequest, SynchronizeRequest,
        SynchronizeResponse, UpdateContainersRequest, UpdateContainersResponse,
    },
    synchronize::{Collected, Parts},
};
use crate::{
    mux::{self, Frame, FrameDecoder, FrameError, PAYLOAD_BYTES_MAX, PLUGIN_SERVICE, RUNTIME_SERVICE},
    ttrpc::{self, Incoming, Kind, MESSAGE_BYTES_MAX, MessageDecoder, Request, Response, Status, code},
};

/// Version of NRI that is spoken.
pub(super) const NRI_VERSION: &str = "v0.12.0";

/// The runtime at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeInfo {
    /// Name, `containerd` or `cri-o`.
    pub name: String,
    /// Version.
    pub version: String,
    /// Version of NRI; empty before 0.11.
    pub nri_version: String,
    /// Events that the plugin gets.
    pub events: EventMask,
    /// Time after which the runtime disconnects a plugin that has not answered; zero when it does not say.
    pub request_timeout: Duration,
    /// What is wrong with the plugin's configuration in the runtime; the events are those of [`super::NriOptions`] then.
    pub configuration_error: Option<ConfigurationError>,
}

/// The answer to a call of the runtime's service.
pub(super) type UpdateReply = oneshot::Sender<Result<UpdateContainersResponse, Status>>;

/// A call that the runtime waits for.
#[derive(Debug)]
pub(super) struct Todo {
    pub(super) stream: u32,
    pub(super) call: Call,
    /// Time until the runtime gives up; `None` when it does not say.
    pub(super) limit: Option<Duration>,
}

enum Waiting {
    Registration,
    Update(UpdateReply),
}

pub(super) struct Session {
    /// What the socket has brought.
    pub(super) frames: FrameDecoder,
    /// What the socket shall get.
    pub(super) out: BytesMut,
    /// The runtime, once it has configured this plugin.
    pub(super) runtime: Option<RuntimeInfo>,
    /// Why the runtime refused the registration.
    pub(super) refused: Option<Status>,
    events: EventMask,
    from_runtime: MessageDecoder,
    answers: MessageDecoder,
    parts: Parts,
    last_stream: u32,
    next_stream: u32,
    waiting: HashMap<u32, Waiting>,
}

impl Session {
    pub(super) fn new(events: EventMask, synchronize_objects_max: usize) -> Self {
        Self {
            frames: FrameDecoder::new(PAYLOAD_BYTES_MAX),
            out: BytesMut::new(),
            runtime: None,
            refused: None,
            events,
            from_runtime: MessageDecoder::new(MESSAGE_BYTES_MAX),
            answers: MessageDecoder::new(MESSAGE_BYTES_MAX),
            parts: Parts::new(synchronize_objects_max),
            last_stream: 0,
            next_stream: 1,
            waiting: HashMap::new(),
        }
    }

    /// Registers the plugin; the first thing on a connection.
    pub(super) fn register(&mut self, name: &str, index: &str) {
        let request = RegisterPluginRequest {
            plugin_name: name.to_owned(),
            plugin_idx: index.to_owned(),
            nri_version: NRI_VERSION.to_owned(),
        };
        self.call("RegisterPlugin", &request, Waiting::Registration);
    }

    /// Asks the runtime to update containers.
    pub(super) fn update_containers(&mut self, request: &UpdateContainersRequest, reply: UpdateReply) {
        // Calls whose callers have gone are forgotten here; their answers are not awaited.
        self.waiting.retain(|_, waiting| !matches!(waiting, Waiting::Update(reply) if reply.is_closed()));
        self.call("UpdateContainers", request, Waiting::Update(reply));
    }

    /// Reads what has arrived. Returns calls for the handler; an error ends the connection.
    pub(super) fn receive(&mut self) -> Result<Vec<Todo>, FrameError> {
        let mut todo = Vec::new();
        while let Some(Frame { connection, payload }) = self.frames.next_frame()? {
            match connection {
                PLUGIN_SERVICE => {
                    self.from_runtime.push(&payload);
                    while let Some(incoming) = self.from_runtime.next_message() {
                        todo.extend(self.request(incoming));
                    }
                }
                RUNTIME_SERVICE => {
                    self.answers.push(&payload);
                    while let Some(incoming) = self.answers.next_message() {
                        self.response(incoming);
                    }
                }
                // Connections of later versions.
                _ => {}
            }
        }
        Ok(todo)
    }

    /// Answers a call.
    pub(super) fn answer(&mut self, stream: u32, answer: Result<Bytes, Status>) {
        let message = ttrpc::encode(stream, Kind::Response, &Response::from(answer)).or_else(|| {
            let status = Status::new(code::RESOURCE_EXHAUSTED, "the answer is longer than a message can be");
            ttrpc::encode(stream, Kind::Response, &Response::from(Err(status)))
        });
        if let Some(message) = message {
            mux::encode(PLUGIN_SERVICE, &message, &mut self.out);
        }
    }

    fn call(&mut self, method: &str, request: &impl prost::Message, waiting: Waiting) {
        let stream = self.next_stream;
        // After two thousand million calls the numbers begin again; the runtime refuses them, and the caller sees its error.
        self.next_stream = stream.checked_add(2).unwrap_or(1);
        let request = Request {
            service: RUNTIME.to_owned(),
            method: method.to_owned(),
            payload: request.encode_to_vec().into(),
            timeout_nano: 0,
        };
        match ttrpc::encode(stream, Kind::Request, &request) {
            Some(message) => {
                mux::encode(RUNTIME_SERVICE, &message, &mut self.out);
                self.waiting.insert(stream, waiting);
            }
            None => self.resolve(
                waiting,
                Err(Status::new(code::RESOURCE_EXHAUSTED, "the request is longer than a message can be")),
            ),
        }
    }

    fn response(&mut self, incoming: Incoming) {
        let (stream, answer) = match incoming {
            Incoming::Message { stream, kind: Kind::Response, body } => {
                (stream, Response::read(body).and_then(Result::from))
            }
            Incoming::TooLong { stream, length, .. } => {
                (stream, Err(Status::new(code::RESOURCE_EXHAUSTED, format!("an answer of {length} bytes is too long"))))
            }
            Incoming::Message { .. } => return,
        };
        if let Some(waiting) = self.waiting.remove(&stream) {
            self.resolve(waiting, answer);
        }
    }

    fn resolve(&mut self, waiting: Waiting, answer: Result<Bytes, Status>) {
        match waiting {
            Waiting::Registration => self.refused = answer.err(),
            Waiting::Update(reply) => {
                let decoded = answer.and_then(|payload| ttrpc::decode("the answer to UpdateContainers", payload));
                // A caller that has gone does not need its answer.
                drop(reply.send(decoded));
            }
        }
    }

    fn request(&mut self, incoming: Incoming) -> Option<Todo> {
        let (stream, body) = match incoming {
            Incoming::Message { stream, kind: Kind::Request, body } => (stream, body),
            Incoming::Message { stream, .. } => {
                self.answer(stream, Err(Status::new(code::INVALID_ARGUMENT, "only unary requests are answered")));
                return None;
            }
            Incoming::TooLong { stream, length, .. } => {
                let text = format!("a message of {length} bytes is longer than {MESSAGE_BYTES_MAX}");
                self.answer(stream, Err(Status::new(code::RESOURCE_EXHAUSTED, text)));
                return None;
            }
        };
        match self.accept(stream, body) {
            Ok(Accepted::Answer(payload)) => {
                self.answer(stream, Ok(payload));
                None
            }
            Ok(Accepted::Call(call, limit)) => Some(Todo { stream, call, limit }),
            Err(status) => {
                self.answer(stream, Err(status));
                None
            }
        }
    }

    fn accept(&mut self, stream: u32, body: Bytes) -> Result<Accepted, Status> {
        if stream.is_multiple_of(2) || stream <= self.last_stream {
            return Err(Status::new(code::INVALID_ARGUMENT, "streams of a caller are odd and grow"));
        }
        self.last_stream = stream;
        let Request { service, method, payload, timeout_nano } = Request::read(body)?;
        if service != PLUGIN {
            return Err(Status::new(code::UNIMPLEMENTED, format!("service {service}")));
        }
        let limit = u64::try_from(timeout_nano).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos);
        Ok(match self.call_of(&method, payload)? {
            Called::Answered(payload) => Accepted::Answer(payload),
            Called::Call(call) => Accepted::Call(call, limit),
        })
    }

    /// What a method of the plugin's service leads to.
    pub(super) fn call_of(&mut self, method: &str, payload: Bytes) -> Result<Called, Status> {
        match method {
            "Configure" => Ok(Called::Answered(self.configure(ttrpc::decode("Configure", payload)?))),
            "Synchronize" => {
                let part: SynchronizeRequest = ttrpc::decode("Synchronize", payload)?;
                Ok(match self.parts.add(part)? {
                    Collected::More => {
                        Called::Answered(SynchronizeResponse { update: Vec::new(), more: true }.encode_to_vec().into())
                    }
                    Collected::All(all) => Called::Call(Call::Synchronize(all)),
                })
            }
            other => match Call::of(other, payload) {
                Some(call) => Ok(Called::Call(call)),
                None => Err(Status::new(code::UNIMPLEMENTED, format!("method {other}"))),
            },
        }
    }

    fn configure(&mut self, request: ConfigureRequest) -> Bytes {
        // A wrong configuration in the runtime loses its own settings, not the connection.
        let (events, configuration_error) = match EventMask::configured(&request.config, self.events) {
            Ok(events) => (events, None),
            Err(error) => (self.events, Some(error)),
        };
        self.runtime = Some(RuntimeInfo {
            name: request.runtime_name,
            version: request.runtime_version,
            nri_version: request.nri_version,
            events,
            request_timeout: Duration::from_millis(u64::try_from(request.request_timeout).unwrap_or(0)),
            configuration_error,
        });
        ConfigureResponse { events: events.bits() }.encode_to_vec().into()
    }
}

/// What a method leads to.
pub(super) enum Called {
    /// An answer without the handler.
    Answered(Bytes),
    /// A call of the handler.
    Call(Call),
}

enum Accepted {
    Answer(Bytes),
    Call(Call, Option<Duration>),
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;
    use proptest::prelude::*;

    use super::*;

    fn session() -> Session {
        Session::new(EventMask::KOORDLET, 100)
    }

    fn request(stream: u32, service: &str, method: &str, payload: &[u8], out: &mut BytesMut) {
        let request = Request {
            service: service.into(),
            method: method.into(),
            payload: payload.to_vec().into(),
            timeout_nano: 2_000_000_000,
        };
        mux::encode(PLUGIN_SERVICE, &ttrpc::encode(stream, Kind::Request, &request).unwrap(), out);
    }

    fn answers(session: &mut Session) -> Vec<(u32, Result<Bytes, Status>)> {
        let mut frames = FrameDecoder::new(PAYLOAD_BYTES_MAX);
        frames.buffer().put(session.out.split());
        let mut messages = MessageDecoder::new(MESSAGE_BYTES_MAX);
        while let Some(frame) = frames.next_frame().unwrap() {
            messages.push(&frame.payload);
        }
        std::iter::from_fn(|| messages.next_message())
            .map(|incoming| match incoming {
                Incoming::Message { stream, body, .. } => (stream, Response::read(body).unwrap().into()),
                Incoming::TooLong { .. } => panic!(),
            })
            .collect()
    }

    fn code_of(answers: &[(u32, Result<Bytes, Status>)]) -> Vec<(u32, i32)> {
        answers
            .iter()
            .map(|(stream, answer)| (*stream, answer.as_ref().map_or_else(|status| status.code, |_| 0)))
            .collect()
    }

    #[test]
    fn a_registration_is_the_first_call_of_the_runtimes_service() {
        let mut session = session();
        session.register("koordlet_nri", "00");
        let mut frames = FrameDecoder::new(PAYLOAD_BYTES_MAX);
        frames.buffer().put(session.out.split());
        let frame = frames.next_frame().unwrap().unwrap();
        assert_eq!(frame.connection, RUNTIME_SERVICE);
        let request = Request::read(frame.payload.slice(ttrpc::HEADER_BYTES..)).unwrap();
        assert_eq!((request.service.as_str(), request.method.as_str()), (RUNTIME, "RegisterPlugin"));
        let register = RegisterPluginRequest::decode(request.payload).unwrap();
        assert_eq!((register.plugin_name.as_str(), register.plugin_idx.as_str()), ("koordlet_nri", "00"));
    }

    #[test]
    fn a_configuration_is_answered_with_the_events() {
        let mut session = session();
        let configure = ConfigureRequest {
            runtime_name: "containerd".into(),
            runtime_version: "2.1.0".into(),
            request_timeout: 2000,
            ..Default::default()
        };
        request(1, PLUGIN, "Configure", &configure.encode_to_vec(), session.frames.buffer());
        assert!(session.receive().unwrap().is_empty());
        let [(1, Ok(answer))] = &answers(&mut session)[..] else { panic!() };
        assert_eq!(ConfigureResponse::decode(answer.clone()).unwrap().events, 141);
        let runtime = session.runtime.unwrap();
        assert_eq!((runtime.name.as_str(), runtime.request_timeout), ("containerd", Duration::from_secs(2)));
    }

    #[test]
    fn a_wrong_configuration_keeps_the_events_and_is_named() {
        let mut session = session();
        let configure = ConfigureRequest { config: "events: [Nothing]".into(), ..Default::default() };
        request(1, PLUGIN, "Configure", &configure.encode_to_vec(), session.frames.buffer());
        session.receive().unwrap();
        let runtime = session.runtime.unwrap();
        assert_eq!(runtime.events, EventMask::KOORDLET);
        assert_eq!(runtime.configuration_error, Some(ConfigurationError::UnknownEvent("Nothing".into())));
    }

    #[test]
    fn what_is_not_a_call_of_the_plugin_is_refused_alone() {
        let mut session = session();
        let out = session.frames.buffer();
        request(2, PLUGIN, "Shutdown", b"", out);
        request(3, PLUGIN, "Ping", b"", out);
        request(5, "other", "Shutdown", b"", out);
        request(7, PLUGIN, "Configure", b"\xff", out);
        request(7, PLUGIN, "Shutdown", b"", out);
        mux::encode(PLUGIN_SERVICE, &ttrpc::encode(9, Kind::Data, &Status::default()).unwrap(), out);
        mux::encode(4, b"a connection of a later version", out);
        request(11, PLUGIN, "Shutdown", b"", out);
        let todo = session.receive().unwrap();
        assert_eq!(todo.iter().map(|todo| todo.stream).collect::<Vec<_>>(), [11]);
        assert_eq!(todo[0].limit, Some(Duration::from_secs(2)));
        let codes = code_of(&answers(&mut session));
        assert_eq!(
            codes,
            [
                (2, code::INVALID_ARGUMENT),
                (3, code::UNIMPLEMENTED),
                (5, code::UNIMPLEMENTED),
                (7, code::INVALID_ARGUMENT),
                (7, code::INVALID_ARGUMENT),
                (9, code::INVALID_ARGUMENT)
            ]
        );
    }

    #[test]
    fn a_message_over_the_limit_is_refused_and_the_next_one_is_read() {
        let mut session = session();
        let mut long = BytesMut::new();
        long.put_u32(u32::try_from(MESSAGE_BYTES_MAX).unwrap() + 1);
        long.put_u32(1);
        long.put_u8(1);
        long.put_u8(0);
        long.put_bytes(0, MESSAGE_BYTES_MAX + 1);
        mux::encode(PLUGIN_SERVICE, &long, session.frames.buffer());
        request(3, PLUGIN, "Shutdown", b"", session.frames.buffer());
        let todo = session.receive().unwrap();
        assert_eq!(todo.iter().map(|todo| todo.stream).collect::<Vec<_>>(), [3]);
        assert_eq!(code_of(&answers(&mut session)), [(1, code::RESOURCE_EXHAUSTED)]);
    }

    #[test]
    fn an_answer_that_is_too_long_becomes_an_error() {
        let mut session = session();
        session.answer(1, Ok(vec![0; MESSAGE_BYTES_MAX].into()));
        assert_eq!(code_of(&answers(&mut session)), [(1, code::RESOURCE_EXHAUSTED)]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(pieces in prop::collection::vec((0u32..4, prop::collection::vec(any::<u8>(), 0..60)), 0..20)) {
            let mut session = session();
            session.register("koordlet_nri", "00");
            for (connection, piece) in pieces {
                mux::encode(connection, &piece, session.frames.buffer());
                for todo in session.receive().unwrap_or_default() {
                    session.answer(todo.stream, Ok(Bytes::new()));
                }
            }
        }

        #[test]
        fn no_payload_makes_it_panic(method in 0usize..18, payload in prop::collection::vec(any::<u8>(), 0..60)) {
            let names = ["Configure", "Synchronize", "StateChange", "Shutdown"];
            let name = names.get(method).copied().unwrap_or_else(|| crate::nri::Event::ALL[method - 4].as_str());
            let mut session = session();
            request(1, PLUGIN, name, &payload, session.frames.buffer());
            for todo in session.receive().unwrap() {
                let _ = todo.call.answer(&crate::nri::handler::tests::Nothing);
            }
        }
    }
}
