//! Packets get the class of the address that they come from: a map of nf_tables, which is asked before addresses are translated.

use std::{collections::BTreeMap, io, net::Ipv4Addr};

use super::{
    message::Message,
    socket::{ACK, CREATE, REQUEST, Socket},
};

const TABLE: &str = "koordlet";
const CHAIN: &str = "postrouting";
const MAP: &str = "classes";
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = 0;
const GET_TABLE: u16 = 1;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const NEW_SET: u16 = 9;
const NEW_ELEMENTS: u16 = 12;
const IPV4: u8 = 2;
const HOOK_POSTROUTING: u32 = 4;
/// That of the chain mangle of iptables: before addresses are translated.
const PRIORITY: i32 = -150;
const IS_MAP: u32 = 8;
/// How nft shows keys and values: addresses and classes.
const TYPE_ADDRESS: u32 = 7;
const TYPE_CLASS: u32 = 21;
const ELEMENTS_MAX: usize = 500;

/// Addresses with the handles of their classes.
pub(super) type Addresses = BTreeMap<Ipv4Addr, u32>;

fn message(kind: u16, flags: u16) -> Message {
    Message::new((SUBSYSTEM << 8) | kind, REQUEST | flags, &[IPV4, 0, 0, 0])
}

fn batch(kind: u16) -> Message {
    let [high, low] = SUBSYSTEM.to_be_bytes();
    Message::new(kind, REQUEST, &[0, 0, high, low])
}

/// Whether the table is there.
pub(super) fn has_table(socket: &mut Socket) -> io::Result<bool> {
    match socket.ask(message(GET_TABLE, ACK).text(1, TABLE)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the table with all that is in it.
pub(super) fn delete(socket: &mut Socket) -> io::Result<()> {
    socket.change(vec![batch(BATCH_BEGIN), message(DELETE_TABLE, ACK).text(1, TABLE), batch(BATCH_END)])
}

/// Replaces the table as a whole: packets see either the one before or this one.
pub(super) fn replace(socket: &mut Socket, card: i32, addresses: &Addresses, is_there: bool) -> io::Result<()> {
    let mut changes = vec![batch(BATCH_BEGIN)];
    if is_there {
        changes.push(message(DELETE_TABLE, ACK).text(1, TABLE));
    }
    changes.push(message(NEW_TABLE, CREATE | ACK).text(1, TABLE));
    changes.push(
        message(NEW_CHAIN, CREATE | ACK)
            .text(1, TABLE)
            .text(3, CHAIN)
            .nested(4, |hook| hook.big_endian(1, HOOK_POSTROUTING).big_endian(2, PRIORITY.cast_unsigned()))
            .text(7, "filter"),
    );
    changes.push(
        message(NEW_SET, CREATE | ACK)
            .text(1, TABLE)
            .text(2, MAP)
            .big_endian(3, IS_MAP)
            .big_endian(4, TYPE_ADDRESS)
            .big_endian(5, 4)
            .big_endian(6, TYPE_CLASS)
            .big_endian(7, 4)
            .big_endian(10, 1),
    );
    let all: Vec<(&Ipv4Addr, &u32)> = addresses.iter().collect();
    for part in all.chunks(ELEMENTS_MAX) {
        changes.push(message(NEW_ELEMENTS, CREATE | ACK).text(1, TABLE).text(2, MAP).big_endian(4, 1).nested(
            3,
            |mut list| {
                for (address, class) in part {
                    list = list.nested(1, |element| {
                        element
                            .nested(1, |key| key.attribute(1, &address.octets()))
                            .nested(2, |data| data.attribute(1, &class.to_ne_bytes()))
                    });
                }
                list
            },
        ));
    }
    changes.push(rule(card));
    changes.push(batch(BATCH_END));
    socket.change(changes)
}

/// `oif CARD meta priority set ip saddr map @classes`
fn rule(card: i32) -> Message {
    let expression = |list: Message, name: &str, write: &dyn Fn(Message) -> Message| {
        list.nested(1, |expression| expression.text(1, name).nested(2, write))
    };
    message(NEW_RULE, CREATE | ACK).text(1, TABLE).text(2, CHAIN).nested(4, |list| {
        let list = expression(list, "meta", &|meta| meta.big_endian(1, 1).big_endian(2, META_CARD));
        let list = expression(list, "cmp", &|compare| {
            compare.big_endian(1, 1).big_endian(2, 0).nested(3, |data| data.attribute(1, &card.to_ne_bytes()))
        });
        let list = expression(list, "payload", &|payload| {
            payload.big_endian(1, 1).big_endian(2, NETWORK_HEADER).big_endian(3, SOURCE_AT).big_endian(4, 4)
        });
        let list = expression(list, "lookup", &|lookup| {
            lookup.text(1, MAP).big_endian(2, 1).big_endian(3, 2).big_endian(4, 1)
        });
        expression(list, "meta", &|meta| meta.big_endian(2, META_PRIORITY).big_endian(3, 2))
    })
}

const META_PRIORITY: u32 = 2;
const META_CARD: u32 = 5;
const NETWORK_HEADER: u32 = 1;
/// Where the source address is in the header of IPv4.
const SOURCE_AT: u32 = 12;
