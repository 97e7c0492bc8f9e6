//! `koordctl bench`: how fast pods are scheduled, by a scenario of nodes and pods.

mod place;

use std::{path::PathBuf, sync::Arc, time::Instant};

use anyhow::{Result, bail};
use koord_program::TerminationSignals;
use koord_runtime::clock::SystemClock;
use koord_scheduler_bench::{Baseline, LIST, Objects, Outcome, RUN_LABEL, Run, Scenario, builtin, list, summary};
use serde_json::Value;

use self::place::Place;
use crate::{
    Answer,
    cli::{BenchArgs, OutputFormat},
    screen::Screen,
    target::Target,
    up::logs,
};

/// Measures.
pub async fn run(args: &BenchArgs, screen: Screen) -> Result<Answer> {
    let scenario = match &args.filename {
        Some(file) => Scenario::of_file(file)?,
        None if args.scenario == LIST => return Ok(Answer::success(list(screen)?)),
        None => builtin(&args.scenario)?,
    };
    logs::init(0);
    koord_listen::raise_open_files();
    let now = SystemClock::shared().now();
    let id = format!("{}-{:04x}", now.strftime("%Y%m%d-%H%M%S"), std::process::id() & 0xffff);
    let file = args.result.clone().unwrap_or_else(|| PathBuf::from(format!("bench-{}-{id}.json", scenario.name)));
    let target = Target::of(&file, "--result", args.force)?;
    let baseline = args.baseline.as_deref().map(Baseline::of_file).transpose()?;
    baseline.iter().try_for_each(|baseline| baseline.is_of(&scenario.name))?;

    let mut signals = TerminationSignals::listen()?;
    let place = tokio::select! {
        biased;
        () = signals.received() => bail!("interrupted before anything was created"),
        place = Place::of(args, &scenario) => place?,
    };
    let name = place.name.clone();
    let objects = Objects::new(place.client.clone());
    let run = Arc::new(Run::new(id, scenario, objects, args.qps, args.beside_other_nodes));
    let timed_out = measure(&run, place, &mut signals).await?;
    let mut outcome = Outcome::of(&run, timed_out, name, now);
    if let Some(baseline) = &baseline {
        baseline.is_alike(&outcome)?;
        outcome = outcome.against(baseline, run.scenario.thresholds);
    }
    let document = serde_json::to_value(&outcome)?;
    target.write(&OutputFormat::Json.document(&document)?)?;
    let text = text(args, &outcome, &run, &document, &file, screen)?;
    Ok(Answer { text, code: u8::from(!outcome.is_good()) })
}

fn text(
    args: &BenchArgs,
    outcome: &Outcome,
    run: &Run,
    document: &Value,
    file: &std::path::Path,
    screen: Screen,
) -> Result<String> {
    if args.output != OutputFormat::Table {
        return args.output.document(document);
    }
    let qps = args.qps.or(run.scenario.client_qps).unwrap_or(0);
    Ok(format!("{}\nresult: {}\n", summary::text(outcome, &run.scenario, qps, screen), file.display()))
}

/// Plays the scenario, and removes what it has created. Says whether the time was up.
async fn measure(run: &Arc<Run>, mut place: Place, signals: &mut TerminationSignals) -> Result<bool> {
    let following = tokio::spawn(Arc::clone(&run.pods).follow(place.client.clone(), run.id.clone()));
    let end = Instant::now() + run.scenario.timeout();
    let played = tokio::select! {
        biased;
        () = signals.received() => None,
        ended = place.ended() => Some(ended.map(|()| false)),
        played = run.play() => Some(played.map(|()| false)),
        () = tokio::time::sleep_until(end.into()) => Some(Ok(true)),
    };
    run.stop_measuring();
    following.abort();
    let removed = if place.is_own() {
        Ok(())
    } else {
        tokio::select! {
            removed = run.objects.remove_all(&run.id) => removed,
            () = signals.received() => bail!(
                "interrupted again: what was created is still there; it goes with: kubectl delete nodes,namespaces -l {}={}",
                RUN_LABEL, run.id
            ),
        }
    };
    place.stop().await;
    match played {
        None => {
            removed?;
            bail!("interrupted; what was created is gone again")
        }
        Some(played) => {
            let timed_out = played?;
            removed?;
            Ok(timed_out)
        }
    }
}
