//! Two plans side by side: what has changed since one was shown.

use std::collections::HashMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::pass::{planned, planned_document, saved};
use crate::{
    Answer,
    cli::{DescheduleDiffArgs, OutputFormat},
    screen::Screen,
    table,
};

/// How a step of one plan stands in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Removed,
    Added,
    /// It is in both, and its successor gets another node.
    Elsewhere,
    /// It is in both, at another place of the order.
    Moved,
}

/// A step that differs, with how it was and how it is.
#[derive(Debug, PartialEq)]
pub(super) struct Difference<'p> {
    pub(super) change: Change,
    pub(super) was: Option<&'p Value>,
    pub(super) is: Option<&'p Value>,
}

/// What is done in a step, whatever comes of it.
fn identity(step: &Value) -> [Option<&Value>; 8] {
    ["action", "pod", "uid", "node", "strategy", "profile", "by", "cost"].map(|member| step.get(member))
}

/// The places of steps.
fn places(steps: &[Value]) -> HashMap<[Option<&Value>; 8], usize> {
    // Of equal ones the first counts.
    steps.iter().enumerate().rev().map(|(at, step)| (identity(step), at)).collect()
}

fn steps(plan: &Value) -> &[Value] {
    plan["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// How the steps of two plans differ: first those of the old one.
pub(super) fn differences<'p>(old: &'p Value, new: &'p Value) -> Vec<Difference<'p>> {
    let (old, new) = (steps(old), steps(new));
    let (places_of_old, places_of_new) = (places(old), places(new));
    let mut differences: Vec<Difference<'_>> = Vec::new();
    let mut kept = Vec::new();
    for was in old {
        match places_of_new.get(&identity(was)) {
            None => differences.push(Difference { change: Change::Removed, was: Some(was), is: None }),
            Some(at) => kept.push((was, *at)),
        }
    }
    let mut furthest = None;
    for (was, at) in kept {
        let is = &new[at];
        let change = if furthest.is_some_and(|furthest| at < furthest) {
            Change::Moved
        } else if was["successor"] != is["successor"] {
            Change::Elsewhere
        } else {
            furthest = Some(at);
            continue;
        };
        furthest = furthest.max(Some(at));
        differences.push(Difference { change, was: Some(was), is: Some(is) });
    }
    let added = new.iter().filter(|step| !places_of_old.contains_key(&identity(step)));
    differences.extend(added.map(|is| Difference { change: Change::Added, was: None, is: Some(is) }));
    differences
}

pub(super) async fn diff(args: &DescheduleDiffArgs, screen: Screen) -> Result<Answer> {
    let old = saved(&args.old)?;
    let new = match &args.new {
        Some(file) => saved(file)?,
        None => planned_document(&planned(&args.planned).await?),
    };
    let differences = differences(&old, &new);
    let text = match args.planned.descheduler.answer.output {
        OutputFormat::Table if differences.is_empty() => "the plans have the same steps\n".to_owned(),
        OutputFormat::Table => shown(&differences, screen),
        format => format.document(&json!({
            "old": old["at"], "new": new["at"],
            "differences": differences.iter().map(document).collect::<Vec<_>>(),
        }))?,
    };
    Ok(if differences.is_empty() { Answer::success(text) } else { Answer::failure(text) })
}

pub(super) fn shown(differences: &[Difference<'_>], screen: Screen) -> String {
    let header = ["", "POD", "FROM", "STRATEGY", "CHANGE"].map(str::to_owned).to_vec();
    let rows = differences.iter().map(|difference| {
        let step = difference.is.or(difference.was).unwrap_or(&Value::Null);
        let text = |member: &str| step[member].as_str().unwrap_or("-").to_owned();
        let sign = match difference.change {
            Change::Removed => "-",
            Change::Added => "+",
            Change::Elsewhere | Change::Moved => "~",
        };
        vec![sign.to_owned(), text("pod"), text("node"), text("strategy"), words(difference)]
    });
    table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen)
}

fn words(difference: &Difference<'_>) -> String {
    let successor = |step: Option<&Value>| match step.map(|step| &step["successor"]) {
        Some(successor) if successor["node"].is_string() => successor["node"].as_str().unwrap_or_default().to_owned(),
        Some(successor) if !successor["pending"].is_null() => "pending".to_owned(),
        Some(successor) if !successor["unknown"].is_null() => "unknown".to_owned(),
        _ => "gone".to_owned(),
    };
    let why =
        |step: Option<&Value>| step.and_then(|step| step["reason"]["text"].as_str()).unwrap_or_default().to_owned();
    let action = |step: Option<&Value>| step.and_then(|step| step["action"].as_str()).unwrap_or_default().to_owned();
    match difference.change {
        Change::Removed => format!("{} no more (was: {})", action(difference.was), why(difference.was)),
        Change::Added => format!("{} ({})", action(difference.is), why(difference.is)),
        Change::Elsewhere => {
            format!("its successor gets {} instead of {}", successor(difference.is), successor(difference.was))
        }
        Change::Moved => "at another place of the order".to_owned(),
    }
}

fn document(difference: &Difference<'_>) -> Value {
    let change = match difference.change {
        Change::Removed => "removed",
        Change::Added => "added",
        Change::Elsewhere => "successorElsewhere",
        Change::Moved => "moved",
    };
    json!({"change": change, "was": difference.was, "is": difference.is})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(pod: &str, to: &str) -> Value {
        json!({"action": "evict", "pod": pod, "uid": pod, "node": "n1", "strategy": "S", "successor": {"node": to}})
    }

    fn changes(old: &[Value], new: &[Value]) -> Vec<(Change, String)> {
        let (old, new) = (json!({"steps": old}), json!({"steps": new}));
        let shown = |difference: &Difference<'_>| {
            let step = difference.is.or(difference.was).unwrap();
            (difference.change, step["pod"].as_str().unwrap().to_owned())
        };
        differences(&old, &new).iter().map(shown).collect()
    }

    #[test]
    fn plans_with_the_same_steps_do_not_differ() {
        let steps = [step("a", "n2"), step("b", "n3")];
        assert_eq!(changes(&steps, &steps), []);
        let reworded = [step("a", "n2"), step("b", "n3")].map(|mut step| {
            step["reason"] = json!({"text": "81.2 %"});
            step
        });
        assert_eq!(changes(&steps, &reworded), [], "what was measured may change");
    }

    #[test]
    fn each_difference_is_named_once() {
        let old = [step("a", "n2"), step("b", "n3"), step("c", "n4")];
        let new = [step("b", "n5"), step("d", "n2"), step("c", "n4")];
        let expected = [(Change::Removed, "a"), (Change::Elsewhere, "b"), (Change::Added, "d")];
        assert_eq!(changes(&old, &new), expected.map(|(change, pod)| (change, pod.to_owned())));
        let turned = [step("b", "n3"), step("a", "n2"), step("c", "n4")];
        assert_eq!(changes(&old, &turned), [(Change::Moved, "b".to_owned())]);
    }

    #[test]
    fn another_pod_of_the_same_name_is_another_step() {
        let mut replaced = step("a", "n2");
        replaced["uid"] = json!("later");
        let expected = [(Change::Removed, "a".to_owned()), (Change::Added, "a".to_owned())];
        assert_eq!(changes(&[step("a", "n2")], &[replaced]), expected);
    }
}
