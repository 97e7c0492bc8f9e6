//! How large values are: between a least and a greatest size.

/// The size of a text in letters, of bytes, or of a list or map in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub min: u64,
    pub max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Size = Size { min: 0, max: u64::MAX };

    pub(super) const fn fixed(size: u64) -> Size {
        Size { min: size, max: size }
    }

    pub(super) const fn up_to(max: u64) -> Size {
        Size { min: 0, max }
    }

    pub(super) fn plus(self, other: Size) -> Size {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Size) -> Size {
        Size { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The sizes that are one or the other.
    pub(super) fn or(self, other: Size) -> Size {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// What it costs to go over a text of the size.
    pub(super) fn traversal(self) -> u64 {
        scaled(self.max, TRAVERSAL)
    }
}

/// What one letter of a text costs.
pub(super) const TRAVERSAL: f64 = 0.1;
/// What one letter of a regular expression multiplies the cost by.
pub(super) const EXPRESSION: f64 = 0.25;

/// A number times a factor, rounded up.
pub(super) fn scaled(number: u64, factor: f64) -> u64 {
    // Beyond the largest integer this is the largest integer.
    (number as f64 * factor).ceil() as u64
}

/// The sizes of what is in a list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    pub are_of_list: bool,
    /// Of keys or indexes.
    pub key: Size,
    pub value: Size,
}

impl Elements {
    /// Nothing is in it.
    pub(super) const fn none(are_of_list: bool) -> Elements {
        let key = if are_of_list { Size::fixed(1) } else { Size::fixed(0) };
        Elements { are_of_list, key, value: Size::fixed(0) }
    }

    /// Something else is in it. What nothing was in before has the sizes of the first.
    pub(super) fn include(&mut self, key: Size, value: Size, is_first: bool) {
        let joined = |before: Size, new: Size| if is_first { new } else { before.or(new) };
        self.key = joined(self.key, key);
        self.value = joined(self.value, value);
    }

    /// The elements of one or the other.
    pub(super) fn or(self, other: Elements) -> Elements {
        Elements { key: self.key.or(other.key), value: self.value.or(other.value), ..self }
    }
}
