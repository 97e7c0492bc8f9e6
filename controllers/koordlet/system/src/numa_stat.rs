//! `memory.numa_stat`: the memory of a cgroup on each NUMA node.

use crate::{
    cgroup::Version,
    parse_error::ParseError,
    text::{Field, NUMBER, fields, lines, split_once, unsigned, unsigned_32},
};

const FILE: &str = "memory.numa_stat";

/// The memory of a cgroup on each NUMA node: all of it on v1, anonymous memory and page cache on v2.
///
/// The first line of v1 is `total=6 N0=4 N1=2`, in pages. The first two lines of v2 are `anon N0=4096 N1=0` and `file N0=0 N1=4096`, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct NumaStat<'a> {
    /// Lines whose amounts are added; all of them are valid and of the same nodes.
    lines: [&'a [u8]; 2],
    bytes_per_unit: u64,
}

impl<'a> NumaStat<'a> {
    /// Reads `memory.numa_stat`; amounts of v1 are in pages of `page_bytes`.
    ///
    /// Fails on v1 where the first line does not begin with `total=`, on v2 where the first two lines are not `anon` and `file` with the same
    /// nodes from N0 on, and where an amount is no number.
    pub fn parse(version: Version, text: &'a [u8], page_bytes: u64) -> Result<Self, ParseError> {
        let mut lines = lines(text);
        let mut line = || lines.next().unwrap_or(b"");
        let (stat, has_all_nodes) = match version {
            Version::V1 => {
                (Self { lines: [named("total", line(), b"total=")?, b""], bytes_per_unit: page_bytes }, false)
            }
            Version::V2 => {
                let lines = [named("anon", line(), b"anon ")?, named("file", line(), b"file ")?];
                (Self { lines, bytes_per_unit: 1 }, true)
            }
        };
        // The amount behind `total=` is that of all nodes.
        let skipped = usize::from(!has_all_nodes);
        for (field, line) in ["anon", "file"].into_iter().zip(stat.lines) {
            let field = Field { file: FILE, field: if has_all_nodes { field } else { "total" } };
            for (at, text) in fields(line).skip(skipped).enumerate() {
                let (node, _) =
                    amount(text).ok_or_else(|| field.malformed(text, "the amount of a node such as N0=4096"))?;
                if has_all_nodes && usize::try_from(node) != Ok(at) {
                    return Err(field.malformed(text, "the amount of the next node"));
                }
            }
        }
        let [anon, file] = stat.lines;
        if has_all_nodes && fields(anon).count() != fields(file).count() {
            return Err(Field { file: FILE, field: "file" }.malformed(file, "the amounts of as many nodes as anon has"));
        }
        if let Some(total) = fields(anon).take(skipped).next().filter(|total| unsigned(total).is_none()) {
            return Err(Field { file: FILE, field: "total" }.malformed(total, NUMBER));
        }
        Ok(stat)
    }

    /// Each NUMA node with its bytes, in the order of the kernel. Sums saturate.
    pub fn bytes(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let [first, second] = self.lines;
        let unit = self.bytes_per_unit;
        let mut second = fields(second).filter_map(amount);
        fields(first).filter_map(amount).map(move |(node, units)| {
            let more = second.next().map_or(0, |(_, units)| units);
            (node, units.saturating_add(more).saturating_mul(unit))
        })
    }
}

/// What stands behind the name of a line.
fn named<'a>(field: &'static str, line: &'a [u8], name: &'static [u8]) -> Result<&'a [u8], ParseError> {
    let field = Field { file: FILE, field };
    if line.is_empty() {
        return Err(field.missing());
    }
    // A node without memory at all has lines without nodes.
    let rest = line.strip_prefix(name).or_else(|| (line == name.trim_ascii()).then_some(&b""[..]));
    rest.ok_or_else(|| field.malformed(line, "the line of this name"))
}

/// Reads `N0=4096`.
fn amount(text: &[u8]) -> Option<(u32, u64)> {
    let (node, amount) = split_once(text.strip_prefix(b"N")?, b'=')?;
    Some((unsigned_32(node)?, unsigned(amount)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_v1_and_bytes_of_v2_become_bytes() {
        let v1 = "total=437 N0=317 N1=120\nfile=0 N0=0 N1=0\nanon=1 N0=1 N1=0\nunevictable=0 N0=0 N1=0\n\
            hierarchical_total=5 N0=5 N1=0\n";
        let v2 = "anon N0=1196032 N1=4096\nfile N0=102400 N1=487424\nkernel_stack N0=32768 N1=0\n";
        let bytes = |version, text: &str| {
            NumaStat::parse(version, text.as_bytes(), 4096).map(|stat| stat.bytes().collect::<Vec<_>>())
        };
        let expected = vec![(0, 317 * 4096), (1, 120 * 4096)];
        assert_eq!(bytes(Version::V1, v1), Ok(expected.clone()));
        assert_eq!(bytes(Version::V2, v2), Ok(expected));
        assert_eq!(bytes(Version::V1, "total=2 N0=1 N3=1"), Ok(vec![(0, 4096), (3, 4096)]), "nodes may be missing");
        assert_eq!(bytes(Version::V1, "total=0\n"), Ok(vec![]));
        assert_eq!(bytes(Version::V2, "anon\nfile\n"), Ok(vec![]));
        let most = format!("anon N0={0}\nfile N0={0}\n", u64::MAX);
        assert_eq!(bytes(Version::V2, &most), Ok(vec![(0, u64::MAX)]));
    }

    #[test]
    fn pages_have_the_size_of_the_machine() {
        let stat = NumaStat::parse(Version::V1, b"total=3 N0=3\n", 65_536).unwrap();
        assert_eq!(stat.bytes().collect::<Vec<_>>(), [(0, 3 * 65_536)]);
        let stat = NumaStat::parse(Version::V2, b"anon N0=65536\nfile N0=0\n", 65_536).unwrap();
        assert_eq!(stat.bytes().collect::<Vec<_>>(), [(0, 65_536)]);
    }

    #[test]
    fn other_lines_are_refused() {
        use Version::{V1, V2};
        for (version, text, error) in [
            (V1, "", "memory.numa_stat lacks total"),
            (
                V1,
                "file=0 N0=0\ntotal=0 N0=0\n",
                r#"memory.numa_stat: total is "file=0 N0=0", not the line of this name"#,
            ),
            (V1, "total=x N0=0\n", r#"memory.numa_stat: total is "x", not a number from 0 to 18446744073709551615"#),
            (V1, "total=1 N0\n", r#"memory.numa_stat: total is "N0", not the amount of a node such as N0=4096"#),
            (V2, "anon N0=0 N1=0\n", "memory.numa_stat lacks file"),
            (V2, "file N0=0\nanon N0=0\n", r#"memory.numa_stat: anon is "file N0=0", not the line of this name"#),
            (V2, "anon N1=0\nfile N1=0\n", r#"memory.numa_stat: anon is "N1=0", not the amount of the next node"#),
            (
                V2,
                "anon N0=0 N2=0\nfile N0=0 N2=0\n",
                r#"memory.numa_stat: anon is "N2=0", not the amount of the next node"#,
            ),
            (
                V2,
                "anon N0=0 N1=0\nfile N0=0\n",
                r#"memory.numa_stat: file is "N0=0", not the amounts of as many nodes as anon has"#,
            ),
        ] {
            assert_eq!(NumaStat::parse(version, text.as_bytes(), 4096).unwrap_err().to_string(), error, "{text:?}");
        }
    }
}
