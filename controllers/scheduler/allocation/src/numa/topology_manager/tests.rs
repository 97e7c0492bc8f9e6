use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn mask(nodes: &[u32]) -> NumaMask {
    NumaMask::of(nodes.iter().copied()).unwrap()
}

fn hint(nodes: &[u32], is_preferred: bool) -> TopologyHint {
    TopologyHint { affinity: Some(mask(nodes)), is_preferred, ..TopologyHint::default() }
}

fn scored(nodes: &[u32], score: i64) -> TopologyHint {
    TopologyHint { score, ..hint(nodes, true) }
}

/// Lists by resource; without a list there is no preference.
type Lists = BTreeMap<String, Option<Vec<TopologyHint>>>;

fn lists(lists: &[(&str, Option<Vec<TopologyHint>>)]) -> Lists {
    lists.iter().map(|(resource, list)| ((*resource).to_owned(), list.clone())).collect()
}

fn hints(of_plugins: &[Lists]) -> TopologyHints<'_> {
    let mut hints = TopologyHints::default();
    for (resource, list) in of_plugins.iter().flatten() {
        let any = TopologyHint { is_preferred: true, ..TopologyHint::default() };
        hints.add(resource, list.clone().unwrap_or_else(|| vec![any]));
    }
    hints
}

fn rules(policy: Policy, nodes: u32) -> Rules {
    Rules { policy, all: NumaMask::of(0..nodes).unwrap(), occupation: None }
}

/// Narrow sets are preferred, and the wide one is possible too.
fn usual() -> Vec<TopologyHint> {
    vec![hint(&[0], true), hint(&[1], true), hint(&[0, 1], false)]
}

#[test]
fn policies_admit_what_all_resources_prefer() {
    let only = |nodes: &[u32]| Some(vec![hint(nodes, true)]);
    let policies = [Policy::BestEffort, Policy::Restricted, Policy::SingleNumaNode];
    for (of_resources, expected) in [
        (lists(&[("cpu", Some(usual())), ("memory", Some(usual()))]), [Some("01"), Some("01"), Some("01")]),
        (lists(&[("cpu", Some(usual())), ("memory", only(&[1]))]), [Some("10"), Some("10"), Some("10")]),
        (lists(&[("cpu", only(&[0, 1])), ("memory", only(&[0, 1]))]), [Some("11"), Some("11"), None]),
        // Each resource is on another NUMA node, so that both together take the whole node.
        (lists(&[("cpu", only(&[0])), ("memory", only(&[1]))]), [Some("11"), None, None]),
        // Memory takes two NUMA nodes; the cpu of one of them is not where all the memory is.
        (lists(&[("cpu", Some(usual())), ("memory", only(&[0, 1]))]), [Some("11"), None, None]),
        (lists(&[("cpu", Some(usual())), ("memory", None)]), [Some("01"), Some("01"), Some("01")]),
        (lists(&[("cpu", Some(usual())), ("memory", Some(Vec::new()))]), [Some("11"), None, None]),
    ] {
        for (policy, expected) in policies.into_iter().zip(expected) {
            let merged = merge(&hints(std::slice::from_ref(&of_resources)), rules(policy, 2));
            let merged = merged.map(|affinity| affinity.map(|affinity| affinity.to_string())).ok().flatten();
            assert_eq!(merged.as_deref(), expected, "{policy:?} {of_resources:?}");
        }
    }
}

#[test]
fn a_plugin_without_hints_has_no_preference() {
    for policy in [Policy::BestEffort, Policy::Restricted] {
        assert_eq!(merge(&hints(&[]), rules(policy, 2)), Ok(Some(mask(&[0, 1]))));
        let with_cpu = [Lists::new(), lists(&[("cpu", Some(usual()))])];
        assert_eq!(merge(&hints(&with_cpu), rules(policy, 2)), Ok(Some(mask(&[0]))));
    }
    assert_eq!(merge(&hints(&[]), rules(Policy::SingleNumaNode, 2)), Ok(None));
}

#[test]
fn the_only_numa_node_is_no_affinity() {
    let only = [lists(&[("cpu", Some(vec![hint(&[0], true)]))])];
    assert_eq!(merge(&hints(&only), rules(Policy::SingleNumaNode, 1)), Ok(None));
    assert_eq!(merge(&hints(&only), rules(Policy::Restricted, 1)), Ok(Some(mask(&[0]))));
}

#[test]
fn a_preferred_set_comes_before_a_narrower_one_that_is_not() {
    let only = [lists(&[("cpu", Some(vec![hint(&[0], false), hint(&[0, 1], true)]))])];
    assert_eq!(merge(&hints(&only), rules(Policy::BestEffort, 3)), Ok(Some(mask(&[0, 1]))));
    let only = [lists(&[("cpu", Some(vec![hint(&[0, 1, 2], true), hint(&[1, 2], true)]))])];
    assert_eq!(merge(&hints(&only), rules(Policy::Restricted, 3)), Ok(Some(mask(&[1, 2]))));
}

#[test]
fn lower_numbers_come_before_scores() {
    let best = |list: Vec<TopologyHint>| {
        merge(&hints(&[lists(&[("cpu", Some(list))])]), rules(Policy::Restricted, 3)).unwrap().unwrap()
    };
    assert_eq!(best(vec![scored(&[0], 10), scored(&[1], 20)]), mask(&[1]), "a better score of a higher number");
    assert_eq!(best(vec![scored(&[1], 20), scored(&[0], 10)]), mask(&[0]), "a lower number met later");
    assert_eq!(best(vec![scored(&[0], 10), scored(&[1], 10)]), mask(&[0]));
    let both = [lists(&[
        ("cpu", Some(vec![scored(&[0], 10), scored(&[1], 5)])),
        ("memory", Some(vec![scored(&[0], 1), scored(&[1], 7)])),
    ])];
    assert_eq!(merge(&hints(&both), rules(Policy::Restricted, 2)), Ok(Some(mask(&[1]))), "scores add up");
}

#[test]
fn pods_on_one_numa_node_and_pods_on_several_keep_apart() {
    let apart = |single: &[u32], shared: &[u32], list: Vec<TopologyHint>| {
        let occupation = Some(Occupation { single: mask(single), shared: mask(shared) });
        let rules = Rules { occupation, ..rules(Policy::Restricted, 2) };
        merge(&hints(&[lists(&[("cpu", Some(list))])]), rules).ok().flatten().map(|affinity| affinity.to_string())
    };
    let wide = || vec![hint(&[0, 1], true)];
    let narrow = || vec![hint(&[0], true), hint(&[1], true)];
    assert_eq!(apart(&[0], &[], wide()), None);
    assert_eq!(apart(&[], &[0, 1], wide()).as_deref(), Some("11"));
    assert_eq!(apart(&[0], &[0, 1], wide()).as_deref(), Some("11"), "shared counts where both are");
    assert_eq!(apart(&[], &[0], narrow()).as_deref(), Some("10"));
    assert_eq!(apart(&[], &[0, 1], narrow()), None);
    assert_eq!(apart(&[0], &[], narrow()).as_deref(), Some("01"));
}

struct Fixed {
    lists: Result<Lists, &'static str>,
    refuses: Option<NumaMask>,
}

impl Provider for Fixed {
    fn hints<'a>(&'a self, nodes_max: u32, into: &mut TopologyHints<'a>) -> Result<(), Vec<Reason>> {
        let lists = self.lists.as_ref().map_err(|reason| ReasonCode::PluginSpecific.reason(*reason))?;
        let is_narrow = |hint: &TopologyHint| hint.affinity.is_none_or(|affinity| affinity.len() <= nodes_max);
        let of_lists = hints(std::slice::from_ref(lists));
        for ((resource, _), (_, list)) in lists.iter().zip(of_lists.named()) {
            into.add(resource, list.iter().filter(|hint| is_narrow(hint)).copied());
        }
        Ok(())
    }

    fn verify(&self, affinity: Option<NumaMask>) -> Result<(), Vec<Reason>> {
        let refuses = self.refuses.is_some() && self.refuses == affinity;
        if refuses { Err(ReasonCode::PluginSpecific.reason("not there").into()) } else { Ok(()) }
    }
}

fn admitted(providers: &[Fixed], policy: Policy) -> Result<Option<NumaMask>, String> {
    let providers: Vec<&dyn Provider> = providers.iter().map(|provider| provider as &dyn Provider).collect();
    admit(&providers, rules(policy, 2)).map_err(|reasons| Reason::joined(&reasons))
}

#[test]
fn all_hint_providers_are_called_and_all_their_reasons_are_given() {
    let failing = |reason| Fixed { lists: Err(reason), refuses: None };
    let cpu = || Fixed { lists: Ok(lists(&[("cpu", Some(usual()))])), refuses: Some(mask(&[0])) };
    let reasons = admitted(&[failing("one"), cpu(), failing("two")], Policy::Restricted);
    assert_eq!(reasons, Err("one, two".to_owned()));
    assert_eq!(admitted(&[cpu()], Policy::Restricted), Err("not there".to_owned()));
    let gpu = Fixed { lists: Ok(lists(&[("gpu", Some(vec![hint(&[1], true)]))])), refuses: None };
    assert_eq!(admitted(&[cpu(), gpu], Policy::SingleNumaNode), Ok(Some(mask(&[1]))));
}

/// A plugin that has these reasons to give no hints.
struct Short(&'static [&'static str]);

impl Provider for Short {
    fn hints<'a>(&'a self, _: u32, _: &mut TopologyHints<'a>) -> Result<(), Vec<Reason>> {
        Err(self.0.iter().map(|reason| ReasonCode::PluginSpecific.reason(*reason)).collect())
    }

    fn verify(&self, _: Option<NumaMask>) -> Result<(), Vec<Reason>> {
        Ok(())
    }
}

#[test]
fn several_reasons_of_one_plugin_are_one() {
    let (first, second) = (Short(&["one", "two"]), Short(&["three"]));
    let providers: [&dyn Provider; 2] = [&first, &second];
    let reasons = admit(&providers, rules(Policy::Restricted, 2)).unwrap_err();
    let texts: Vec<&str> = reasons.iter().map(|reason| &*reason.text).collect();
    assert_eq!(texts, ["one, two", "three"]);
}

#[test]
fn what_is_not_aligned_is_listed_by_resource() {
    let cpu = lists(&[
        ("memory", Some(vec![hint(&[0], true), hint(&[0, 1], false)])),
        ("cpu", Some(vec![hint(&[0], true), hint(&[0, 1], false)])),
    ]);
    let gpu = lists(&[("gpu", Some(vec![hint(&[1], true), hint(&[0, 1], false)]))]);
    let of_plugins = [cpu, gpu];
    let words = "cpu prefer [01] among [01 11],gpu prefer [10] among [10 11],memory prefer [01] among [01 11]";
    let reason = |policy| Reason::joined(&merge(&hints(&of_plugins), rules(policy, 2)).unwrap_err());
    assert_eq!(reason(Policy::SingleNumaNode), format!("Unaligned NUMA Hint cause {words}"));
    assert_eq!(reason(Policy::Restricted), format!("Unaligned NUMA Hint cause {}", words.replace(',', " & ")));
    let none = [lists(&[("cpu", Some(Vec::new())), ("memory", Some(Vec::new())), ("gpu", Some(usual()))])];
    let unsatisfied = merge(&hints(&none), rules(Policy::Restricted, 2)).unwrap_err();
    assert_eq!(Reason::joined(&unsatisfied), "Unsatisfied NUMA cpu, Unsatisfied NUMA memory");
}

/// All combinations, one after the other, as the rules of spec/scheduler.md 2.12 have it.
fn by_all_combinations(lists: &[&[TopologyHint]], rules: Rules) -> (NumaMask, bool, bool) {
    let possible = |hint: &&TopologyHint| {
        let is_single = hint.affinity.is_none_or(|affinity| affinity.len() == 1);
        rules.policy != Policy::SingleNumaNode || hint.is_preferred && is_single
    };
    let lists: Vec<Vec<TopologyHint>> =
        lists.iter().map(|list| list.iter().filter(possible).copied().collect()).collect();
    let mut combinations = vec![Vec::new()];
    for list in &lists {
        let extended = |combination: &Vec<TopologyHint>| {
            list.iter()
                .map(|hint| combination.iter().copied().chain([*hint]).collect())
                .collect::<Vec<Vec<TopologyHint>>>()
        };
        combinations = combinations.iter().flat_map(extended).collect();
    }
    let (mut best, mut is_preferred, mut best_score, mut is_unsatisfied) = (rules.all, false, 0, false);
    for hints in combinations {
        let masks: Vec<NumaMask> = hints.iter().filter_map(|hint| hint.affinity).collect();
        let merged = masks.iter().fold(rules.all, |merged, mask| merged.and(*mask));
        if merged.is_empty() {
            continue;
        }
        let are_equal = masks.iter().all(|mask| Some(mask) == masks.first());
        let preferred = hints.iter().all(|hint| hint.is_preferred) && are_equal && rules.keep_apart(merged);
        let score = hints.iter().filter(|hint| hint.affinity == Some(merged)).map(|hint| hint.score).sum();
        let is_narrower = merged.cmp_narrowness(best).is_lt();
        let takes = preferred && !is_preferred
            || preferred == is_preferred && (is_narrower || merged.len() == best.len() && score > best_score);
        if takes {
            let widest = masks.iter().map(|mask| mask.len()).max();
            let unsatisfied = hints.iter().any(|hint| hint.is_unsatisfied);
            is_unsatisfied = unsatisfied || widest.is_some_and(|bits| bits != merged.len());
            (best, is_preferred, best_score) = (merged, preferred, score);
        }
    }
    (best, is_preferred, is_unsatisfied)
}

fn some_lists() -> impl Strategy<Value = Lists> {
    let hint = (1..8_u32, any::<bool>(), 0..3_i64).prop_map(|(bits, is_preferred, score)| {
        let affinity = NumaMask::of((0..3).filter(|node| bits >> node & 1 == 1));
        TopologyHint { affinity, is_preferred, score, ..TopologyHint::default() }
    });
    // A plugin has one hint for each set of NUMA nodes.
    let list = proptest::collection::vec(hint, 1..6).prop_map(|mut list| {
        let mut known = Vec::new();
        list.retain(|hint| {
            !known.contains(&hint.affinity) && {
                known.push(hint.affinity);
                true
            }
        });
        list
    });
    proptest::collection::btree_map("[a-d]", proptest::option::of(list), 0..4)
}

proptest! {
    #[test]
    fn the_result_is_that_of_all_combinations(lists in some_lists(), single in 0..8_u32, shared in 0..8_u32, which in 0..3) {
        let mask = |bits: u32| NumaMask::of((0..3).filter(|node| bits >> node & 1 == 1)).unwrap();
        let hints = hints(std::slice::from_ref(&lists));
        let policy = [Policy::BestEffort, Policy::Restricted, Policy::SingleNumaNode][which as usize];
        let occupation = Some(Occupation { single: mask(single), shared: mask(shared) });
        let rules = Rules { occupation, ..rules(policy, 3) };
        let (best, is_preferred, is_unsatisfied) = by_all_combinations(&hints.lists(), rules);
        let expected = match policy {
            Policy::BestEffort => Some(Some(if is_unsatisfied { rules.all } else { best })),
            Policy::SingleNumaNode => is_preferred.then_some(Some(best).filter(|best| *best != rules.all)),
            Policy::None | Policy::Restricted => is_preferred.then_some(Some(best)),
        };
        prop_assert_eq!(merge(&hints, rules).ok(), expected);
        let provider = Fixed { lists: Ok(lists.clone()), refuses: None };
        prop_assert_eq!(admit(&[&provider], rules), merge(&hints, rules), "what is asked of single NUMA nodes first");
    }
}
