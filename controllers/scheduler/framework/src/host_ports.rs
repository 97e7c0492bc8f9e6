//! Ports of a node that pods use.

use std::sync::Arc;

/// A port of the node that a container uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Arc<str>,
    /// The address of the node; [`HostPort::ANY_ADDRESS`] for all of them.
    pub address: Arc<str>,
}

impl HostPort {
    /// Stands for all addresses of a node. The address of IPv6 that means the same is one address to kube-scheduler.
    pub const ANY_ADDRESS: &str = "0.0.0.0";

    fn number_and_protocol(&self) -> (i32, &str) {
        (self.port, &self.protocol)
    }
}

/// The ports that a pod uses: each once, by number, protocol and address, so that those of two pods are compared without a look at
/// every pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPorts(Box<[HostPort]>);

impl HostPorts {
    /// Whether two pods cannot have these ports on one node: a number and protocol of both have an address in common. The time it
    /// takes grows with the shorter list, and with the logarithm of the longer one.
    pub fn conflict(&self, other: &Self) -> bool {
        let (short, long) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        short.0.iter().any(|port| long.has_conflict_with(port))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ports, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, HostPort> {
        self.0.iter()
    }

    /// Whether one of these and this port have number, protocol and an address in common.
    pub fn has_conflict_with(&self, port: &HostPort) -> bool {
        let key = port.number_and_protocol();
        let begin = self.0.partition_point(|other| other.number_and_protocol() < key);
        let rest = &self.0[begin..];
        let same = &rest[..rest.partition_point(|other| other.number_and_protocol() == key)];
        let has = |address: &str| same.binary_search_by(|other| (*other.address).cmp(address)).is_ok();
        !same.is_empty()
            && (&*port.address == HostPort::ANY_ADDRESS || has(HostPort::ANY_ADDRESS) || has(&port.address))
    }
}

impl FromIterator<HostPort> for HostPorts {
    fn from_iter<T: IntoIterator<Item = HostPort>>(ports: T) -> Self {
        let mut ports: Vec<HostPort> = ports.into_iter().collect();
        ports.sort_unstable();
        ports.dedup();
        Self(ports.into())
    }
}

impl<'a> IntoIterator for &'a HostPorts {
    type Item = &'a HostPort;
    type IntoIter = std::slice::Iter<'a, HostPort>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};

    use super::*;

    fn port(port: i32, protocol: &str, address: &str) -> HostPort {
        HostPort { port, protocol: protocol.into(), address: address.into() }
    }

    #[test]
    fn ports_of_different_addresses_and_protocols_do_not_conflict() {
        let ports = |all: &[(i32, &str, &str)]| -> HostPorts {
            all.iter().map(|(number, protocol, address)| port(*number, protocol, address)).collect()
        };
        for (what, one, other, conflicts) in [
            ("every address and one", &[(80, "TCP", "0.0.0.0")][..], &[(80, "TCP", "10.0.0.1")][..], true),
            ("another protocol", &[(80, "TCP", "0.0.0.0")], &[(80, "UDP", "0.0.0.0")], false),
            ("another number", &[(80, "TCP", "0.0.0.0")], &[(81, "TCP", "0.0.0.0")], false),
            ("another address", &[(80, "TCP", "10.0.0.1")], &[(80, "TCP", "10.0.0.2")], false),
            ("any of IPv6 is an address", &[(80, "TCP", "::")], &[(80, "TCP", "10.0.0.2")], false),
            ("none", &[], &[(80, "TCP", "0.0.0.0")], false),
            (
                "an address below the one for all",
                &[(80, "TCP", "")],
                &[(80, "TCP", "0.0.0.0"), (80, "TCP", "1"), (80, "TCP", "2")],
                true,
            ),
            (
                "the last of several addresses",
                &[(80, "TCP", "c")],
                &[(79, "TCP", "c"), (80, "TCP", "a"), (80, "TCP", "b"), (80, "TCP", "c"), (80, "UDP", "0.0.0.0")],
                true,
            ),
        ] {
            let (one, other) = (ports(one), ports(other));
            assert_eq!([one.conflict(&other), other.conflict(&one)], [conflicts; 2], "{what}");
        }
    }

    #[test]
    fn conflicts_are_symmetric() {
        // All sets of up to three of these ports.
        let all: Vec<HostPort> = [80, 81]
            .into_iter()
            .flat_map(|number| ["TCP", "UDP"].map(|protocol| (number, protocol)))
            .flat_map(|(number, protocol)| ["0.0.0.0", "10.0.0.1", "::"].map(|address| port(number, protocol, address)))
            .collect();
        let pairwise = |one: &HostPort, other: &HostPort| {
            let any = |address: &str| address == "0.0.0.0";
            let same = any(&one.address) || any(&other.address) || one.address == other.address;
            same && (one.port, &one.protocol) == (other.port, &other.protocol)
        };
        let sets: Vec<Vec<&HostPort>> = (0..1_u32 << all.len())
            .filter(|bits| bits.count_ones() <= 3)
            .map(|bits| all.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0).map(|(_, port)| port).collect())
            .collect();
        for one in &sets {
            for other in sets.iter().step_by(7) {
                let expected = one.iter().any(|one| other.iter().any(|other| pairwise(one, other)));
                let set = |ports: &Vec<&HostPort>| ports.iter().copied().cloned().collect::<HostPorts>();
                assert_eq!(set(one).conflict(&set(other)), expected, "{one:?} {other:?}");
            }
        }
    }

    /// One comparison of each pair would be 225 million.
    #[test]
    fn thousands_of_ports_are_compared_in_no_time() {
        let odd: HostPorts = (0..15_000).map(|number| port(2 * number + 1, "TCP", "0.0.0.0")).collect();
        let even: HostPorts = (0..15_000).map(|number| port(2 * number, "TCP", "0.0.0.0")).collect();
        let addresses = |net: u8| -> HostPorts {
            (0..15_000).map(|host| port(80, "TCP", &format!("10.{net}.{}.{}", host / 250, host % 250))).collect()
        };
        // How busy the machine is does not count.
        let cpu = || clock_gettime(ClockId::ThreadCPUTime);
        let began = cpu();
        assert!(!odd.conflict(&even) && !addresses(1).conflict(&addresses(2)));
        let took = cpu() - began;
        assert!(took.tv_sec < 1, "{took:?}");
    }
}
