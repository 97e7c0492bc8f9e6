//! `/proc/stat`: how long CPUs were busy.

use crate::{
    parse_error::ParseError,
    text::{Field, fields, lines, split_once, unsigned_32},
};

const FILE: &str = "/proc/stat";
/// The name of the line and the first seven columns.
const COLUMNS_MIN: usize = 8;
/// Columns behind the name: user, nice, system, idle, iowait, irq, softirq.
const BUSY: [usize; 5] = [0, 1, 2, 5, 6];

/// The busy ticks of a machine: user, nice, system, irq and softirq, not idle, iowait and steal. Sums saturate.
#[derive(Clone, Copy, Debug)]
pub struct ProcStat<'a> {
    /// Of all CPUs together.
    pub busy_ticks: u64,
    /// The lines behind that of all CPUs.
    rest: &'a [u8],
}

/// The busy ticks of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// The number of the CPU.
    pub cpu: u32,
    /// Its busy ticks.
    pub busy_ticks: u64,
}

impl<'a> ProcStat<'a> {
    /// Reads the line of all CPUs.
    ///
    /// Fails where it is missing or has fewer than eight fields with its name. Lines of single CPUs are read by [`Self::cpus`].
    pub fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        let mut rest = text;
        loop {
            let (line, behind) = split_once(rest, b'\n').unwrap_or((rest, b""));
            if line.strip_prefix(b"cpu").is_some_and(|line| line.first().is_none_or(u8::is_ascii_whitespace)) {
                return Ok(Self { busy_ticks: busy_ticks("cpu", line)?, rest: behind });
            }
            if behind.is_empty() {
                return Err(Field { file: FILE, field: "cpu" }.missing());
            }
            rest = behind;
        }
    }

    /// Each CPU that is online, in the order of the kernel; none where the kernel names none.
    pub fn cpus(&self) -> impl Iterator<Item = Result<CpuTicks, ParseError>> + use<'a> {
        const FIELD: &str = "cpuN";
        lines(self.rest).take_while(|line| line.starts_with(b"cpu")).map(|line| {
            let name = fields(line).next().unwrap_or(line);
            let cpu = name.strip_prefix(b"cpu").and_then(unsigned_32);
            let cpu = cpu
                .ok_or_else(|| Field { file: FILE, field: FIELD }.malformed(name, "the name of a CPU such as cpu0"))?;
            Ok(CpuTicks { cpu, busy_ticks: busy_ticks(FIELD, line)? })
        })
    }
}

fn busy_ticks(field: &'static str, line: &[u8]) -> Result<u64, ParseError> {
    let field = Field { file: FILE, field };
    if fields(line).count() < COLUMNS_MIN {
        return Err(field.malformed(line, "a line of eight or more fields"));
    }
    let columns = fields(line).skip(1).enumerate().filter(|(at, _)| BUSY.contains(at));
    columns.map(|(_, column)| field.unsigned(Some(column))).try_fold(0_u64, |sum, ticks| Ok(sum.saturating_add(ticks?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cpu  77142 1 7900 33903 459 2 50 41 0 0\n\
        cpu0 38171 0 3579 17905 72 0 6 17 0 0\n\
        cpu11 38971 0 4321 15998 387 0 44 23 0 0\n\
        intr 388957 0 0\nctxt 1\n";

    #[test]
    fn idle_iowait_and_steal_are_not_busy() {
        let stat = ProcStat::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(stat.busy_ticks, 77_142 + 1 + 7900 + 2 + 50);
        let cpus: Result<Vec<_>, _> = stat.cpus().collect();
        let ticks = |cpu, busy_ticks| CpuTicks { cpu, busy_ticks };
        assert_eq!(cpus.unwrap(), [ticks(0, 38_171 + 3579 + 6), ticks(11, 38_971 + 4321 + 44)]);
    }

    #[test]
    fn the_node_is_read_without_lines_of_its_cpus() {
        for text in ["cpu  1 2 3 4 5 6 7", "cpu  1 2 3 4 5 6 7 8 9 10\n", "x\ncpu 1 2 3 4 5 6 7\nintr 1\ncpu0 1\n"] {
            let stat = ProcStat::parse(text.as_bytes()).unwrap();
            assert_eq!((stat.busy_ticks, stat.cpus().count()), (1 + 2 + 3 + 6 + 7, 0), "{text:?}");
        }
    }

    #[test]
    fn a_malformed_line_of_one_cpu_harms_that_cpu_alone() {
        let stat = ProcStat::parse(b"cpu 1 1 1 1 1 1 1\ncpu0 1 1\ncpux 1\ncpu2 1 1 1 1 1 1 1\n").unwrap();
        let cpus: Vec<_> = stat.cpus().map(|cpu| cpu.map_err(|error| error.to_string())).collect();
        assert_eq!(
            cpus,
            [
                Err("/proc/stat: cpuN is \"cpu0 1 1\", not a line of eight or more fields".to_owned()),
                Err("/proc/stat: cpuN is \"cpux\", not the name of a CPU such as cpu0".to_owned()),
                Ok(CpuTicks { cpu: 2, busy_ticks: 5 }),
            ]
        );
    }

    #[test]
    fn a_line_with_fewer_than_eight_fields_is_refused() {
        for (text, error) in [
            ("", "/proc/stat lacks cpu"),
            ("cpu0 1 1 1 1 1 1 1\n", "/proc/stat lacks cpu"),
            ("cpu 1 2 3 4 5 6\n", "/proc/stat: cpu is \"cpu 1 2 3 4 5 6\", not a line of eight or more fields"),
            ("cpu 1 2 x 4 5 6 7\n", "/proc/stat: cpu is \"x\", not a number from 0 to 18446744073709551615"),
        ] {
            assert_eq!(ProcStat::parse(text.as_bytes()).unwrap_err().to_string(), error, "{text:?}");
        }
        let most = format!("cpu {0} {0} 1 1 1 1 1", u64::MAX);
        assert_eq!(ProcStat::parse(most.as_bytes()).unwrap().busy_ticks, u64::MAX);
    }
}
