//! What a scheduler that runs has found out about a pod in its last attempts.

use anyhow::{Result, anyhow};
use koord_engine::plugin::ReasonCode;
use serde_json::Value;

use crate::{
    Answer,
    cli::{OutputFormat, WhyArgs},
    running::{ask, outdated, plain},
    screen::Screen,
    table,
};

/// Tells the last attempts of a pod, the newest first.
pub(super) async fn tell(pod: &str, args: &WhyArgs, screen: Screen) -> Result<Answer> {
    let scheduler = &args.running;
    let Some(history) = ask(scheduler, &format!("verdicts/{}/{pod}", args.namespace), &["attempts"]).await? else {
        let services = ask(scheduler, "__services__", &["GET"]).await?.ok_or_else(|| outdated(scheduler))?;
        let paths = services["GET"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if !paths.into_iter().any(|path| path.contains("/verdicts/")) {
            return Err(anyhow!("the scheduler at {scheduler} keeps no verdicts; it is older than this koordctl"));
        }
        let words = "has not been tried lately: it is held back, belongs to another scheduler, or was tried before others \
                     pushed it out";
        return Ok(Answer::failure(format!("{}/{pod} {words}\n", args.namespace)));
    };
    let text = match args.answer.output {
        OutputFormat::Table => table(&history, screen),
        format => format.document(&history)?,
    };
    Ok(Answer::success(text))
}

fn table(history: &Value, screen: Screen) -> String {
    let header = ["TIME", "ATTEMPT", "RESULT", "NODES", "BY", "CODE", "WHY", "AGE"].map(str::to_owned).to_vec();
    let attempts = history["attempts"].as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = attempts.flat_map(rows).collect();
    let mut text = not_tried(&history["notTried"]);
    if !rows.is_empty() {
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        text += &table::lines(&rows, screen);
    }
    text
}

/// Why a pod that waits is not tried now.
fn not_tried(held: &Value) -> String {
    if held.is_null() {
        return String::new();
    }
    let (text, code) = (plain(&held["reason"]["text"]), plain(&held["reason"]["code"]));
    let by = Some(plain(&held["plugin"])).filter(|plugin| !plugin.is_empty());
    let by = by.map(|plugin| format!("{plugin}: ")).unwrap_or_default();
    let remedy = ReasonCode::ALL.iter().find(|known| known.as_str() == code).map_or("", |known| known.remedy());
    format!("not tried now: {by}{text} [{code}]\n{remedy}\n")
}

/// A line for each class of nodes that refused the pod, or one for an attempt that did not fail.
fn rows(attempt: &Value) -> Vec<Vec<String>> {
    let start = [plain(&attempt["time"]), plain(&attempt["attempt"]), plain(&attempt["result"])];
    let refusals = attempt["refusedBy"].as_array().map_or(&[][..], Vec::as_slice);
    if refusals.is_empty() {
        let node = plain(&attempt["node"]);
        let code = plain(&attempt["code"]);
        return vec![[start.to_vec(), ["", "", &code, &node, ""].map(str::to_owned).to_vec()].concat()];
    }
    let line = |(index, refusal): (usize, &Value)| {
        let start = if index == 0 { start.to_vec() } else { vec![String::new(); start.len()] };
        let of = |field: &str| -> String {
            let mut texts: Vec<String> =
                refusal["reasons"].as_array().into_iter().flatten().map(|reason| plain(&reason[field])).collect();
            texts.dedup();
            texts.join(", ")
        };
        let nodes = refusal["nodes"].as_u64().map_or_else(|| "all".to_owned(), |nodes| nodes.to_string());
        let age = refusal["inputAgeSeconds"].as_u64().map(|age| format!("{age} s")).unwrap_or_default();
        [start, vec![nodes, plain(&refusal["plugin"]), of("code"), of("text"), age]].concat()
    };
    refusals.iter().enumerate().map(line).collect()
}
