//! A replay, for people and for programs.

use serde_json::{Value, json};

use super::{Decision, Replay, Replayed};
use crate::{names::few, screen::Screen, table};

pub(super) fn text(replay: &Replay, screen: Screen) -> String {
    let Replay { pods, configurations, left_out, .. } = replay;
    let mut text = head(replay);
    let mut rows = rows(replay);
    if rows.len() > 1 {
        // A column that is empty says nothing.
        let columns = rows.first().map_or(0, Vec::len);
        let empty = |column: usize| rows.iter().skip(1).all(|row| row.get(column).is_none_or(String::is_empty));
        for column in (0..columns).rev().filter(|column| empty(*column)).collect::<Vec<_>>() {
            for row in &mut rows {
                row.remove(column);
            }
        }
        text = format!("{text}\n{}", table::lines(&rows, screen));
    }
    for (name, evicted) in configurations.iter().zip(&replay.evicted).filter(|(_, evicted)| !evicted.is_empty()) {
        let with = if configurations.len() > 1 { format!(" with {name}") } else { String::new() };
        text = format!("{text}\nEvicted{with}: {}\n", few(evicted));
    }
    if *left_out > 0 {
        text = format!("{text}\n{left_out} more pods wait for another scheduler\n");
    }
    if pods.is_empty() && !replay.is_check {
        text += "\nWith --check the pods that have nodes are decided anew.\n";
    }
    text
}

/// What is so, in a line for each configuration.
fn head(replay: &Replay) -> String {
    let Replay { at, is_check, configurations, pods, .. } = replay;
    let count = |index: usize, is: fn(&Replayed, &Decision) -> bool| {
        pods.iter().filter(|pod| pod.decisions.get(index).is_some_and(|decision| is(pod, decision))).count()
    };
    let all = pods.len();
    let line = |(index, name): (usize, &String)| {
        let with = if configurations.len() > 1 { format!("{name}: ") } else { String::new() };
        if *is_check {
            let same = count(index, |pod, decision| decision.node.is_some() && decision.node == pod.node);
            format!("{with}{same} of {all} pods would be placed where they are\n")
        } else {
            let placed = count(index, |_, decision| decision.node.is_some());
            format!("{with}{placed} of {all} pods that wait get a node\n")
        }
    };
    let lines: String = configurations.iter().enumerate().map(line).collect();
    let differing = pods.iter().filter(|pod| pod.differs).count();
    let differing = if !is_check && configurations.len() > 1 {
        format!("{differing} pods get different nodes\n")
    } else {
        String::new()
    };
    format!("At {at}:\n{lines}{differing}")
}

/// One row for each pod that there is something to say about.
fn rows(replay: &Replay) -> Vec<Vec<String>> {
    let Replay { is_check, configurations, pods, .. } = replay;
    let several = configurations.len() > 1;
    let mut head = vec!["POD".to_owned()];
    head.extend(is_check.then(|| "IS ON".to_owned()));
    let node = if *is_check { "WOULD BE ON" } else { "NODE" };
    if several {
        head.extend(configurations.iter().cloned());
    } else {
        head.extend([node.to_owned(), "BY".to_owned()]);
    }
    head.push("WHY".to_owned());
    let row = |pod: &Replayed| {
        let mut row = vec![pod.pod.clone()];
        row.extend(is_check.then(|| pod.node.clone().unwrap_or_default()));
        row.extend(pod.decisions.iter().map(|decision| decision.node.clone().unwrap_or_else(|| "waits".to_owned())));
        if several {
            let words = pod.decisions.iter().find_map(|decision| decision.words.clone());
            row.push(words.unwrap_or_default());
        } else if let Some(decision) = pod.decisions.first() {
            row.extend([decision.plugins.join(", "), decision.words.clone().unwrap_or_default()]);
        }
        row
    };
    // What is as it should be is only counted.
    let told = pods.iter().filter(|pod| if *is_check || several { pod.differs } else { true });
    std::iter::once(head).chain(told.map(row)).collect()
}

pub(super) fn document(replay: &Replay) -> Value {
    let decision = |decision: &Decision| {
        let Decision { node, plugins, words } = decision;
        json!({"node": node, "plugins": plugins, "message": words})
    };
    let pod = |pod: &Replayed| {
        let decisions: Vec<Value> = pod.decisions.iter().map(decision).collect();
        let mut document = json!({"pod": pod.pod, "decisions": decisions, "differs": pod.differs});
        if replay.is_check {
            document["node"] = json!(pod.node);
        }
        document
    };
    let pods: Vec<Value> = replay.pods.iter().map(pod).collect();
    json!({
        "at": replay.at.to_string(),
        "check": replay.is_check,
        "configurations": replay.configurations,
        "pods": pods,
        "evicted": replay.evicted,
        "otherSchedulers": replay.left_out,
    })
}
