//! The labels of a stored object, as selectors ask for them.

/// Labels sorted by key, in two pieces of memory however many they are: an object may have tens of thousands, and each of its past states
/// has them too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Every key with its value behind it.
    text: Box<str>,
    /// Where each key and its value end.
    ends: Box<[(u32, u32)]>,
}

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let (known, value) = self.at(middle)?;
            match known.cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(value),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }

    fn at(&self, index: usize) -> Option<(&str, &str)> {
        let (key, value) = *self.ends.get(index)?;
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |before| before.1);
        Some((self.text.get(begin as usize..key as usize)?, self.text.get(key as usize..value as usize)?))
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(labels: I) -> Self {
        let mut labels: Vec<(&str, &str)> = labels.into_iter().collect();
        labels.sort_unstable();
        let mut text = String::with_capacity(labels.iter().map(|(key, value)| key.len() + value.len()).sum());
        let ends = labels.into_iter().map(|(key, value)| {
            text.push_str(key);
            let end_of_key = text.len() as u32;
            text.push_str(value);
            (end_of_key, text.len() as u32)
        });
        let ends = ends.collect();
        Self { text: text.into(), ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_by_their_key() {
        let labels: Labels = [("zone", "b"), ("arch", ""), ("a", "long value"), ("zon", "c")].into_iter().collect();
        let found = ["zone", "arch", "a", "zon", "zo", "", "zones"].map(|key| labels.get(key));
        assert_eq!(found, [Some("b"), Some(""), Some("long value"), Some("c"), None, None, None]);
        assert_eq!((Labels::default().get("a"), labels.bytes()), (None, "zonebarchalong valuezonc".len() + 4 * 8));
    }
}
