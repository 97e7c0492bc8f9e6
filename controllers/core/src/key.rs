//! The name of an object within its kind.

use std::{borrow::Borrow, fmt, sync::Arc};

/// `namespace/name`, or `name` alone for kinds of cluster scope: the text by which client-go names objects too.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// The key of an object; an empty namespace means cluster scope.
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() { Self(name.into()) } else { Self(format!("{namespace}/{name}").into()) }
    }

    /// The key of an object of cluster scope.
    pub fn cluster(name: &str) -> Self {
        Self(name.into())
    }

    /// Empty for cluster scope.
    pub fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name within its namespace.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_back_its_parts() {
        let key = ObjectKey::new("kube-system", "a");
        assert_eq!((key.namespace(), key.name(), key.as_str()), ("kube-system", "a", "kube-system/a"));
        let key = ObjectKey::new("", "node-1");
        assert_eq!((key.namespace(), key.name(), key.as_str()), ("", "node-1", "node-1"));
        assert_eq!(key, ObjectKey::cluster("node-1"));
    }
}
