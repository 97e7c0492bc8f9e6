//! Settings that cannot be read: each harms its own pod alone, and is named.

use std::{fmt, sync::Arc};

/// A setting of a pod, of the node or of an application that is not used, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    pub subject: Subject,
    /// The label, annotation or field.
    pub key: &'static str,
    pub reason: Arc<str>,
}

/// Whose setting it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A pod, as `NAMESPACE/NAME`.
    Pod(Arc<str>),
    Node,
    /// A host application of the NodeSLO, by its name.
    HostApplication(Arc<str>),
}

impl Refused {
    pub(crate) fn node(key: &'static str, reason: impl Into<Arc<str>>) -> Self {
        Self { subject: Subject::Node, key, reason: reason.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Pod(name) => write!(f, "pod {name}: ")?,
            Subject::Node => write!(f, "node: ")?,
            Subject::HostApplication(name) => write!(f, "host application {name}: ")?,
        }
        write!(f, "{}: {}", self.key, self.reason)
    }
}
