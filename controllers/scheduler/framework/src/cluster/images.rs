//! Which nodes have which images.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{columns::Row, node::Node};

/// An image that some node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its size in bytes.
    ///
    /// QUIRK: as the first node has reported it that had it, whatever others say
    /// (`an_image_is_known_while_a_node_has_it_with_the_size_of_the_first`).
    pub size: i64,
    /// The nodes that have it.
    pub rows: BTreeSet<Row>,
}

/// The images of all nodes, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    known: BTreeMap<Arc<str>, Image>,
    /// Changes with every change, and with the number of nodes.
    epoch: u64,
}

impl Images {
    pub(super) fn get(&self, name: &str) -> Option<&Image> {
        self.known.get(name)
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn change(&mut self, row: Row, old: Option<&Arc<Node>>, new: Option<&Arc<Node>>) {
        let (old, new) = (old.map(|node| &*node.images), new.map(|node| &*node.images));
        if old == new {
            return;
        }
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        self.epoch += 1;
        for (name, _) in old {
            if let Some(image) = self.known.get_mut(name) {
                image.rows.remove(&row);
                if image.rows.is_empty() {
                    self.known.remove(name);
                }
            }
        }
        for (name, size) in new {
            let image = self.known.entry(Arc::clone(name));
            image.or_insert_with(|| Image { size: *size, rows: BTreeSet::new() }).rows.insert(row);
        }
    }

    /// How many images there are on all nodes.
    pub(super) fn copies(&self) -> usize {
        self.known.values().map(|image| image.rows.len()).sum()
    }

    /// Compares with the images that a node has whether they are known to be there, and sets right what differs.
    pub(super) fn audit_row(&mut self, row: Row, node: &Arc<Node>) -> Option<String> {
        let is_known = |name: &str| self.known.get(name).is_some_and(|image| image.rows.contains(&row));
        let missing = node.images.iter().filter(|(name, _)| !is_known(name)).count();
        (missing > 0).then(|| {
            self.change(row, None, Some(node));
            format!("{} images instead of {}", node.images.len() - missing, node.images.len())
        })
    }

    /// Compares with which nodes have which images, and takes that where it differs; of what was known the size remains.
    pub(super) fn audit(&mut self, mut actual: Self) -> Option<String> {
        for (name, image) in &mut actual.known {
            image.size = self.known.get(name).map_or(image.size, |known| known.size);
        }
        if self.known == actual.known {
            return None;
        }
        let details = format!(
            "{} copies of {} images instead of {} of {}",
            self.copies(),
            self.known.len(),
            actual.copies(),
            actual.known.len()
        );
        (self.known, self.epoch) = (actual.known, self.epoch + 1);
        Some(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_while_a_node_has_it_with_the_size_of_the_first() {
        let mut images = Images::default();
        let node = |list: &[(&str, i64)]| {
            let list = list.iter().map(|(name, size)| (Arc::from(*name), *size)).collect();
            Some(Arc::new(Node { images: list, ..Node::default() }))
        };
        let [one, two] = [0, 1].map(|index| Row::at(index).unwrap());
        let mut change = |row, old: &Option<Arc<Node>>, new: &Option<Arc<Node>>| {
            images.change(row, old.as_ref(), new.as_ref());
            (images.get("a").cloned(), images.get("b").cloned(), images.epoch())
        };
        let image = |size, rows: &[Row]| Some(Image { size, rows: rows.iter().copied().collect() });
        let (first, second) = (node(&[("a", 5)]), node(&[("a", 7), ("b", 1)]));
        assert_eq!(change(one, &None, &first), (image(5, &[one]), None, 1));
        assert_eq!(change(two, &None, &second), (image(5, &[one, two]), image(1, &[two]), 2));
        assert_eq!(change(two, &second, &second.clone()), (image(5, &[one, two]), image(1, &[two]), 2));
        assert_eq!(change(one, &first, &None), (image(5, &[two]), image(1, &[two]), 3));
        assert_eq!(change(two, &second, &None), (None, None, 4));
    }
}
