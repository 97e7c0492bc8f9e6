//! Classes of the queueing discipline HTB of a network card.

use std::{collections::BTreeMap, io};

use koord_koordlet_hooks::network::traffic::{DEFAULT_MINOR, MAJOR, TrafficClass};

use super::{
    message::{Message, attribute, u32_at, u64_at},
    socket::{ACK, CREATE, DUMP, REPLACE, REQUEST, Socket},
};

const NEW_DISCIPLINE: u16 = 36;
const DELETE_DISCIPLINE: u16 = 37;
const GET_DISCIPLINE: u16 = 38;
const NEW_CLASS: u16 = 40;
const DELETE_CLASS: u16 = 41;
const GET_CLASS: u16 = 42;
const NEW_FILTER: u16 = 44;
const GET_FILTER: u16 = 46;
const HEADER: usize = 20;
const ROOT: u32 = u32::MAX;
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const PARAMETERS: u16 = 1;
const INITIAL: u16 = 2;
const RATE_64: u16 = 6;
const CEIL_64: u16 = 7;
/// Packets are as long as on Ethernet: then the kernel needs no tables of times.
const ETHERNET: u8 = 1;
/// The kernel counts time in units of so many nanoseconds here.
const TICK_NANOSECONDS: u128 = 64;
const HTB: &[u8] = b"htb\0";
const CGROUP_HANDLE: u32 = 1;
const EVERY_PROTOCOL: u32 = 3;

/// What hangs at the root of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    /// The one that the kernel chose.
    Default,
    Ours,
    /// Of another program, with its kind.
    Foreign(String),
}

/// A class as the kernel shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) parent: u32,
    rate: u64,
    ceil: u64,
    priority: u32,
}

fn handle(minor: u16) -> u32 {
    (u32::from(MAJOR) << 16) | u32::from(minor)
}

fn header(card: i32, handle: u32, parent: u32, info: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let fields = [card.cast_unsigned(), handle, parent, info];
    for (place, field) in header.chunks_exact_mut(4).skip(1).zip(fields) {
        place.copy_from_slice(&field.to_ne_bytes());
    }
    header
}

fn change(kind: u16, flags: u16, header: &[u8; HEADER]) -> Message {
    Message::new(kind, REQUEST | ACK | flags, header)
}

/// A discipline, class or filter of a card.
struct Found {
    handle: u32,
    parent: u32,
    kind: Vec<u8>,
    options: Vec<u8>,
}

/// Which objects of this kind a card has.
fn list(socket: &mut Socket, question: u16, card: i32, parent: u32) -> io::Result<Vec<Found>> {
    let answers = socket.ask(Message::new(question, REQUEST | DUMP, &header(card, 0, parent, 0)))?;
    let found = answers.iter().filter_map(|answer| {
        (u32_at(answer, 4)? == card.cast_unsigned()).then_some(())?;
        let attributes = answer.get(HEADER..)?;
        let options = attribute(attributes, OPTIONS).unwrap_or_default().to_vec();
        let kind = attribute(attributes, KIND)?.to_vec();
        Some(Found { handle: u32_at(answer, 8)?, parent: u32_at(answer, 12)?, kind, options })
    });
    Ok(found.collect())
}

pub(super) fn discipline(socket: &mut Socket, card: i32) -> io::Result<Discipline> {
    let all = list(socket, GET_DISCIPLINE, card, 0)?;
    let Some(root) = all.into_iter().find(|found| found.parent == ROOT) else {
        return Ok(Discipline::Default);
    };
    let default = attribute(&root.options, INITIAL).and_then(|initial| u32_at(initial, 8));
    Ok(match root.handle {
        0 => Discipline::Default,
        own if root.kind == HTB && own == handle(0) && default == Some(DEFAULT_MINOR.into()) => Discipline::Ours,
        _ => Discipline::Foreign(String::from_utf8_lossy(&root.kind).trim_end_matches('\0').to_owned()),
    })
}

pub(super) fn add_discipline(socket: &mut Socket, card: i32) -> io::Result<()> {
    let mut initial = Vec::new();
    // Version 3, ten bytes of rate for each byte of a turn, class of packets without one.
    for number in [3, 10, u32::from(DEFAULT_MINOR), 0, 0] {
        initial.extend(number.to_ne_bytes());
    }
    let message = change(NEW_DISCIPLINE, CREATE | REPLACE, &header(card, handle(0), ROOT, 0))
        .attribute(KIND, HTB)
        .nested(OPTIONS, |options| options.attribute(INITIAL, &initial));
    socket.change(vec![message])
}

pub(super) fn delete_discipline(socket: &mut Socket, card: i32) -> io::Result<()> {
    socket.change(vec![change(DELETE_DISCIPLINE, 0, &header(card, handle(0), ROOT, 0))])
}

/// The classes of our discipline by their minor numbers.
pub(super) fn classes(socket: &mut Socket, card: i32) -> io::Result<BTreeMap<u16, Shown>> {
    let all = list(socket, GET_CLASS, card, 0)?;
    let ours = all.into_iter().filter(|class| class.handle >> 16 == u32::from(MAJOR) && class.kind == HTB);
    let minors = ours.filter_map(|class| {
        let minor = u16::try_from(class.handle & 0xffff).ok()?;
        Some((minor, shown(class.parent, &class.options)?))
    });
    Ok(minors.collect())
}

fn shown(parent: u32, options: &[u8]) -> Option<Shown> {
    let parameters = attribute(options, PARAMETERS)?;
    let rate = |at, long| match attribute(options, long).and_then(|value| u64_at(value, 0)) {
        Some(rate) => Some(rate),
        None => u32_at(parameters, at).map(u64::from),
    };
    // Two descriptions of rates of twelve bytes, burst, burst of the ceiling, turn, level, priority.
    Some(Shown { parent, rate: rate(8, RATE_64)?, ceil: rate(20, CEIL_64)?, priority: u32_at(parameters, 40)? })
}

/// Whether the kernel shows what a class shall be. The one at the root has no parent that is a class.
pub(super) fn is_so(class: &TrafficClass, shown: Option<&Shown>) -> bool {
    let parent = class.parent.map_or(ROOT, handle);
    let priority = class.priority.min(PRIORITY_MAX);
    shown.is_some_and(|shown| {
        (shown.parent, shown.rate, shown.ceil) == (parent, class.rate_bytes, class.ceil_bytes)
            && (class.parent.is_none() || shown.priority == priority)
    })
}

/// HTB knows so many priorities.
const PRIORITY_MAX: u32 = 7;

pub(super) fn set_class(socket: &mut Socket, card: i32, class: &TrafficClass) -> io::Result<()> {
    let parent = class.parent.map_or(handle(0), handle);
    let short = |rate: u64| u32::try_from(rate).unwrap_or(u32::MAX);
    let mut parameters = Vec::new();
    for rate in [class.rate_bytes, class.ceil_bytes] {
        parameters.extend([0, ETHERNET, 0, 0, 0, 0, 0, 0]);
        parameters.extend(short(rate).to_ne_bytes());
    }
    let turn = short((class.rate_bytes / 10).clamp(1600, 200_000));
    for number in [
        ticks(class.burst_bytes, class.rate_bytes),
        ticks(class.burst_bytes, class.ceil_bytes),
        turn,
        0,
        class.priority.min(PRIORITY_MAX),
    ] {
        parameters.extend(number.to_ne_bytes());
    }
    let message = change(NEW_CLASS, CREATE | REPLACE, &header(card, handle(class.minor), parent, 0))
        .attribute(KIND, HTB)
        .nested(OPTIONS, |options| {
            let options = options.attribute(PARAMETERS, &parameters);
            let with_long = |options: Message, kind, rate: u64| {
                if rate > u32::MAX.into() { options.attribute(kind, &rate.to_ne_bytes()) } else { options }
            };
            with_long(with_long(options, RATE_64, class.rate_bytes), CEIL_64, class.ceil_bytes)
        });
    socket.change(vec![message])
}

pub(super) fn delete_class(socket: &mut Socket, card: i32, minor: u16) -> io::Result<()> {
    socket.change(vec![change(DELETE_CLASS, 0, &header(card, handle(minor), 0, 0))])
}

/// The time in which so many bytes pass at a rate, in the kernel's units.
fn ticks(bytes: u64, rate: u64) -> u32 {
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
    u32::try_from(nanoseconds / TICK_NANOSECONDS).unwrap_or(u32::MAX)
}

/// Lets the class in `net_cls.classid` of its sender's cgroup decide for packets that have no class yet.
pub(super) fn ensure_cgroup_filter(socket: &mut Socket, card: i32) -> io::Result<()> {
    let filters = list(socket, GET_FILTER, card, handle(0))?;
    if filters.iter().any(|filter| filter.kind == b"cgroup\0") {
        return Ok(());
    }
    // Priority 1, and the protocol in the byte order of the network.
    let info = (1 << 16) | u32::from((EVERY_PROTOCOL as u16).to_be());
    let message = change(NEW_FILTER, CREATE, &header(card, CGROUP_HANDLE, handle(0), info))
        .attribute(KIND, b"cgroup\0")
        .nested(OPTIONS, |options| options);
    socket.change(vec![message])
}
