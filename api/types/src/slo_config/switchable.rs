//! Keys whose strategy for all nodes stands beside `nodeConfigs`, and which are off until someone switches them on.

use koord_resource::{
    Schema,
    go_json::{DecodeError, Inline},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    decode,
    strategy::{NodeStrategy, first_match, laid_over},
};
use crate::protocol::Labels;

/// A strategy that is off until someone switches it on.
pub trait Switchable: Clone + Schema + Serialize + DeserializeOwned {
    /// What stands beside the strategy in its key.
    #[doc(hidden)]
    type Beside: DeserializeOwned + Into<Vec<NodeStrategy<Self>>>;

    /// The strategy where nobody says anything.
    fn switched_off() -> Self;
}

/// A key with everything filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchableConfig<T> {
    /// For nodes that nothing else is said about.
    pub cluster: T,
    /// For some nodes, in the order of the configuration.
    pub nodes: Vec<NodeStrategy<T>>,
}

impl<T: Switchable> Default for SwitchableConfig<T> {
    fn default() -> Self {
        Self { cluster: T::switched_off(), nodes: Vec::new() }
    }
}

impl<T: Switchable> SwitchableConfig<T> {
    /// Reads the key; an absent one gives the defaults. QUIRK: an empty one is no JSON.
    pub fn parse(text: Option<&str>) -> Result<Self, DecodeError> {
        let default = Self::default();
        let Some(text) = text else { return Ok(default) };
        let section: Inline<T::Beside, T> = decode(text)?;
        let cluster = laid_over(&default.cluster, &section.second);
        let nodes = section.first.into().into_iter();
        let nodes = nodes.map(|node| NodeStrategy { second: laid_over(&cluster, &node.second), first: node.first });
        Ok(Self { nodes: nodes.collect(), cluster })
    }

    /// What holds on a node with these labels.
    pub fn for_node(&self, labels: &Labels) -> &T {
        first_match(&self.nodes, labels).unwrap_or(&self.cluster)
    }
}

/// Declares what stands beside a strategy, by the name that [`super::names`] knows.
macro_rules! switchable {
    ($strategy:ident beside $section:ident) => {
        #[doc(hidden)]
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $section {
            node_configs: Vec<NodeStrategy<$strategy>>,
        }

        impl From<$section> for Vec<NodeStrategy<$strategy>> {
            fn from(section: $section) -> Self {
                section.node_configs
            }
        }

        impl Switchable for $strategy {
            type Beside = $section;

            fn switched_off() -> Self {
                $strategy { enable: Some(false), ..$strategy::default() }
            }
        }
    };
}

pub(super) use switchable;
