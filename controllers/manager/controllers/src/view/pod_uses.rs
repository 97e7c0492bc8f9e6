//! Use of the pods of a node, packed: of a large cluster it is most of what is known.
//!
//! A pod takes the bytes of its name and about a dozen more, where a struct with its own text takes over a hundred.

use crate::amount::{Amount, CpuMemory};

/// Use of some pods, in the order in which it was reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodUses(Box<[u8]>);

/// Use of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodUsage<'a> {
    /// `namespace/name`.
    pub key: &'a str,
    pub usage: CpuMemory,
    /// Whether it is of class batch or free.
    pub is_best_effort: bool,
}

impl PodUses {
    pub fn iter(&self) -> impl Iterator<Item = PodUsage<'_>> {
        let mut packed = Packed(&self.0);
        std::iter::from_fn(move || packed.pod())
    }

    /// Packs uses of pods, each named by its namespace and name.
    pub fn pack<'a>(pods: impl Iterator<Item = (&'a str, &'a str, CpuMemory, bool)>) -> Self {
        let mut bytes = Vec::new();
        for (namespace, name, usage, is_best_effort) in pods {
            put_number(&mut bytes, (namespace.len() + 1 + name.len()) as u128);
            bytes.extend_from_slice(namespace.as_bytes());
            bytes.push(b'/');
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(u8::from(is_best_effort));
            put_amount(&mut bytes, usage.cpu);
            put_amount(&mut bytes, usage.memory);
        }
        Self(bytes.into())
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn put_number(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The decimal zeros at the end are counted; the sign is the lowest bit of what is left.
fn put_amount(bytes: &mut Vec<u8>, amount: Amount) {
    let mut nano = amount.nano();
    let mut zeros = 0_u8;
    while nano != 0 && nano % 10 == 0 {
        nano /= 10;
        zeros += 1;
    }
    bytes.push(zeros);
    put_number(bytes, ((nano << 1) ^ (nano >> 127)).cast_unsigned());
}

/// What is left to unpack.
struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    fn pod(&mut self) -> Option<PodUsage<'a>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (key, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(PodUsage {
            key: std::str::from_utf8(key).ok()?,
            is_best_effort: self.byte()? != 0,
            usage: CpuMemory { cpu: self.amount()?, memory: self.amount()? },
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u128> {
        let mut number = 0;
        for shift in (0..u128::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn amount(&mut self) -> Option<Amount> {
        let zeros = self.byte()?;
        let number = self.number()?;
        let nano = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
        Some(Amount::from_nano(nano.checked_mul(10_i128.checked_pow(zeros.into())?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let amounts = [0, 1, -1, 10, 1_500_000_000, -1_500_000_000, 3_221_225_472_000_000_000, i128::MAX, i128::MIN];
        let uses: Vec<(String, CpuMemory, bool)> = amounts
            .into_iter()
            .enumerate()
            .map(|(number, nano)| {
                let (cpu, memory) = (Amount::from_nano(nano), Amount::from_nano(amounts[amounts.len() - 1 - number]));
                ("n".repeat(number * 40), CpuMemory { cpu, memory }, number % 2 == 0)
            })
            .collect();
        let packed = PodUses::pack(uses.iter().map(|(name, usage, flag)| ("team", name.as_str(), *usage, *flag)));
        let unpacked: Vec<_> = packed.iter().map(|pod| (pod.key.to_owned(), pod.usage, pod.is_best_effort)).collect();
        let expected: Vec<_> =
            uses.into_iter().map(|(name, usage, flag)| (format!("team/{name}"), usage, flag)).collect();
        assert_eq!(unpacked, expected);
    }

    #[test]
    fn a_pod_takes_little_more_than_its_name() {
        let usage = CpuMemory { cpu: Amount::from_milli(1_500), memory: Amount::from_units(3 << 30) };
        let name = "web-7d9c5b8f4d-abcde";
        let packed = PodUses::pack(std::iter::once(("shop", name, usage, false)));
        assert!(packed.0.len() <= "shop/".len() + name.len() + 12, "{} bytes", packed.0.len());
    }
}
