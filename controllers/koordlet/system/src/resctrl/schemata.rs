//! `schemata`: what a group may have in each domain.

use std::fmt;

use smallvec::SmallVec;

use crate::{
    parse_error::ParseError,
    text::{Field, NUMBER, hexadecimal, lines, split_once, unsigned, unsigned_32},
};

const FILE: &str = "schemata";
/// Domains for which no memory is allocated.
const INLINE_DOMAINS: usize = 8;

/// What a group may have: a value for each domain, which is an L3 cache or a memory controller. They are compared as numbers, whatever their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schemata {
    /// Bits of the ways of each L3 cache; empty where the kernel does not limit caches.
    pub l3: DomainValues,
    /// Memory bandwidth in the units of the vendor; empty where the kernel does not limit it.
    pub bandwidth: DomainValues,
}

/// A value for each domain, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainValues(SmallVec<[(u32, u64); INLINE_DOMAINS]>);

impl Schemata {
    /// Reads the lines `L3:0=7ff;1=7ff` and `MB:0=100;1=100`. Lines of other resources are ignored, as are blanks and a last semicolon.
    ///
    /// Fails where a domain or a value is no number.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let mut schemata = Self::default();
        for line in lines(text) {
            match split_once(line, b':') {
                Some((name, values)) if name.trim_ascii() == b"L3" => {
                    schemata.l3 = domain_values("L3", values, hexadecimal, "a hexadecimal number")?;
                }
                Some((name, values)) if name.trim_ascii() == b"MB" => {
                    schemata.bandwidth = domain_values("MB", values, unsigned, NUMBER)?;
                }
                _ => {}
            }
        }
        Ok(schemata)
    }

    /// The text that sets the ways of caches: `L3:0=f;1=f;` and a newline. `None` without values.
    pub fn l3_text(&self) -> Option<String> {
        self.l3.text("L3", |value| format!("{value:x}"))
    }

    /// The text that sets the bandwidth: `MB:0=100;1=100;` and a newline. `None` without values.
    pub fn bandwidth_text(&self) -> Option<String> {
        self.bandwidth.text("MB", |value| value.to_string())
    }
}

impl DomainValues {
    /// The same value for all domains of others.
    pub fn uniform(domains: &Self, value: u64) -> Self {
        domains.domains().map(|domain| (domain, value)).collect()
    }

    /// The numbers of the domains, in order.
    pub fn domains(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(domain, _)| *domain)
    }

    /// The value of a domain.
    pub fn get(&self, domain: u32) -> Option<u64> {
        let at = self.0.binary_search_by_key(&domain, |(domain, _)| *domain).ok()?;
        self.0.get(at).map(|(_, value)| *value)
    }

    /// Sets the value of a domain that has one; returns whether it has.
    pub fn set(&mut self, domain: u32, value: u64) -> bool {
        let place = self.0.iter_mut().find(|(known, _)| *known == domain);
        place.map(|(_, place)| *place = value).is_some()
    }

    /// Whether all values of others are here too. Then they need not be written.
    pub fn holds(&self, others: &Self) -> bool {
        others.0.iter().all(|(domain, value)| self.get(*domain) == Some(*value))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn text(&self, name: &str, value: impl Fn(u64) -> String) -> Option<String> {
        let values = self.0.iter().map(|(domain, bits)| format!("{domain}={};", value(*bits)));
        (!self.is_empty()).then(|| format!("{name}:{}\n", values.collect::<String>()))
    }
}

impl FromIterator<(u32, u64)> for DomainValues {
    /// Of several values of one domain the last counts.
    fn from_iter<I: IntoIterator<Item = (u32, u64)>>(values: I) -> Self {
        let mut sorted = Self::default();
        for (domain, value) in values {
            sorted.insert(domain, value);
        }
        sorted
    }
}

impl DomainValues {
    fn insert(&mut self, domain: u32, value: u64) {
        match self.0.binary_search_by_key(&domain, |(domain, _)| *domain) {
            Ok(at) => {
                if let Some((_, place)) = self.0.get_mut(at) {
                    *place = value;
                }
            }
            Err(at) => self.0.insert(at, (domain, value)),
        }
    }
}

impl fmt::Display for DomainValues {
    /// In hexadecimal digits: `0=f 1=f`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (domain, value)) in self.0.iter().enumerate() {
            write!(f, "{}{domain}={value:x}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

fn domain_values(
    field: &'static str,
    text: &[u8],
    parse: fn(&[u8]) -> Option<u64>,
    expected: &'static str,
) -> Result<DomainValues, ParseError> {
    let field = Field { file: FILE, field };
    let mut values = DomainValues::default();
    for part in text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(|part| !part.is_empty()) {
        let (domain, value) =
            split_once(part, b'=').ok_or_else(|| field.malformed(part, "a domain and its value such as 0=7ff"))?;
        let (domain, value) = (domain.trim_ascii(), value.trim_ascii());
        let domain = unsigned_32(domain).ok_or_else(|| field.malformed(domain, "the number of a domain"))?;
        values.insert(domain, parse(value).ok_or_else(|| field.malformed(value, expected))?);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[(u32, u64)]) -> DomainValues {
        values.iter().copied().collect()
    }

    #[test]
    fn caches_are_hexadecimal_and_bandwidth_is_decimal() {
        for text in [
            "    MB:0=100;1=90\n    L3:0=7ff;1=00f\n",
            "L3:1=F;0=7ff;\nMB:0= 100;1=  90;\n",
            "    L3CODE:0=1\n L2:0=ff\n  MB:0=100;1=90\n    L3:0=7ff;1=f",
        ] {
            let schemata = Schemata::parse(text.as_bytes()).unwrap();
            assert_eq!(schemata.l3, values(&[(0, 0x7ff), (1, 0xf)]), "{text:?}");
            assert_eq!(schemata.bandwidth, values(&[(0, 100), (1, 90)]));
            assert_eq!(schemata.l3_text().as_deref(), Some("L3:0=7ff;1=f;\n"));
            assert_eq!(schemata.bandwidth_text().as_deref(), Some("MB:0=100;1=90;\n"));
        }
        let none = Schemata::parse(b"").unwrap();
        assert_eq!((none.l3_text(), none.bandwidth_text()), (None, None));
    }

    #[test]
    fn a_text_is_read_as_it_was_written() {
        let l3 = DomainValues::uniform(&values(&[(12, 0), (3, 0)]), 0x7_fff8);
        let schemata = Schemata { l3, bandwidth: values(&[(0, 2048)]) };
        assert_eq!(schemata.l3_text().as_deref(), Some("L3:3=7fff8;12=7fff8;\n"));
        let text = schemata.l3_text().unwrap_or_default() + &schemata.bandwidth_text().unwrap_or_default();
        assert_eq!(Schemata::parse(text.as_bytes()), Ok(schemata));
    }

    #[test]
    fn only_other_values_are_written() {
        let mut current = values(&[(0, 0x7ff), (1, 0xf)]);
        assert!(current.holds(&values(&[(1, 0xf)])) && current.holds(&values(&[])));
        assert!(!current.holds(&values(&[(1, 0xe)])) && !current.holds(&values(&[(2, 0xf)])));
        assert!(current.set(1, 0xe) && !current.set(2, 0xe));
        assert_eq!((current.get(1), current.get(2)), (Some(0xe), None));
        assert_eq!(current.to_string(), "0=7ff 1=e");
    }

    #[test]
    fn malformed_values_are_named() {
        for (text, error) in [
            ("L3:0=x\n", "schemata: L3 is \"x\", not a hexadecimal number"),
            ("L3:a=f\n", "schemata: L3 is \"a\", not the number of a domain"),
            ("MB:0=f\n", "schemata: MB is \"f\", not a number from 0 to 18446744073709551615"),
            ("MB:0\n", "schemata: MB is \"0\", not a domain and its value such as 0=7ff"),
        ] {
            assert_eq!(Schemata::parse(text.as_bytes()).unwrap_err().to_string(), error, "{text:?}");
        }
    }
}
