//! The network card of this machine: the one of the default route.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
};

use koord_koordlet_hooks::network::traffic::{MAJOR, TrafficPlan};
use rustix::net::netdevice::name_to_index;

use super::{
    TrafficControl, TrafficError,
    addresses::{self, Addresses},
    classes::{self, Discipline},
    socket::Socket,
};

/// The network card of this machine.
#[derive(Debug, Default)]
pub struct DefaultCard {
    /// What the map of addresses held when it was written last.
    addresses: Option<(i32, Addresses)>,
}

impl TrafficControl for DefaultCard {
    fn apply(&mut self, plan: Option<&TrafficPlan>) -> Result<(), TrafficError> {
        let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
        match (default_card(&routes), plan) {
            (Some(name), plan) => self.apply_to(&name, plan),
            (None, None) => Ok(()),
            (None, Some(_)) => Err(TrafficError {
                reason: "the node has no default route of IPv4, so that its network card is not known".to_owned(),
                remedy: "run the agent in the node's network (hostNetwork)",
            }),
        }
    }
}

impl DefaultCard {
    /// Makes a card as the plan says.
    pub(super) fn apply_to(&mut self, name: &str, plan: Option<&TrafficPlan>) -> Result<(), TrafficError> {
        let failed = |what: &'static str| {
            move |error: io::Error| TrafficError { reason: format!("{what}: {error}"), remedy: remedy(&error) }
        };
        let mut routes = Socket::routes().map_err(failed("netlink"))?;
        let mut filter = Socket::filter().map_err(failed("nf_tables"))?;
        let card = name_to_index(routes.descriptor(), name).map_err(io::Error::from).map_err(failed("network card"))?;
        let card = i32::try_from(card).unwrap_or_default();
        let Some(plan) = plan else {
            if is_ours(&mut routes, card).map_err(failed("classes of the network card"))? {
                classes::delete_discipline(&mut routes, card).map_err(failed("classes of the network card"))?;
            }
            self.addresses = None;
            // Without nf_tables nothing of ours can be there.
            if addresses::has_table(&mut filter).unwrap_or(false) {
                addresses::delete(&mut filter).map_err(failed("nf_tables"))?;
            }
            return Ok(());
        };
        match classes::discipline(&mut routes, card).map_err(failed("disciplines of the network card"))? {
            Discipline::Ours => {}
            Discipline::Default => classes::add_discipline(&mut routes, card).map_err(failed("HTB"))?,
            Discipline::Foreign(kind) => {
                let reason = format!("{name} has a queueing discipline {kind} that is not the agent's");
                return Err(TrafficError {
                    reason,
                    remedy: "remove it (tc qdisc del dev CARD root), or switch the gate TCNetworkQoS off",
                });
            }
        }
        set_classes(&mut routes, card, plan).map_err(failed("HTB"))?;
        self.set_addresses(&mut filter, card, plan).map_err(failed("nf_tables"))?;
        classes::ensure_cgroup_filter(&mut routes, card).map_err(|error| TrafficError {
            reason: format!(
                "packets of pods on the node's own network have no class: the kernel has no filter by cgroup: {error}"
            ),
            remedy: "load the module cls_cgroup, which needs cgroup v1",
        })
    }

    /// Writes the map of addresses when it is not the one that was written last, or is gone.
    fn set_addresses(&mut self, filter: &mut Socket, card: i32, plan: &TrafficPlan) -> io::Result<()> {
        let wanted = addresses_of(plan);
        let is_there = addresses::has_table(filter)?;
        if is_there && self.addresses.as_ref().is_some_and(|(known, held)| *known == card && *held == wanted) {
            return Ok(());
        }
        addresses::replace(filter, card, &wanted, is_there)?;
        self.addresses = Some((card, wanted));
        Ok(())
    }
}

/// Whether the card has our discipline with our classes: an empty one may be of another program.
fn is_ours(routes: &mut Socket, card: i32) -> io::Result<bool> {
    let has = classes::discipline(routes, card)? == Discipline::Ours;
    let known = if has { classes::classes(routes, card)? } else { BTreeMap::new() };
    Ok([1, 2, 3, 4].iter().all(|minor| known.contains_key(minor)))
}

fn set_classes(routes: &mut Socket, card: i32, plan: &TrafficPlan) -> io::Result<()> {
    let shown = classes::classes(routes, card)?;
    for class in &plan.classes {
        if !classes::is_so(class, shown.get(&class.minor)) {
            classes::set_class(routes, card, class)?;
        }
    }
    let wanted: BTreeSet<u16> = plan.classes.iter().map(|class| class.minor).collect();
    for minor in shown.keys().filter(|minor| !wanted.contains(minor)) {
        classes::delete_class(routes, card, *minor)?;
    }
    Ok(())
}

/// The class of each address: that of its set, or its own.
fn addresses_of(plan: &TrafficPlan) -> Addresses {
    let handle = |minor: u16| (u32::from(MAJOR) << 16) | u32::from(minor);
    let mut all = Addresses::new();
    for (set, minor) in &plan.marks {
        let members = plan.address_sets.get(set).into_iter().flatten();
        all.extend(members.map(|address| (*address, handle(*minor))));
    }
    all.extend(plan.pod_filters.iter().map(|(address, minor)| (*address, handle(*minor))));
    all
}

/// The card of the default route with the lowest metric, of the text of `/proc/net/route`.
fn default_card(routes: &str) -> Option<String> {
    let lines = routes.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, destination, _, _, _, _, metric, mask, ..] = fields.as_slice() else { return None };
        (*destination == "00000000" && *mask == "00000000").then_some((metric.parse::<u32>().ok()?, *name))
    });
    lines.min().map(|(_, name)| name.to_owned())
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "let the agent have CAP_NET_ADMIN",
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => "load the modules sch_htb and nf_tables",
        _ => "see the log of the kernel",
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, UdpSocket},
        process::{Command, ExitStatus},
    };

    use koord_koordlet_hooks::network::traffic::TrafficClass;
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    use super::*;

    #[test]
    fn the_card_is_the_one_of_the_default_route() {
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            eth1\t00000000\t0100000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n\
            eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            cni0\t0000580A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
            broken\n";
        assert_eq!(default_card(routes).as_deref(), Some("eth0"));
        assert_eq!(default_card("Iface\n"), None);
    }

    fn class(minor: u16, parent: Option<u16>, rate_bytes: u64, ceil_bytes: u64, priority: u32) -> TrafficClass {
        TrafficClass { minor, parent, rate_bytes, ceil_bytes, priority, burst_bytes: 2000, pod_uid: None }
    }

    /// A gigabit, and a pod with a class of its own.
    fn plan() -> TrafficPlan {
        TrafficPlan {
            classes: vec![
                class(1, None, 125_000_000, 125_000_000, 0),
                class(2, Some(1), 37_500_000, 125_000_000, 1),
                class(3, Some(1), 62_500_000, 125_000_000, 2),
                class(4, Some(1), 1, 25_000_000, 3),
                class(0x100, Some(1), 10_000_000, 10_000_000, 2),
            ],
            address_sets: BTreeMap::from([
                ("ls_class", BTreeSet::from([Ipv4Addr::new(127, 0, 0, 7), Ipv4Addr::new(127, 0, 0, 6)])),
                ("be_class", BTreeSet::from([Ipv4Addr::new(127, 0, 0, 8)])),
            ]),
            marks: vec![("ls_class", 3), ("be_class", 4)],
            pod_filters: vec![(Ipv4Addr::new(127, 0, 0, 9), 0x100)],
        }
    }

    /// Runs it in a network of its own, which has a loopback card alone. `None` where the test may not have one.
    #[allow(unsafe_code, reason = "the thread has no open sockets that could be of another network")]
    fn in_own_network<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let thread = std::thread::spawn(move || {
            // SAFETY: the network alone is unshared, no files and no memory.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
            Command::new("ip").args(["link", "set", "lo", "up"]).status().ok().filter(ExitStatus::success)?;
            Some(test())
        });
        thread.join().unwrap()
    }

    /// Sends from an address; which class has sent how many packets.
    fn packets(class: &str) -> u64 {
        let output = Command::new("tc").args(["-s", "class", "show", "dev", "lo"]).output().unwrap().stdout;
        let text = String::from_utf8(output).unwrap();
        let after =
            text.split(&format!("class htb {class} ")).nth(1).unwrap_or_else(|| panic!("{class} is not in {text}"));
        let sent = after.split(" bytes ").nth(1).unwrap();
        sent.split(' ').next().unwrap().parse().unwrap()
    }

    /// The kernel of the test may have no filter by cgroup.
    fn apply(card: &mut DefaultCard, plan: &TrafficPlan) {
        if let Err(error) = card.apply_to("lo", Some(plan)) {
            assert!(error.reason.contains("no filter by cgroup"), "{error}");
        }
    }

    #[test]
    fn packets_are_sent_by_the_class_of_their_address() {
        let tested = in_own_network(|| {
            let mut card = DefaultCard::default();
            apply(&mut card, &plan());
            let send = |from: [u8; 4]| {
                let socket = UdpSocket::bind((Ipv4Addr::from(from), 0)).unwrap();
                socket.send_to(b"hello", (Ipv4Addr::LOCALHOST, 9)).unwrap();
            };
            let counts = || ["1:2", "1:3", "1:4", "1:100"].map(packets);
            let before = counts();
            for address in [[127, 0, 0, 7], [127, 0, 0, 6], [127, 0, 0, 8], [127, 0, 0, 9]] {
                send(address);
            }
            let sent: Vec<u64> = counts().iter().zip(before).map(|(now, before)| now - before).collect();
            // Nobody listens: answers to that come from 127.0.0.1, which is in no set.
            assert_eq!(sent[1..], [2, 1, 1]);
            // What is so is not written again; what changed is.
            let mut routes = Socket::routes().unwrap();
            let shown = classes::classes(&mut routes, 1).unwrap();
            assert!(plan().classes.iter().all(|class| classes::is_so(class, shown.get(&class.minor))), "{shown:?}");
            let mut less = plan();
            less.classes.pop();
            less.classes[3].rate_bytes = 25_000_000;
            less.pod_filters.clear();
            apply(&mut card, &less);
            let shown = classes::classes(&mut routes, 1).unwrap();
            assert_eq!(shown.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
            assert!(classes::is_so(&less.classes[3], shown.get(&4)));
            // Another agent takes over, and nothing is left of it.
            apply(&mut DefaultCard::default(), &plan());
            DefaultCard::default().apply_to("lo", None).unwrap();
            assert_eq!(classes::discipline(&mut routes, 1).unwrap(), Discipline::Default);
            let mut filter = Socket::filter().unwrap();
            assert!(!addresses::has_table(&mut filter).unwrap());
            DefaultCard::default().apply_to("lo", None).unwrap();
        });
        if tested.is_none() {
            programs::skipped("traffic classes of a card", "no network namespace may be made, or ip is not installed");
        }
    }

    #[test]
    fn the_discipline_of_another_program_is_left_alone() {
        let tested = in_own_network(|| {
            let status = Command::new("tc").args("qdisc add dev lo root handle 8: htb".split(' ')).status();
            assert!(status.unwrap().success());
            let error = DefaultCard::default().apply_to("lo", Some(&plan())).unwrap_err();
            assert_eq!(error.reason, "lo has a queueing discipline htb that is not the agent's");
            DefaultCard::default().apply_to("lo", None).unwrap();
            let mut routes = Socket::routes().unwrap();
            assert_eq!(classes::discipline(&mut routes, 1).unwrap(), Discipline::Foreign("htb".to_owned()));
        });
        if tested.is_none() {
            programs::skipped("traffic classes of a card", "no network namespace may be made, or ip is not installed");
        }
    }

    #[test]
    fn a_card_that_is_not_there_is_an_error() {
        let error = DefaultCard::default().apply_to("nonexistent0", Some(&plan())).unwrap_err();
        assert!(error.reason.starts_with("network card: "), "{error}");
    }
}
