//! Lists of ids and of CPUs: `tasks`, `cgroup.procs`, `cpuset.cpus`.

use koord_scheduling::CpuSet;

use crate::{
    parse_error::ParseError,
    text::{Field, fields, unsigned_32},
};

/// The ids of processes or threads in a text with an id on each line. A process of another PID namespace has the id 0.
///
/// Gives an error for each line that is no id from 0 to 2147483647.
pub fn parse_ids<'a>(file: &'static str, text: &'a [u8]) -> impl Iterator<Item = Result<u32, ParseError>> + use<'a> {
    const ID_MAX: u32 = i32::MAX.unsigned_abs();
    fields(text).map(move |text| {
        let id = unsigned_32(text).filter(|id| *id <= ID_MAX);
        id.ok_or_else(|| Field { file, field: "id" }.malformed(text, "a number from 0 to 2147483647"))
    })
}

/// A list of CPUs such as `0-3,8`; an empty text is an empty set.
///
/// Fails where the text is no such list.
pub fn parse_cpu_list(file: &'static str, text: &[u8]) -> Result<CpuSet, ParseError> {
    let text = text.trim_ascii();
    let cpus = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    cpus.ok_or_else(|| Field { file, field: "CPUs" }.malformed(text, "a list such as 0-3,8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_id() {
        let ids: Result<Vec<_>, _> = parse_ids("tasks", b"101\n102\n0\n").collect();
        assert_eq!(ids, Ok(vec![101, 102, 0]));
        assert_eq!(parse_ids("tasks", b"\n\n").count(), 0);
        let ids: Vec<_> =
            parse_ids("tasks", b"1\n-2\n2147483648\n3").map(|id| id.map_err(|error| error.to_string())).collect();
        let refused = |id: &str| Err(format!("tasks: id is \"{id}\", not a number from 0 to 2147483647"));
        assert_eq!(ids, [Ok(1), refused("-2"), refused("2147483648"), Ok(3)]);
    }

    #[test]
    fn cpus_are_a_list_of_ranges() {
        for (text, cpus) in [("0-7\n", "0-7"), ("\n", ""), ("0,1,4,5", "0-1,4-5")] {
            assert_eq!(parse_cpu_list("cpuset.cpus", text.as_bytes()).unwrap().to_string(), cpus);
        }
        let error = parse_cpu_list("cpuset.cpus", b"0-x\n").unwrap_err();
        assert_eq!(error.to_string(), r#"cpuset.cpus: CPUs is "0-x", not a list such as 0-3,8"#);
    }
}
