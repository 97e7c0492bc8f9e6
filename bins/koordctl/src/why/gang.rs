//! Gangs: which members have their places, which wait, and why.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use koord_runtime::clock::Moment;
use koord_scheduler_engine::{Engine, Outcome, Why};
use koord_scheduler_framework::pod::Pod;
use koord_scheduler_what_if::{Objects, Unblock, Unblocked, service, unblock};
use serde_json::{Value, json};

use super::answer;
use crate::{
    Answer,
    cli::{OutputFormat, WhyArgs},
    names::question,
    screen::Screen,
    table,
};

/// Attempts that are played to see what becomes of the gang.
const ATTEMPTS_MAX: usize = 2000;

struct Member {
    key: String,
    /// `bound`, `placed`, `waits`, `held` or `refused`.
    state: &'static str,
    node: Option<String>,
    /// Its node when the attempts in the order of the queue are played.
    would: Option<String>,
    reason: String,
    /// What the engine says of it.
    why: Why,
}

/// Says what becomes of a gang.
pub(super) async fn explain(
    engine: &Engine,
    objects: &mut Objects,
    name: &str,
    args: &WhyArgs,
    screen: Screen,
) -> Result<Answer> {
    let gangs = service(engine, "Coscheduling", &["gangs"])
        .ok_or_else(|| anyhow!("this configuration has no plugin Coscheduling"))?;
    let id = if name.contains('/') { name.to_owned() } else { format!("{}/{name}", args.namespace()) };
    let Some(gang) = gangs.get(&id) else {
        let known = gangs.as_object().into_iter().flat_map(serde_json::Map::keys).map(String::as_str);
        let remedy = question(&id, known).unwrap_or_else(|| "name it as NAMESPACE/NAME".to_owned());
        bail!("there is no gang {id}; {remedy}")
    };
    let members = members(engine, gang);
    let count = |is_one: fn(&Member) -> bool| members.iter().filter(|member| is_one(member)).count();
    let (placed, would) = (count(|member| member.node.is_some()), count(|member| member.would.is_some()));
    let needs = gang["minRequiredNumber"].as_u64().unwrap_or(0);
    let is_enough = |members: usize| needs > 0 && u64::try_from(members).is_ok_and(|members| members >= needs);
    let verdict = match (gang["hasGangInit"] == true, is_enough(members.len()), is_enough(placed + would)) {
        _ if is_enough(placed) => "it has its places".to_owned(),
        (false, ..) => "it is not declared: it has no PodGroup, and no pod with a legal min-available".to_owned(),
        (_, false, _) => format!("it has {} of {needs} members, so that none is tried", members.len()),
        (_, _, true) => "it would be placed".to_owned(),
        (_, _, false) => format!("it waits: not all of {needs} members find a node"),
    };
    let summary =
        format!("gang {id} has {} members and needs {needs}, {placed} have their places: {verdict}", members.len());
    let is_placed = is_enough(placed + would);
    let stuck = members.iter().find(|member| member.node.is_none()).filter(|_| !is_placed);
    let unblocked = match stuck {
        Some(member) => unblock(engine, objects, &member.why).await?,
        None => Unblocked::default(),
    };
    let text = match args.answer.output {
        OutputFormat::Table => {
            let header = ["MEMBER", "STATE", "NODE", "WHY"].map(str::to_owned).to_vec();
            let rows = members.iter().map(Member::row);
            let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
            format!("{summary}\n\n{}{}", table::lines(&rows, screen), unblocking(stuck, &unblocked, screen))
        }
        format => format.document(&json!({
            "gang": id, "summary": summary, "needs": needs, "declared": gang["hasGangInit"], "mode": gang["mode"],
            "group": gang["gangGroup"], "members": members.iter().map(Member::document).collect::<Vec<_>>(),
            "unblock": unblocked.answers.iter().map(Unblock::document).collect::<Vec<_>>(),
            "unblockOf": stuck.map(|member| &member.key), "unblockLimits": unblocked.limits,
        }))?,
    };
    Ok(Answer { text, code: u8::from(!is_placed) })
}

/// What would help a member that has no place, and so its gang.
fn unblocking(stuck: Option<&Member>, unblocked: &Unblocked, screen: Screen) -> String {
    let Some(member) = stuck else { return String::new() };
    let lines = unblocked.answers.iter().map(|one| format!("{} {}", member.key, one.to_text()));
    let lines: Vec<String> = lines.chain(unblocked.limits.iter().cloned()).collect();
    let wrapped = lines.iter().map(|line| screen.wrapped(line, "", "    ").trim_end().to_owned() + "\n");
    let text: String = wrapped.collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn members(engine: &Engine, gang: &Value) -> Vec<Member> {
    let names = gang["children"].as_object().into_iter().flat_map(serde_json::Map::keys);
    let pods: BTreeMap<String, &Pod> = super::pods(engine).map(|pod| (pod.key.to_string(), &**pod)).collect();
    let would = engine.copy().rounds(ATTEMPTS_MAX, Moment::default());
    let member = |key: &str| {
        let pod = pods.get(key)?;
        let why = engine.copy().why(&pod.uid, Moment::default())?;
        Some(Member::of(key, why, would.get(&pod.uid).map(ToString::to_string)))
    };
    names.filter_map(|key| member(key)).collect()
}

impl Member {
    fn of(key: &str, why: Why, would: Option<String>) -> Self {
        let decision = why.decision.as_ref().ok();
        let held = decision.and_then(|decision| decision.held.as_ref());
        let node = why.node.as_ref().map(ToString::to_string);
        let (state, reason) = match (&node, held, decision.and_then(|decision| decision.outcome.as_ref())) {
            (Some(_), ..) => (if why.pod.node.is_some() { "bound" } else { "placed" }, String::new()),
            (None, Some((plugin, reason)), _) => ("held", format!("{plugin}: {reason} [{}]", reason.code)),
            (None, None, Some(Outcome::Refused(refused))) => ("refused", refused.message.clone()),
            (None, None, Some(Outcome::Bind { node, .. } | Outcome::Waiting { node })) => {
                ("waits", format!("{node} would take it"))
            }
            (None, None, Some(Outcome::ExtenderCall { .. }) | None) => ("waits", answer::summary(&why)),
        };
        Self { key: key.to_owned(), state, would: would.filter(|_| node.is_none()), node, reason, why }
    }

    fn row(&self) -> Vec<String> {
        let node = self.node.clone().or_else(|| self.would.as_ref().map(|node| format!("({node})")));
        vec![self.key.clone(), self.state.to_owned(), node.unwrap_or_default(), self.reason.clone()]
    }

    fn document(&self) -> Value {
        json!({"pod": self.key, "state": self.state, "node": self.node, "wouldBe": self.would, "reason": self.reason})
    }
}
