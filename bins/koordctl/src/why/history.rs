//! What a scheduler that runs has found out about a pod, or the members of a gang, in its last attempts.

use std::{cmp::Reverse, collections::BTreeMap};

use anyhow::{Result, anyhow, bail};
use jiff::Timestamp;
use koord_scheduler_framework::ReasonCode;
use serde_json::{Value, json};

use crate::{
    Answer,
    cli::{OutputFormat, WhyArgs},
    names::few,
    running::{ask, outdated, plain},
    screen::Screen,
    table,
};

/// What begins a line about an attempt of a pod, and of a member of a gang.
const OF_POD: [&str; 3] = ["time", "attempt", "result"];
const OF_MEMBER: [&str; 4] = ["time", "pod", "attempt", "result"];
/// Members that are asked about.
const MEMBERS_MAX: usize = 64;
/// Attempts of a gang that are shown.
const ATTEMPTS_MAX: usize = 100;

/// Tells the last attempts of a pod, the newest first.
pub(super) async fn tell(pod: &str, args: &WhyArgs, screen: Screen) -> Result<Answer> {
    let scheduler = &args.running;
    let Some(history) = ask(scheduler, &format!("verdicts/{}/{pod}", args.namespace()), &["attempts"]).await? else {
        let services = ask(scheduler, "__services__", &["GET"]).await?.ok_or_else(|| outdated(scheduler))?;
        let paths = services["GET"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if !paths.into_iter().any(|path| path.contains("/verdicts/")) {
            return Err(anyhow!("the scheduler at {scheduler} keeps no verdicts; it is older than this koordctl"));
        }
        let words = "has not been tried lately: it is held back, belongs to another scheduler, or was tried before others \
                     pushed it out";
        return Ok(Answer::failure(format!("{}/{pod} {words}\n", args.namespace())));
    };
    let text = match args.answer.output {
        OutputFormat::Table => not_tried(&history["notTried"], "") + &table(&history, &OF_POD, screen),
        format => format.document(&history)?,
    };
    Ok(Answer::success(text))
}

/// Tells the last attempts of the members of a gang, the newest first.
pub(super) async fn tell_gang(name: &str, args: &WhyArgs, screen: Screen) -> Result<Answer> {
    let scheduler = &args.running;
    let id = if name.contains('/') { name.to_owned() } else { format!("{}/{name}", args.namespace()) };
    let Some(gang) = ask(scheduler, &format!("plugins/Coscheduling/gang/{id}"), &["children"]).await? else {
        bail!("the scheduler at {scheduler} knows no gang {id}; name it as NAMESPACE/NAME")
    };
    let names = |field: &str| gang[field].as_object().into_iter().flat_map(serde_json::Map::keys).cloned();
    // Those that wait are asked about first.
    let mut members: Vec<String> = names("pendingChildren").collect();
    let others: Vec<String> = names("children").filter(|member| !members.contains(member)).collect();
    members.extend(others);
    let left_out = members.len().saturating_sub(MEMBERS_MAX);
    members.truncate(MEMBERS_MAX);
    let (mut attempts, mut held) = (Vec::new(), Vec::new());
    for member in &members {
        let Some(mut known) = ask(scheduler, &format!("verdicts/{member}"), &["attempts"]).await? else { continue };
        if let Some(mut why) = known.as_object_mut().and_then(|known| known.remove("notTried")) {
            why["pod"] = json!(member);
            held.push(why);
        }
        if let Value::Array(own) = known["attempts"].take() {
            attempts.extend(own.into_iter().map(|mut attempt| {
                attempt["pod"] = json!(member);
                attempt
            }));
        }
    }
    attempts.sort_by_cached_key(|attempt| Reverse(plain(&attempt["time"]).parse::<Timestamp>().ok()));
    attempts.truncate(ATTEMPTS_MAX);
    let history = json!({"gang": id, "attempts": attempts, "notTried": held, "membersLeftOut": left_out});
    let text = match args.answer.output {
        OutputFormat::Table => of_gang(&history, screen),
        format => format.document(&history)?,
    };
    let is_known = !attempts.is_empty() || !held.is_empty();
    Ok(Answer { text, code: u8::from(!is_known) })
}

fn of_gang(history: &Value, screen: Screen) -> String {
    let mut alike = BTreeMap::<String, (&Value, Vec<String>)>::new();
    for held in history["notTried"].as_array().into_iter().flatten() {
        let (_, pods) = alike.entry(held["reason"].to_string()).or_insert((held, Vec::new()));
        pods.push(plain(&held["pod"]));
    }
    let mut text: String = alike.values().map(|(held, pods)| not_tried(held, &few(pods))).collect();
    text += &table(history, &OF_MEMBER, screen);
    if text.is_empty() {
        text = format!("no member of gang {} has been tried lately\n", plain(&history["gang"]));
    }
    match history["membersLeftOut"].as_u64() {
        Some(left_out) if left_out > 0 => format!("{text}{left_out} further members were not asked about\n"),
        _ => text,
    }
}

/// Attempts, each with these fields and why it failed.
fn table(history: &Value, fields: &[&str], screen: Screen) -> String {
    let reasons = ["NODES", "BY", "CODE", "WHY", "AGE"].map(str::to_owned);
    let header: Vec<String> = fields.iter().map(|field| field.to_uppercase()).chain(reasons).collect();
    let attempts = history["attempts"].as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = attempts.flat_map(|attempt| rows(attempt, fields)).collect();
    if rows.is_empty() {
        return String::new();
    }
    table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen)
}

/// Why pods that wait are not tried now; `pods` names them where there are several.
fn not_tried(held: &Value, pods: &str) -> String {
    if held.is_null() {
        return String::new();
    }
    let (text, code) = (plain(&held["reason"]["text"]), plain(&held["reason"]["code"]));
    let by = Some(plain(&held["plugin"])).filter(|plugin| !plugin.is_empty());
    let by = by.map(|plugin| format!("{plugin}: ")).unwrap_or_default();
    let remedy = ReasonCode::ALL.iter().find(|known| known.as_str() == code).map_or("", |known| known.remedy());
    let pods = if pods.is_empty() { String::new() } else { format!("{pods}: ") };
    format!("not tried now: {pods}{by}{text} [{code}]\n{remedy}\n")
}

/// A line for each class of nodes that refused the pod, or one for an attempt that did not fail.
fn rows(attempt: &Value, fields: &[&str]) -> Vec<Vec<String>> {
    let start: Vec<String> = fields.iter().map(|field| plain(&attempt[*field])).collect();
    let refusals = attempt["refusedBy"].as_array().map_or(&[][..], Vec::as_slice);
    if refusals.is_empty() {
        let node = plain(&attempt["node"]);
        let code = plain(&attempt["code"]);
        return vec![[start, ["", "", &code, &node, ""].map(str::to_owned).to_vec()].concat()];
    }
    let line = |(index, refusal): (usize, &Value)| {
        let start = if index == 0 { start.clone() } else { vec![String::new(); start.len()] };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_a_gang_name_their_member_and_those_that_are_held_alike_are_one_line() {
        let refusal = json!({
            "plugin": "Coscheduling", "nodes": null,
            "reasons": [{"code": "NetworkTopologyFull", "text": "no candidate"}],
        });
        let attempt = json!({
            "time": "2026-01-01T00:00:02Z", "pod": "lab/a", "attempt": 3, "result": "refused", "refusedBy": [refusal],
        });
        let held = |pod: &str| {
            let reason = json!({"code": "GangRepresented", "text": "gang lab/train is tried by lab/a"});
            json!({"pod": pod, "plugin": "Coscheduling", "reason": reason})
        };
        let history = json!({
            "gang": "lab/train", "attempts": [attempt], "notTried": [held("lab/b"), held("lab/c")], "membersLeftOut": 2,
        });
        let text = of_gang(&history, Screen::ENDLESS);
        let words: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            words[0],
            "not tried now: lab/b, lab/c: Coscheduling: gang lab/train is tried by lab/a [GangRepresented]"
        );
        assert_eq!(
            words[2..],
            [
                "TIME POD ATTEMPT RESULT NODES BY CODE WHY AGE",
                "2026-01-01T00:00:02Z lab/a 3 refused all Coscheduling NetworkTopologyFull no candidate",
                "2 further members were not asked about",
            ]
        );
        let none = json!({"gang": "lab/train", "attempts": [], "notTried": [], "membersLeftOut": 0});
        assert_eq!(of_gang(&none, Screen::ENDLESS), "no member of gang lab/train has been tried lately\n");
    }
}
