//! `openapi.table`: deflated members behind one line of JSON that names them.

use std::io::Read;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;

pub(super) static TABLE: &[u8] = include_bytes!("openapi.table");

/// The members, in file order: name and deflated bytes.
fn members() -> &'static [(String, &'static [u8])] {
    static MEMBERS: OnceLock<Vec<(String, &'static [u8])>> = OnceLock::new();
    MEMBERS.get_or_init(|| {
        let split = TABLE.iter().position(|byte| *byte == b'\n').unwrap_or(TABLE.len());
        let (head, mut rest) = TABLE.split_at(split);
        rest = rest.get(1..).unwrap_or_default();
        let names: Vec<(String, usize)> = serde_json::from_slice(head).unwrap_or_default();
        let mut found = Vec::with_capacity(names.len());
        for (name, length) in names {
            let Some((member, tail)) = rest.split_at_checked(length) else { break };
            found.push((name, member));
            rest = tail;
        }
        found
    })
}

/// The names of all members that start with `prefix`, without it.
pub(super) fn names(prefix: &str) -> impl Iterator<Item = &'static str> {
    members().iter().filter_map(move |(name, _)| name.strip_prefix(prefix))
}

/// The text of a member.
pub(super) fn member(prefix: &str, name: &str) -> Option<String> {
    let deflated =
        members().iter().find(|(full, _)| full.strip_prefix(prefix) == Some(name)).map(|(_, bytes)| *bytes)?;
    let mut text = String::with_capacity(deflated.len() * 8);
    DeflateDecoder::new(deflated).read_to_string(&mut text).ok()?;
    Some(text)
}
