//! Devices one by one, the best first; and virtual functions of them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    allocation::Share,
    amounts::DeviceAmounts,
    refusal::Refused,
    request::{DeviceHint, Kind},
    score::DeviceScorer,
    view::Seen,
};

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct DefaultRequest<'a> {
    pub kind: Kind,
    pub each: &'a DeviceAmounts,
    /// At least so many.
    pub least: usize,
    /// At most so many.
    pub most: usize,
    pub hint: Option<&'a DeviceHint>,
    /// The PCIe switches whose devices come first, one of each before another of any.
    pub switches: Option<&'a BTreeSet<String>>,
    /// The devices that come first; where there are any, switches do not matter.
    pub preferred: &'a BTreeSet<(Kind, i32)>,
}

/// Devices one by one, the best first.
pub fn allocate(
    request: &DefaultRequest<'_>,
    devices: &[Seen<'_>],
    scorer: &DeviceScorer,
) -> Result<Vec<Share>, Refused> {
    let ordered = if request.preferred.iter().any(|(kind, _)| *kind == request.kind) {
        let is_preferred = |seen: &Seen<'_>| request.preferred.contains(&(request.kind, seen.minor));
        sorted(devices, |seen| (!is_preferred(seen), Reverse(score(request, seen, scorer)), seen.minor))
    } else {
        in_turns(request, devices, scorer)
    };
    let fitting = ordered.into_iter().filter(|seen| !seen.free.is_zero()).filter_map(|seen| {
        let mut share = Share::new(seen.minor, seen.share(request.each)?);
        if let Some(functions) = request.hint.and_then(|hint| hint.virtual_functions.as_ref()) {
            let selects =
                |labels: &BTreeMap<String, String>| functions.selects(|key| labels.get(key).map(String::as_str));
            share.virtual_functions.push(virtual_function(seen, selects)?);
        }
        Some(share)
    });
    let shares: Vec<Share> = fitting.take(request.most).collect();
    if shares.len() < request.least { Err(Refused::Devices(request.kind)) } else { Ok(shares) }
}

/// The best device of every switch, then the second best of every switch, and so on; devices elsewhere come last.
fn in_turns<'a, 'b>(request: &DefaultRequest<'_>, devices: &'b [Seen<'a>], scorer: &DeviceScorer) -> Vec<&'b Seen<'a>> {
    let by_score = sorted(devices, |seen| (Reverse(score(request, seen, scorer)), seen.minor));
    let mut turns_of: BTreeMap<&str, usize> = BTreeMap::new();
    let turns = by_score.into_iter().map(|seen| {
        let near = seen.pcie().filter(|pcie| request.switches.is_some_and(|switches| switches.contains(*pcie)));
        let turn = near.map_or(usize::MAX, |pcie| {
            let turn = turns_of.entry(pcie).or_default();
            *turn += 1;
            *turn
        });
        (turn, seen)
    });
    let mut turns: Vec<(usize, &Seen<'a>)> = turns.collect();
    // Stable: within a turn the order by score remains.
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, seen)| seen).collect()
}

fn sorted<'a, 'b, K: Ord>(devices: &'b [Seen<'a>], key: impl Fn(&Seen<'a>) -> K) -> Vec<&'b Seen<'a>> {
    let mut devices: Vec<&Seen<'a>> = devices.iter().collect();
    devices.sort_by_cached_key(|seen| key(seen));
    devices
}

fn score(request: &DefaultRequest<'_>, seen: &Seen<'_>, scorer: &DeviceScorer) -> (i64, i64) {
    let worth = if request.kind == Kind::Gpu { scorer.worth(seen.minor) } else { 0 };
    (worth, scorer.score(request.each, &seen.device.total, &seen.free))
}

/// The free virtual function with the lowest address.
fn virtual_function(seen: &Seen<'_>, selects: impl Fn(&BTreeMap<String, String>) -> bool) -> Option<(i32, String)> {
    let groups = seen.device.virtual_functions.iter().filter(|group| selects(&group.labels));
    let free = groups.flat_map(|group| &group.vfs).filter(|function| !seen.device.is_function_in_use(&function.bus_id));
    free.min_by(|one, other| one.bus_id.cmp(&other.bus_id)).map(|function| (function.minor, function.bus_id.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::devices::testing::Case;

    /// Two network cards with two virtual functions each, one of them of another sort.
    const CARDS: &str = "rdma0@0/0+f2+f1 rdma1@1/3+f4+f3=fast";

    fn rdma(percent: i64, hint: &Value) -> Value {
        json!({"requests": {"koordinator.sh/rdma": percent.to_string()}, "hints": {"rdma": hint}})
    }

    #[test]
    fn other_devices_are_taken_by_share_and_by_number() {
        let allocated = |used: &str, percent, hint: Value| Case::new(CARDS).used(used).allocate(&rdma(percent, &hint));
        assert_eq!(allocated("", 50, json!({})), "rdma0:50");
        assert_eq!(allocated("rdma0:50", 50, json!({})), "rdma1:50", "the emptier one");
        assert_eq!(allocated("rdma0:50 rdma1:50", 100, json!({})), "U Insufficient rdma devices");
        assert_eq!(allocated("", 200, json!({})), "rdma0:100 rdma1:100");
        assert_eq!(allocated("", 10, json!({"allocateStrategy": "ApplyForAll"})), "rdma0:10 rdma1:10");
        let of_all = allocated("rdma2:50", 10, json!({"allocateStrategy": "ApplyForAll"}));
        assert_eq!(of_all, "rdma0:10 rdma1:10", "all that are reported");
        assert_eq!(allocated("", 2, json!({"allocateStrategy": "RequestsAsCount"})), "rdma0:1 rdma1:1");
        let exclusive = json!({"allocateStrategy": "RequestsAsCount", "exclusivePolicy": "DeviceLevel"});
        assert_eq!(allocated("", 1, exclusive.clone()), "rdma0:100");
        assert_eq!(allocated("rdma0:1", 2, exclusive), "U Insufficient rdma devices");
        assert_eq!(Case::new("gpu0").allocate(&rdma(1, &json!({}))), "UU Insufficient rdma devices");
        assert_eq!(
            Case::new("fpga0").used("fpga0").allocate(&json!({"requests": {"koordinator.sh/fpga": "100"}})),
            "U Insufficient fpga devices"
        );
    }

    #[test]
    fn all_devices_are_all_that_are_selected() {
        let all = |label: &str| json!({"allocateStrategy": "ApplyForAll", "selector": {"matchLabels": {"t": label}}});
        let case = Case::new("rdma0[a] rdma1[b] rdma2[b]");
        assert_eq!(case.allocate(&rdma(10, &all("b"))), "rdma1:10 rdma2:10");
        assert_eq!(case.allocate(&rdma(10, &all("c"))), "UU Insufficient rdma devices");
        let one = json!({"selector": {"matchLabels": {"t": "b"}}});
        assert_eq!(case.allocate(&rdma(10, &one)), "rdma1:10");
    }

    #[test]
    fn the_free_virtual_function_of_the_lowest_address_is_taken() {
        let function = |used: &str, selector: Value| {
            Case::new(CARDS).used(used).allocate(&rdma(1, &json!({"vfSelector": selector})))
        };
        assert_eq!(function("", json!({})), "rdma0:1+f1");
        assert_eq!(function("rdma0:1+f1 rdma1:1", json!({})), "rdma0:1+f2");
        assert_eq!(function("rdma0:1+f1+f2", json!({})), "rdma1:1+f3");
        assert_eq!(function("", json!({"matchLabels": {"type": "fast"}})), "rdma1:1+f3");
        assert_eq!(function("rdma0:1+f1+f2 rdma1:1+f3+f4", json!({})), "U Insufficient rdma devices");
        assert_eq!(
            Case::new("rdma0").allocate(&rdma(1, &json!({"vfSelector": {}}))),
            "UU Insufficient rdma VirtualFunctions"
        );
    }

    #[test]
    fn one_device_of_each_switch_comes_first() {
        let pod = json!({
            "requests": {"koordinator.sh/gpu": "200", "koordinator.sh/rdma": "200"},
            "joint": {"deviceTypes": ["gpu", "rdma"]},
        });
        let case = Case::new("gpu0@0/a gpu1@0/b rdma0@0/a rdma1@0/a rdma2@0/b rdma3@0/c");
        assert_eq!(case.allocate(&pod), "gpu0 gpu1 rdma0:100 rdma2:100");
        assert_eq!(case.used("rdma2:1").allocate(&pod), "gpu0 gpu1 rdma0:100 rdma1:100");
    }
}
