//! Plugins of a profile, as a set.

/// Plugins of a profile, by their index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginSet(u64);

impl PluginSet {
    /// More plugins than any profile has.
    pub const PLUGINS_MAX: u8 = 64;

    /// One plugin.
    pub fn of(plugin: u8) -> Self {
        Self(1_u64.checked_shl(u32::from(plugin)).unwrap_or(0))
    }

    /// With another plugin.
    #[must_use]
    pub fn with(self, plugin: u8) -> Self {
        Self(self.0 | Self::of(plugin).0)
    }

    /// The set of these bits.
    pub fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// A bit for each plugin.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// With all of another set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The plugins, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let first = |bits: u64| (bits != 0).then_some(bits);
        std::iter::successors(first(self.0), move |bits| first(bits & (bits - 1)))
            .filter_map(|bits| u8::try_from(bits.trailing_zeros()).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_back_its_plugins() {
        let set = PluginSet::of(3).with(63).with(3).with(200);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 63]);
        assert!(PluginSet::default().is_empty() && !set.is_empty());
    }
}
