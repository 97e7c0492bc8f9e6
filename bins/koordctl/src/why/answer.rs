//! What is said about a pod, as text and for programs.

use std::collections::BTreeSet;

use koord_scheduler_engine::{Decision, Outcome, Refused, Why};
use koord_scheduler_framework::{Reason, ReasonCode, cycle::OnNode, pod::Pod};
use koord_scheduler_what_if::{Unblock, Unblocked};
use serde_json::{Value, json};

use crate::{names::few, screen::Screen, table};

/// Whether the pod has a node, or would be given one.
pub(super) fn is_placed(Why { node, decision, .. }: &Why) -> bool {
    let outcome = decision.as_ref().ok().and_then(|decision| decision.outcome.as_ref());
    node.is_some() || matches!(outcome, Some(Outcome::Bind { .. }))
}

/// What is so, in one line.
pub(super) fn summary(Why { pod, node, decision }: &Why) -> String {
    let key = subject(pod);
    let Decision { held, outcome, .. } = match decision {
        Ok(decision) => decision,
        Err(reason) => return format!("{key} is left to another scheduler: {reason} [{}]", reason.code),
    };
    match (node, held, outcome) {
        (Some(node), ..) => format!("{key} is on {node}"),
        (None, Some((plugin, reason)), _) => format!("{key} is not tried: {plugin}: {reason} [{}]", reason.code),
        (None, None, Some(Outcome::Bind { node, score, ties, .. })) => {
            let alike = if *ties > 1 { format!(", as good as {} others", ties - 1) } else { String::new() };
            format!("{key} would be placed on {node} (score {score}{alike})")
        }
        (None, None, Some(Outcome::Waiting { node })) => {
            format!("{key} would take its place on {node} and wait there for the others of its gang")
        }
        (None, None, Some(Outcome::Refused(refused))) => format!("{key} waits: {}{}", refused.message, room(refused)),
        (None, None, Some(Outcome::ExtenderCall { .. }) | None) => format!("{key} is not tried"),
    }
}

/// What is asked about: the pod, or what it stands for.
pub(super) fn subject(pod: &Pod) -> String {
    let stands_for = pod.reservation.as_ref().map(|object| format!("{} {}", object.kind.kind, object.key));
    stands_for.unwrap_or_else(|| pod.key.to_string())
}

/// The pods that would be evicted.
fn room(Refused { nominated, victims, .. }: &Refused) -> String {
    let Some(node) = nominated else { return String::new() };
    let victims: Vec<String> = victims.iter().map(|victim| victim.key.to_string()).collect();
    format!("\nroom would be made on {node} by the eviction of {}", few(&victims))
}

fn rejection(Decision { rejected, .. }: &Decision) -> Option<String> {
    rejected.as_ref().map(|(plugin, rejection)| {
        let (message, codes) = (rejection.message(), codes(&rejection.reasons));
        format!("{plugin} rejects the pod on all nodes: {message} [{codes}]")
    })
}

fn remark((plugin, remark): &(&'static str, Reason)) -> String {
    format!("{plugin} remarks: {remark} [{}]\n", remark.code)
}

/// The codes of reasons, each once.
fn codes(reasons: &[Reason]) -> String {
    let mut codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
    codes.dedup();
    codes.join(", ")
}

/// A line for each remedy: changes with which it would be placed, or else what helps against the codes of what stops it.
fn remedies(why: &Why, unblocked: &Unblocked, screen: Screen) -> String {
    let lines: Vec<String> = match &why.decision {
        Ok(decision) if unblocked.answers.is_empty() && waits(why) => {
            let codes = stopping(decision);
            if codes.is_empty() && !decision.nodes.is_empty() {
                vec!["no small change was found with which it would be placed".to_owned()]
            } else {
                codes.into_iter().map(|code| format!("{code}: {}", code.remedy())).collect()
            }
        }
        _ => unblocked.answers.iter().map(Unblock::to_text).collect(),
    };
    lines
        .iter()
        .chain(&unblocked.limits)
        .map(|line| screen.wrapped(line, "", "    ").trim_end().to_owned() + "\n")
        .collect()
}

/// The codes of what holds or rejects the pod as a whole, or else of what refuses it on nodes.
fn stopping(Decision { held, rejected, nodes, .. }: &Decision) -> BTreeSet<ReasonCode> {
    let held = held.iter().map(|(_, reason)| reason);
    let rejected = rejected.iter().flat_map(|(_, rejection)| &rejection.reasons);
    let whole: BTreeSet<ReasonCode> = held.chain(rejected).map(|reason| reason.code).collect();
    if !whole.is_empty() {
        return whole;
    }
    let first = nodes.iter().filter_map(|node| node.refusals.first());
    first.flat_map(|refusal| &refusal.reasons).map(|reason| reason.code).collect()
}

/// All nodes: those that take the pod by their score, and the others by what they lack. What helps comes first where that is the same on all
/// nodes, and last otherwise.
pub(super) fn everywhere(why: &Why, unblocked: &Unblocked, screen: Screen) -> String {
    let mut text = summary(why) + "\n";
    let Ok(decision) = &why.decision else { return text };
    text.extend(rejection(decision).map(|line| line + "\n"));
    text.extend(decision.remarks.iter().map(remark));
    let remedies = remedies(why, unblocked, screen);
    let is_stopped_everywhere = decision.held.is_some() || decision.rejected.is_some();
    if is_stopped_everywhere {
        text += &remedies;
    }
    let mut taking: Vec<(&OnNode, i64)> =
        decision.nodes.iter().filter_map(|node| node.total().map(|total| (node, total))).collect();
    taking.sort_by_key(|(node, total)| (-total, node.node.clone()));
    if !taking.is_empty() {
        let header = ["NODE", "SCORE", "BY PLUGINS"].map(str::to_owned).to_vec();
        let rows = taking.iter().map(|(node, total)| {
            let counted = node.scores.iter().filter(|one| one.score * one.weight != 0);
            let by = counted.map(|one| format!("{} {}", one.plugin, one.score * one.weight)).collect::<Vec<_>>();
            vec![node.node.to_string(), total.to_string(), by.join(", ")]
        });
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        text = format!("{text}\n{}", table::lines(&rows, screen));
    }
    let refused = refused(&decision.nodes);
    if !refused.is_empty() {
        let header = ["NODES", "REFUSED BY", "CODE", "WHY", "WHICH"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(refused).collect();
        text = format!("{text}\n{}", table::lines(&rows, screen));
    }
    if !is_stopped_everywhere && !remedies.is_empty() {
        text = format!("{text}\n{remedies}");
    }
    text
}

/// Whether the pod is refused, or held for something else than its turn in a gang.
fn waits(Why { node, decision, .. }: &Why) -> bool {
    let Ok(Decision { held, outcome, .. }) = decision else { return false };
    let is_held = held.as_ref().is_some_and(|(_, reason)| reason.code != ReasonCode::GangRepresented);
    node.is_none() && (is_held || held.is_none() && matches!(outcome, Some(Outcome::Refused(_))))
}

/// The nodes that are refused, by the first plugin that refuses them and its words; the most frequent first.
fn refused(nodes: &[OnNode]) -> Vec<Vec<String>> {
    let mut groups: Vec<(&str, String, &[Reason], Vec<String>)> = Vec::new();
    for (node, first) in nodes.iter().filter_map(|node| Some((node, node.refusals.first()?))) {
        let words = Reason::joined(&first.reasons);
        match groups.iter_mut().find(|(plugin, known, ..)| *plugin == first.plugin && *known == words) {
            Some((.., names)) => names.push(node.node.to_string()),
            None => groups.push((first.plugin, words, &first.reasons, vec![node.node.to_string()])),
        }
    }
    groups.sort_by_key(|(.., names)| std::cmp::Reverse(names.len()));
    let row = |(plugin, words, reasons, names): (&str, String, &[Reason], Vec<String>)| {
        vec![names.len().to_string(), plugin.to_owned(), codes(reasons), words, few(&names)]
    };
    groups.into_iter().map(row).collect()
}

/// One node, with the words of all plugins.
pub(super) fn on_node(why: &Why, name: &str, screen: Screen) -> String {
    let mut text = summary(why) + "\n";
    let Ok(decision) = &why.decision else { return text };
    text.extend(rejection(decision).map(|line| line + "\n"));
    text.extend(decision.remarks.iter().map(remark));
    let Some(node) = decision.nodes.iter().find(|node| &*node.node == name) else { return text };
    let mut rows = Vec::new();
    if let Some(total) = node.total() {
        rows.push(["PLUGIN", "SCORE", "WEIGHT", "COUNTS"].map(str::to_owned).to_vec());
        for one in &node.scores {
            let counts = (one.score * one.weight).to_string();
            rows.push(vec![one.plugin.to_owned(), one.score.to_string(), one.weight.to_string(), counts]);
        }
        rows.push(vec!["in all".to_owned(), String::new(), String::new(), total.to_string()]);
        text = format!("{text}\n{name} takes it\n");
    } else {
        rows.push(["PLUGIN", "EVICTIONS", "CODE", "WHY", "DETAILS"].map(str::to_owned).to_vec());
        for one in &node.refusals {
            let help = if one.resolvable { "may help" } else { "do not help" };
            let age = one.input_age.map(|age| format!(" (measured {} s ago)", age.as_secs())).unwrap_or_default();
            let words = Reason::joined(&one.reasons) + &age;
            let details = details_in_words(&one.reasons);
            rows.push(vec![one.plugin.to_owned(), help.to_owned(), codes(&one.reasons), words, details]);
        }
        text = format!("{text}\n{name} does not take it\n");
    }
    text + &table::lines(&rows, screen)
}

/// The operands of reasons, each once.
fn details_in_words(reasons: &[Reason]) -> String {
    let operands = reasons.iter().flat_map(|reason| &reason.operands);
    let mut words: Vec<String> = operands.map(|(name, value)| format!("{name}={value}")).collect();
    words.dedup();
    words.join(", ")
}

/// Reasons for programs: their codes and operands.
fn details(reasons: &[Reason]) -> Vec<Value> {
    reasons.iter().map(Reason::document).collect()
}

/// The same for programs.
pub(super) fn document(why: &Why, unblocked: &Unblocked, node: Option<&str>) -> Value {
    let Why { pod, node: has, decision } = why;
    let mut answer = json!({
        "pod": subject(pod), "scheduler": pod.template.scheduler, "node": has, "placed": is_placed(why), "summary": summary(why),
    });
    answer["unblock"] = unblocked.answers.iter().map(Unblock::document).collect();
    answer["unblockLimits"] = json!(unblocked.limits);
    let Decision { held, rejected, remarks, nodes, outcome } = match decision {
        Ok(decision) => decision,
        Err(reason) => {
            answer["mismatch"] = reason.document();
            answer["mismatch"]["remedy"] = json!(reason.code.remedy());
            return answer;
        }
    };
    answer["remarks"] =
        remarks.iter().map(|(plugin, remark)| json!({"plugin": plugin, "details": [remark.document()]})).collect();
    answer["held"] = held.as_ref().map_or(Value::Null, |(plugin, reason)| {
        json!({"plugin": plugin, "reason": reason.text, "details": details(std::slice::from_ref(reason))})
    });
    answer["rejected"] = rejected.as_ref().map_or(Value::Null, |(plugin, rejection)| {
        json!({"plugin": plugin, "reason": rejection.message(), "details": details(&rejection.reasons)})
    });
    let nodes = nodes.iter().filter(|one| node.is_none_or(|node| *one.node == *node)).map(|one| {
        let refusals = one.refusals.iter().map(|refusal| {
            let texts: Vec<&str> = refusal.reasons.iter().map(|reason| &*reason.text).collect();
            json!({
                "plugin": refusal.plugin, "reasons": texts, "evictionsMayHelp": refusal.resolvable,
                "details": details(&refusal.reasons), "inputAgeSeconds": refusal.input_age.map(|age| age.as_secs()),
            })
        });
        let scores = one
            .scores
            .iter()
            .map(|score| json!({"plugin": score.plugin, "score": score.score, "weight": score.weight}));
        json!({
            "name": one.node, "total": one.total(),
            "refusals": refusals.collect::<Vec<_>>(), "scores": scores.collect::<Vec<_>>(),
        })
    });
    answer["nodes"] = nodes.collect();
    answer["outcome"] = match outcome {
        Some(Outcome::Bind { node, score, ties, .. }) => json!({"bind": {"node": node, "score": score, "alike": ties}}),
        Some(Outcome::Waiting { node }) => json!({"wait": {"node": node}}),
        Some(Outcome::Refused(Refused { message, nominated, victims, .. })) => {
            let victims: Vec<String> = victims.iter().map(|victim| victim.key.to_string()).collect();
            json!({"refused": {"message": message, "nominated": nominated, "victims": victims}})
        }
        Some(Outcome::ExtenderCall { .. }) | None => Value::Null,
    };
    answer
}
