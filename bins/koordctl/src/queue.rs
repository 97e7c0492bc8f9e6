//! `koordctl queue`: the pods that wait in a scheduler that runs, where they stand, and what they wait for.

use anyhow::Result;
use serde_json::Value;

use crate::{
    Answer,
    cli::{OutputFormat, QueueArgs, QueueCommand, QueueShowArgs},
    running::{ask, outdated, plain},
    screen::Screen,
    table,
};

/// Carries out a command about the queue.
pub async fn run(command: &QueueCommand, screen: Screen) -> Result<Answer> {
    match command {
        QueueCommand::List(args) => list(args, screen).await,
        QueueCommand::Show(args) => show(args, screen).await,
    }
}

async fn list(args: &QueueArgs, screen: Screen) -> Result<Answer> {
    let queue = queue(&args.scheduler).await?;
    let text = match args.output {
        OutputFormat::Table => listed(&queue, screen),
        format => format.document(&queue)?,
    };
    Ok(Answer::success(text))
}

async fn show(args: &QueueShowArgs, screen: Screen) -> Result<Answer> {
    let QueueArgs { scheduler, output } = &args.queue;
    let QueueShowArgs { pod: name, namespace, .. } = args;
    let Some(pod) = ask(scheduler, &format!("queue/{namespace}/{name}"), &["queue", "position"]).await? else {
        // One that is too old for the question knows no queue either.
        queue(scheduler).await?;
        return Ok(Answer::failure(format!(
            "{namespace}/{name} is not in the queue: it has a node, has ended, or belongs to another scheduler\n\
             `koordctl why pod {name} -n {namespace}` shows which\n"
        )));
    };
    let text = match output {
        OutputFormat::Table => shown(&pod, screen),
        format => format.document(&pod)?,
    };
    Ok(Answer::success(text))
}

async fn queue(scheduler: &str) -> Result<Value> {
    ask(scheduler, "queue", &["active", "unschedulable", "pods"]).await?.ok_or_else(|| outdated(scheduler))
}

fn listed(queue: &Value, screen: Screen) -> String {
    let count = |field: &str| queue[field].as_u64().unwrap_or(0);
    let parts = ["active", "backoff", "unschedulable", "gated", "inFlight"];
    let counts: Vec<String> = parts.iter().map(|part| format!("{} {part}", count(part))).collect();
    let pods = queue["pods"].as_array().cloned().unwrap_or_default();
    let mut text = counts.join(", ") + "\n";
    if !pods.is_empty() {
        let header = ["QUEUE", "POSITION", "POD", "PRIORITY", "ATTEMPTS", "WAITS", "PAUSES", "STOPPED BY"];
        let rows = pods.iter().map(|pod| {
            let plain = |field: &str| plain(&pod[field]);
            vec![
                plain("queue"),
                plain("position"),
                subject(pod),
                plain("priority"),
                plain("attempts"),
                seconds(&pod["waitingSeconds"]),
                seconds(&pod["backoffSeconds"]),
                listing(&pod["plugins"]),
            ]
        });
        let rows: Vec<Vec<String>> = std::iter::once(header.map(str::to_owned).to_vec()).chain(rows).collect();
        text = format!("{text}\n{}", table::lines(&rows, screen));
    }
    let more = count("notShown");
    if more > 0 { format!("{text}and {more} more\n") } else { text }
}

/// A pod by its name, or the Reservation for which it stands.
fn subject(pod: &Value) -> String {
    match pod["reservation"].as_str() {
        Some(name) => format!("Reservation {name}"),
        None => plain(&pod["pod"]),
    }
}

fn shown(pod: &Value, screen: Screen) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut say = |name: &str, words: String| {
        if !words.is_empty() {
            rows.push(vec![name.to_owned(), words]);
        }
    };
    say("pod", subject(pod));
    say("queue", format!("{}, position {}", plain(&pod["queue"]), plain(&pod["position"])));
    say("priority", plain(&pod["priority"]));
    let (refusals, errors) = (plain(&pod["refusals"]), plain(&pod["errors"]));
    say("attempts", format!("{} ({refusals} refused, {errors} failed in a row)", plain(&pod["attempts"])));
    say("waits for", seconds(&pod["waitingSeconds"]));
    if !pod["backoffUntil"].is_null() {
        say("pauses until", format!("{} ({})", plain(&pod["backoffUntil"]), seconds(&pod["backoffSeconds"])));
    }
    say("stopped by", listing(&pod["plugins"]));
    say("because", plain(&pod["reason"]));
    say("is tried after", listing(&pod["wakesOn"]));
    say("room is made on", plain(&pod["nominatedNode"]));
    let gang = &pod["gang"];
    if gang.is_object() {
        let count = |field: &str| gang[field].as_object().map_or(0, serde_json::Map::len);
        let words = format!(
            "{}: needs {}, has {}, of which {} have their places and {} are bound",
            plain(&gang["name"]),
            plain(&gang["minRequiredNumber"]),
            count("children"),
            count("waitingForBindChildren"),
            count("boundChildren"),
        );
        say("gang", words);
    }
    table::lines(&rows, screen)
}

fn listing(value: &Value) -> String {
    value.as_array().into_iter().flatten().map(plain).collect::<Vec<_>>().join(", ")
}

fn seconds(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |seconds| format!("{seconds:.1} s"))
}
