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

#[test]
fn generated_rules_cost_what_kubernetes_says() {
    let recorded = include_str!("../../../tests/data/cel-costs.txt");
    let recorded: Vec<_> = recorded.lines().filter_map(|line| line.split_once('\t')).collect();
    assert_eq!(recorded.len() as u64, rules::CASES);
    let mut wrong = Vec::new();
    for (number, (answer, rule)) in (0..).zip(recorded) {
        let case = rules::case(number);
        assert_eq!(case.rule, rule, "tests/crd-oracle/run costs records the rules of this generator");
        let (wanted, found) = (answer.parse::<u64>().ok(), cost(&case.schema));
        let accepted = |cost: Option<u64>| cost.is_some_and(|cost| cost <= RULE_COST_MAX);
        if accepted(wanted) != accepted(found) || wanted != found {
            wrong.push(format!("{number}: {wanted:?}, found {found:?}: {rule}\n    {}", case.schema));
        }
    }
    let shown = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {} differ:\n{shown}", wrong.len(), rules::CASES);
}
