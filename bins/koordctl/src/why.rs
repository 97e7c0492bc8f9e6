//! `koordctl why`: what koord-scheduler says about a pod and every node, and what it would do now.
//!
//! The answer comes from the scheduler's own engine, filled with the objects of a cluster or of files.

use anyhow::{Result, anyhow, bail};
use koord_engine::{
    cycle::OnNode,
    engine::{Decision, Outcome, Refused, Why},
};
use koord_program::plan::Source;
use koord_runtime::{
    clock::{Moment, SystemClock},
    uid::Uid,
};
use koord_scheduler::{Configuration, Options, snapshot};
use serde_json::{Value, json};

use crate::{
    Answer,
    cli::{OutputFormat, WhyArgs},
    connect, files,
    names::{few, question},
    screen::Screen,
    table,
};

/// Says why.
pub async fn run(args: &WhyArgs, screen: Screen) -> Result<Answer> {
    let (configuration, gates) = configuration(args)?;
    let (source, time) = if args.filename.is_empty() {
        let server = connect::reach(&args.answer.cluster).await?;
        (Source::Cluster(server.client), server.time)
    } else {
        (Source::Files(files::objects(&args.filename)?), None)
    };
    let now = args.at.or(time).unwrap_or_else(|| SystemClock::shared().now());
    let engine = snapshot(&configuration, gates, source, now).await?;
    let known: Vec<String> = engine.cluster().rows().map(|(_, node)| node.name.to_string()).collect();
    if let Some(node) = args.node.as_ref().filter(|node| !known.contains(node)) {
        let names = known.iter().map(String::as_str);
        bail!("there is no node {node}; {}", question(node, names).unwrap_or_else(|| few(&known)));
    }
    let uid = pod(&engine, args)?;
    let why = engine.why(&uid, Moment::default()).ok_or_else(|| anyhow!("the pod is gone"))?;
    let text = match args.answer.output {
        OutputFormat::Table => match &args.node {
            Some(node) => on_node(&why, node, screen),
            None => everywhere(&why, screen),
        },
        format => format.document(&document(&why, args.node.as_deref()))?,
    };
    Ok(Answer { text, code: u8::from(!is_placed(&why)) })
}

/// The scheduler's configuration and feature gates.
fn configuration(args: &WhyArgs) -> Result<(Configuration, koord_program::gates::Gates)> {
    let mut line = vec!["koord-scheduler".to_owned(), format!("--feature-gates={}", args.feature_gates)];
    line.extend(args.config.iter().map(|file| format!("--config={}", file.display())));
    let checked = Options::from_arguments(line).and_then(Options::check).map_err(|error| {
        let text = error.to_string();
        anyhow!("{}", text.trim().trim_start_matches("error: "))
    })?;
    let configuration = match &args.config {
        Some(_) => Configuration::of_flags(&checked.options)?,
        None => Configuration::shipped_for_all_pods()?,
    };
    Ok((configuration, checked.gates))
}

/// The uid of the pod.
fn pod(engine: &koord_engine::engine::Engine, args: &WhyArgs) -> Result<Uid> {
    let cluster = engine.cluster();
    let pods = || cluster.pods().map(|placed| &placed.pod).chain(cluster.pending());
    let of_namespace = || pods().filter(|pod| pod.key.namespace() == args.namespace && !pod.is_reservation());
    if let Some(pod) = of_namespace().find(|pod| pod.key.name() == args.pod) {
        return Ok(pod.uid.clone());
    }
    let elsewhere = pods().find(|pod| pod.key.name() == args.pod && !pod.is_reservation());
    let remedy = match elsewhere {
        Some(pod) => format!("there is one in namespace {}: name it with -n", pod.key.namespace()),
        None => question(&args.pod, of_namespace().map(|pod| pod.key.name()))
            .unwrap_or_else(|| "name one that has not ended, and its namespace with -n".to_owned()),
    };
    bail!("there is no pod {} in namespace {}; {remedy}", args.pod, args.namespace)
}

fn is_placed(Why { node, decision, .. }: &Why) -> bool {
    let outcome = decision.as_ref().and_then(|decision| decision.outcome.as_ref());
    node.is_some() || matches!(outcome, Some(Outcome::Bind { .. }))
}

/// What is so, in one line.
fn summary(Why { pod, node, decision }: &Why) -> String {
    let key = &pod.key;
    let Some(Decision { held, outcome, .. }) = decision else {
        return format!("{key} is left to another scheduler: its schedulerName is {:?}", &*pod.template.scheduler);
    };
    match (node, held, outcome) {
        (Some(node), ..) => format!("{key} is on {node}"),
        (None, Some((plugin, reason)), _) => format!("{key} is not tried: {plugin}: {reason}"),
        (None, None, Some(Outcome::Bind { node, score, ties, .. })) => {
            let alike = if *ties > 1 { format!(", as good as {} others", ties - 1) } else { String::new() };
            format!("{key} would be placed on {node} (score {score}{alike})")
        }
        (None, None, Some(Outcome::Waiting { node })) => {
            format!("{key} would take its place on {node} and wait there for the others of its gang")
        }
        (None, None, Some(Outcome::Refused(refused))) => format!("{key} waits: {}{}", refused.message, room(refused)),
        (None, None, None) => format!("{key} is not tried"),
    }
}

/// The pods that would be evicted.
fn room(Refused { nominated, victims, .. }: &Refused) -> String {
    let Some(node) = nominated else { return String::new() };
    let victims: Vec<String> = victims.iter().map(|victim| victim.key.to_string()).collect();
    format!("\nroom would be made on {node} by the eviction of {}", few(&victims))
}

fn rejection(Decision { rejected, .. }: &Decision) -> Option<String> {
    rejected.as_ref().map(|(plugin, rejection)| format!("{plugin} rejects the pod on all nodes: {}", rejection.message))
}

/// All nodes: those that take the pod by their score, and the others by what they lack.
fn everywhere(why: &Why, screen: Screen) -> String {
    let mut text = summary(why) + "\n";
    let Some(decision) = &why.decision else { return text };
    text.extend(rejection(decision).map(|line| line + "\n"));
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
        let header = ["NODES", "REFUSED BY", "WHY", "WHICH"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(refused).collect();
        text = format!("{text}\n{}", table::lines(&rows, screen));
    }
    text
}

/// The nodes that are refused, by the first plugin that refuses them and its words; the most frequent first.
fn refused(nodes: &[OnNode]) -> Vec<Vec<String>> {
    let mut groups: Vec<(&str, String, Vec<String>)> = Vec::new();
    for (node, first) in nodes.iter().filter_map(|node| Some((node, node.refusals.first()?))) {
        let words = first.reasons.join(", ");
        match groups.iter_mut().find(|(plugin, known, _)| *plugin == first.plugin && *known == words) {
            Some((_, _, names)) => names.push(node.node.to_string()),
            None => groups.push((first.plugin, words, vec![node.node.to_string()])),
        }
    }
    groups.sort_by_key(|(.., names)| std::cmp::Reverse(names.len()));
    let row = |(plugin, words, names): (&str, String, Vec<String>)| {
        vec![names.len().to_string(), plugin.to_owned(), words, few(&names)]
    };
    groups.into_iter().map(row).collect()
}

/// One node, with the words of all plugins.
fn on_node(why: &Why, name: &str, screen: Screen) -> String {
    let mut text = summary(why) + "\n";
    let Some(decision) = &why.decision else { return text };
    text.extend(rejection(decision).map(|line| line + "\n"));
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
        rows.push(["PLUGIN", "EVICTIONS", "WHY"].map(str::to_owned).to_vec());
        for one in &node.refusals {
            let help = if one.resolvable { "may help" } else { "do not help" };
            rows.push(vec![one.plugin.to_owned(), help.to_owned(), one.reasons.join(", ")]);
        }
        text = format!("{text}\n{name} does not take it\n");
    }
    text + &table::lines(&rows, screen)
}

/// The same for programs.
fn document(why: &Why, node: Option<&str>) -> Value {
    let Why { pod, node: has, decision } = why;
    let mut answer = json!({
        "pod": pod.key.to_string(), "scheduler": pod.template.scheduler, "node": has, "placed": is_placed(why), "summary": summary(why),
    });
    let Some(Decision { held, rejected, nodes, outcome }) = decision else { return answer };
    answer["held"] = held.as_ref().map_or(Value::Null, |(plugin, reason)| json!({"plugin": plugin, "reason": reason}));
    answer["rejected"] = rejected
        .as_ref()
        .map_or(Value::Null, |(plugin, rejection)| json!({"plugin": plugin, "reason": rejection.message}));
    let nodes = nodes.iter().filter(|one| node.is_none_or(|node| *one.node == *node)).map(|one| {
        let refusals = one.refusals.iter().map(|refusal| {
            json!({"plugin": refusal.plugin, "reasons": refusal.reasons, "evictionsMayHelp": refusal.resolvable})
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
        None => Value::Null,
    };
    answer
}
