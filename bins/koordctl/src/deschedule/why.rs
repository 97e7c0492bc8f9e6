//! Why one pod would be evicted, or stay.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use koord_descheduler_framework::{Input, Step, Verdict, VerdictScope};
use koord_runtime::key::ObjectKey;
use serde_json::{Value, json};

use super::{Subject, subject};
use crate::{
    Answer,
    cli::{DescheduleWhyArgs, OutputFormat},
    names::question,
    screen::Screen,
    table,
};

pub(super) async fn explain(args: &DescheduleWhyArgs, screen: Screen) -> Result<Answer> {
    let subject = subject(&args.descheduler).await?;
    let memory = subject.memory(args.descheduler.passes);
    let Subject { descheduler, cluster, unmeasured, now, .. } = subject;
    let key = ObjectKey::new(&args.namespace, &args.pod);
    let Some(id) = cluster.pod_id(key.as_str()) else {
        let names = cluster.pods().filter(|(_, pod)| pod.namespace() == args.namespace);
        let similar = question(&args.pod, names.map(|(_, pod)| pod.key.name()));
        let hint = similar.map(|similar| format!("; {similar}")).unwrap_or_default();
        return Err(anyhow!("there is no pod {key}{hint}"));
    };
    let input = Input { verdicts_of: VerdictScope::Pod(&key), ..Input::new(&cluster, &memory, now) };
    let plan = descheduler.pass(&input);
    let of_pod = plan.steps.iter().filter_map(Step::eviction).find(|eviction| eviction.pod.key == key);
    let text = match args.descheduler.answer.output {
        OutputFormat::Table => {
            let mut text = String::new();
            for unknown in &unmeasured {
                text += &(screen.wrapped(unknown, "", "  ") + "\n");
            }
            if let Some(skipped) = &plan.skipped {
                let _ = writeln!(text, "nothing is descheduled: {skipped}");
            }
            match of_pod {
                Some(eviction) => {
                    let why = format!("{key} would be evicted by {}: {}", eviction.plugin, eviction.reason);
                    text += &(screen.wrapped(&why, "", "  ") + "\n");
                }
                None => _ = writeln!(text, "{key} would stay"),
            }
            if cluster.pod(id).is_some_and(|pod| pod.node.is_none()) {
                text += "it has no node, so no strategy looks at it\n";
            }
            text + &verdicts(&plan.verdicts, screen)
        }
        format => format.document(&json!({
            "pod": key.as_str(),
            "evicted": of_pod.map(|eviction| json!({"strategy": eviction.plugin, "reason": eviction.reason.document()})),
            "left": plan.verdicts.iter().map(document).collect::<Vec<_>>(),
        }))?,
    };
    Ok(if of_pod.is_none() { Answer::success(text) } else { Answer::failure(text) })
}

/// Why strategies leave the pod, each with what would change that.
fn verdicts(verdicts: &[Verdict], screen: Screen) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let header = ["PROFILE", "STRATEGY", "LEAVES IT BECAUSE", "WHAT WOULD CHANGE THAT"].map(str::to_owned).to_vec();
    let rows = verdicts.iter().map(|verdict| {
        let (profile, strategy) = (verdict.profile.to_string(), verdict.plugin.to_owned());
        vec![profile, strategy, verdict.refusal.to_string(), verdict.refusal.code.remedy().to_owned()]
    });
    format!("\n{}", table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen))
}

fn document(verdict: &Verdict) -> Value {
    json!({"profile": verdict.profile, "strategy": verdict.plugin, "reason": verdict.refusal.reason().document()})
}
