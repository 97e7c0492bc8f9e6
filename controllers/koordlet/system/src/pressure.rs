//! Pressure stall information: how long tasks waited for a resource.

use crate::{
    parse_error::ParseError,
    resource::Resource,
    text::{Field, fields, lines, split_once, unsigned},
};

/// A resource for which tasks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PressureResource {
    Cpu,
    Memory,
    Io,
}

/// How long tasks waited, as shares of the time and as a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    /// Of the last 10 seconds, in percent.
    pub avg10_percent: f64,
    /// Of the last minute, in percent.
    pub avg60_percent: f64,
    /// Of the last 5 minutes, in percent.
    pub avg300_percent: f64,
    /// Since the cgroup exists.
    pub total_us: u64,
}

/// A pressure file: `cpu.pressure`, `memory.pressure` or `io.pressure` of a cgroup, or a file of `/proc/pressure`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Stalls,
    /// All tasks waited. `None` for the CPU on kernels before 5.13.
    pub full: Option<Stalls>,
}

impl PressureResource {
    /// The file of a cgroup.
    pub const fn of_cgroup(self) -> Resource {
        match self {
            Self::Cpu => Resource::CpuPressure,
            Self::Memory => Resource::MemoryPressure,
            Self::Io => Resource::IoPressure,
        }
    }

    /// The file of the whole node in `/proc/pressure`.
    pub const fn of_node(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Cpu => "cpu.pressure",
            Self::Memory => "memory.pressure",
            Self::Io => "io.pressure",
        }
    }
}

impl Pressure {
    /// Reads a pressure file.
    ///
    /// Fails where the line `some`, the line `full` (of memory and I/O) or one of their fields is missing, or a field is no number.
    pub fn parse(resource: PressureResource, text: &[u8]) -> Result<Self, ParseError> {
        let file = resource.file();
        let (mut some, mut full) = (None, None);
        for line in lines(text) {
            let mut fields = fields(line);
            match fields.next() {
                Some(b"some") => some = Some(stalls(Field { file, field: "some" }, line, fields)?),
                Some(b"full") => full = Some(stalls(Field { file, field: "full" }, line, fields)?),
                _ => {}
            }
        }
        if full.is_none() && resource != PressureResource::Cpu {
            return Err(Field { file, field: "full" }.missing());
        }
        Ok(Self { some: some.ok_or_else(|| Field { file, field: "some" }.missing())?, full })
    }
}

fn stalls<'a>(field: Field, line: &[u8], fields: impl Iterator<Item = &'a [u8]>) -> Result<Stalls, ParseError> {
    let (mut averages, mut total_us) = ([None; 3], None);
    for text in fields {
        let Some((name, value)) = split_once(text, b'=') else { continue };
        let place = match name {
            b"avg10" => 0,
            b"avg60" => 1,
            b"avg300" => 2,
            b"total" => {
                total_us = Some(field.unsigned(Some(value))?);
                continue;
            }
            _ => continue,
        };
        let percent = percent(value).ok_or_else(|| field.malformed(value, "a number such as 0.25"))?;
        if let Some(average) = averages.get_mut(place) {
            *average = Some(percent);
        }
    }
    let ([Some(avg10_percent), Some(avg60_percent), Some(avg300_percent)], Some(total_us)) = (averages, total_us)
    else {
        return Err(field.malformed(line, "a line with avg10, avg60, avg300 and total"));
    };
    Ok(Stalls { avg10_percent, avg60_percent, avg300_percent, total_us })
}

/// Reads `12.34`: the kernel writes two decimals.
fn percent(text: &[u8]) -> Option<f64> {
    const DECIMALS_MAX: usize = 9;
    let (whole, decimals) = split_once(text, b'.').unwrap_or((text, b"0"));
    let scale = 10_u64.checked_pow(u32::try_from(decimals.len()).ok().filter(|_| decimals.len() <= DECIMALS_MAX)?)?;
    let parts = unsigned(whole)?.checked_mul(scale)?.checked_add(unsigned(decimals)?)?;
    Some(parts as f64 / scale as f64)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the nearest number to a decimal is read")]
mod tests {
    use super::*;

    const TEXT: &str =
        "some avg10=3.81 avg60=5.84 avg300=12.18 total=87097836\nfull avg10=0.25 avg60=0.00 avg300=100.00 total=7\n";

    #[test]
    fn averages_and_totals_are_read() {
        for resource in [PressureResource::Cpu, PressureResource::Memory, PressureResource::Io] {
            let pressure = Pressure::parse(resource, TEXT.as_bytes()).unwrap();
            let some = Stalls { avg10_percent: 3.81, avg60_percent: 5.84, avg300_percent: 12.18, total_us: 87_097_836 };
            let full = Stalls { avg10_percent: 0.25, avg60_percent: 0.0, avg300_percent: 100.0, total_us: 7 };
            assert_eq!(pressure, Pressure { some, full: Some(full) });
        }
    }

    #[test]
    fn the_cpu_has_no_full_pressure_on_old_kernels() {
        let text = "some avg10=3.50 avg60=0.00 avg300=0.00 total=1\n";
        let pressure = Pressure::parse(PressureResource::Cpu, text.as_bytes()).unwrap();
        assert_eq!((pressure.some.avg10_percent, pressure.full), (3.5, None));
        let error = Pressure::parse(PressureResource::Memory, text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "memory.pressure lacks full");
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, error) in [
            ("", "cpu.pressure lacks some"),
            ("full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "cpu.pressure lacks some"),
            (
                "some avg10=0.00",
                "cpu.pressure: some is \"some avg10=0.00\", not a line with avg10, avg60, avg300 and total",
            ),
            ("some avg10=nan", "cpu.pressure: some is \"nan\", not a number such as 0.25"),
            ("some avg10=1e3", "cpu.pressure: some is \"1e3\", not a number such as 0.25"),
            ("some total=-1", "cpu.pressure: some is \"-1\", not a number from 0 to 18446744073709551615"),
        ] {
            let refused = Pressure::parse(PressureResource::Cpu, text.as_bytes()).unwrap_err();
            assert_eq!(refused.to_string(), error, "{text:?}");
        }
    }
}
