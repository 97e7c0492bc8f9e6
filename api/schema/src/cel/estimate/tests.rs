//! Costs of generated rules beside those that Kubernetes itself estimates: `tests/data/cel-costs.txt`.

use crate::{
    Schema,
    cel::{check, compile_node, cost::RULE_COST_MAX},
    field::{Mistake, Path},
};

#[path = "../../../tests/rules/mod.rs"]
mod rules;

/// What the one rule of a schema costs at all its places; `None` where it has a mistake.
fn cost(schema: &serde_json::Value) -> Option<u64> {
    let schema: Schema = serde_json::from_value(schema.clone()).unwrap();
    let mut checking = check::Checking::default();
    compile_node(&schema, &check::Scope::root(&schema), &Path::root("s"), &mut checking);
    let is_legal = checking.errors.iter().all(|error| error.mistake == Mistake::Forbidden);
    is_legal.then_some(checking.total)
}

/// Compares the costs of cases with those recorded for them.
fn assert_recorded(cases: impl Iterator<Item = rules::Case>, recorded: &str) -> usize {
    let recorded: Vec<_> = recorded.lines().filter_map(|line| line.split_once('\t')).collect();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (case, (answer, rule)) in cases.zip(&recorded) {
        assert_eq!(case.rule, *rule, "tests/crd-oracle/run records the rules of this generator");
        let (wanted, found) = (answer.parse::<u64>().ok(), cost(&case.schema));
        if wanted != found {
            wrong.push(format!("{wanted:?}, found {found:?}: {rule}\n    {}", case.schema));
        }
        compared += 1;
    }
    assert_eq!(compared, recorded.len());
    let shown = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{shown}", wrong.len());
    compared
}

/// A file of `tests/data`, which no package holds.
fn recorded(name: &str) -> String {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn generated_rules_cost_what_kubernetes_says() {
    let recorded = recorded("cel-costs.txt");
    assert_eq!(assert_recorded((0..rules::CASES).map(rules::case), &recorded) as u64, rules::CASES);
}

#[test]
fn rules_near_the_limit_are_accepted_and_refused_as_by_kubernetes() {
    let (costs, near) = (recorded("cel-costs.txt"), recorded("cel-costs-near.txt"));
    assert_recorded(rules::near_the_limit(&costs).into_iter(), &near);
    let costs: Vec<u64> = near.lines().filter_map(|line| line.split_once('\t')?.0.parse().ok()).collect();
    let near = |cost: &&u64| cost.abs_diff(RULE_COST_MAX) <= RULE_COST_MAX / 10;
    let (below, above): (Vec<u64>, Vec<u64>) = costs.iter().filter(near).partition(|cost| **cost <= RULE_COST_MAX);
    assert!(below.len() > 300 && above.len() > 300, "{} below, {} above", below.len(), above.len());
}

/// The cost of a rule on an object with these properties.
fn cost_of(rule: &str, optional: bool) -> Option<u64> {
    let mut rule = serde_json::json!({"rule": rule});
    if optional {
        rule["optionalOldSelf"] = true.into();
    }
    cost(&serde_json::json!({"type": "object", "x-kubernetes-validations": [rule], "properties": {
        "a": {"type": "integer"}, "s": {"type": "string", "maxLength": 25},
        "m": {"type": "object", "maxProperties": 7, "additionalProperties": {"type": "string", "maxLength": 5}}}}))
}

/// As Kubernetes estimates these rules.
fn assert_costs(rules: &[(&str, bool, u64)]) {
    for (rule, optional, cost) in rules {
        assert_eq!(cost_of(rule, *optional), Some(*cost), "{rule}");
    }
}

#[test]
fn paths_that_begin_nowhere_begin_at_the_root() {
    assert_costs(&[
        // The name of a type has the size of the object: nothing.
        ("type(self.a) == int", false, 4),
        // The first field of what an optional old value gives is taken for the root.
        ("oldSelf.value().s == self.s", true, 5),
        // So are the items of a list that is written out.
        ("['a', 'b'].exists(x, x == self.s)", false, 25),
        ("['a', 'b'].exists(x, x == '')", false, 21),
    ]);
}

#[test]
fn numbers_and_keys_of_maps_cost_nothing_to_compare() {
    assert_costs(&[
        ("self.a == 1", false, 2),
        ("self.s == self.s", false, 14),
        ("has(self.s)", false, 1),
        ("self.m.all(k, k == self.s)", false, 45),
        ("self.m.all(k, self.s.size() == 1)", false, 52),
    ]);
}
