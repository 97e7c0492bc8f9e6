//! How much memory bandwidth a group may have, in the units of the vendor.

/// A vendor of CPUs. They count memory bandwidth in different units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Intel,
    Amd,
}

impl Vendor {
    /// The vendor of a `vendor_id` of `/proc/cpuinfo`.
    pub fn of(vendor_id: &str) -> Option<Self> {
        match vendor_id {
            "GenuineIntel" => Some(Self::Intel),
            "AuthenticAMD" => Some(Self::Amd),
            _ => None,
        }
    }

    /// The number that limits a group to a share of the bandwidth; `None` for a share outside of 1 to 100 percent.
    ///
    /// Intel: percent, rounded up to a multiple of 10. AMD: units of 1/8 GB/s, of which 160 are taken for all; 2048 means no limit.
    pub fn bandwidth(self, percent: i64) -> Option<u64> {
        let percent = u64::try_from(percent).ok().filter(|percent| (1..=100).contains(percent))?;
        Some(match self {
            Self::Intel => percent.next_multiple_of(10),
            Self::Amd if percent == 100 => 2048,
            Self::Amd => percent * 160 / 100,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_become_units_of_the_vendor() {
        for (percent, intel, amd) in [
            (100, Some(100), Some(2048)),
            (30, Some(30), Some(48)),
            (35, Some(40), Some(56)),
            (91, Some(100), Some(145)),
            (1, Some(10), Some(1)),
            (0, None, None),
            (101, None, None),
            (-10, None, None),
        ] {
            assert_eq!((Vendor::Intel.bandwidth(percent), Vendor::Amd.bandwidth(percent)), (intel, amd), "{percent}");
        }
        assert_eq!(Vendor::of("genuineintel"), None);
    }
}
