//! Who may ask an agent for its state.

use std::net::IpAddr;

/// Who may read the state of an agent. It names pods, settings and files of all tenants of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeReaders {
    /// Clients at a loopback address: processes in the network of the agent, and whoever may forward a port of its pod.
    Local,
    /// Everybody who can reach the port.
    All,
}

impl NodeReaders {
    /// Whether a client at this address is among them; one whose address is not known is no local one.
    pub(crate) fn include(self, client: Option<IpAddr>) -> bool {
        match self {
            Self::All => true,
            Self::Local => client.is_some_and(|address| address.to_canonical().is_loopback()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_other_machines_read_the_state_only_where_all_may() {
        for (client, is_local) in [
            (Some("127.0.0.1"), true),
            (Some("127.8.9.1"), true),
            (Some("::1"), true),
            (Some("::ffff:127.0.0.1"), true),
            (Some("10.0.0.7"), false),
            (Some("::ffff:10.0.0.7"), false),
            (Some("169.254.0.1"), false),
            (None, false),
        ] {
            let client = client.map(|address| address.parse().unwrap());
            assert_eq!(NodeReaders::Local.include(client), is_local, "{client:?}");
            assert!(NodeReaders::All.include(client), "{client:?}");
        }
    }
}
