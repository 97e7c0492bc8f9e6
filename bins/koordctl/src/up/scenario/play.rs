//! Plays a scenario in a running cluster.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use koord_runtime::clock::SharedClock;
use kube::Client;
use tokio::time::Instant;

use super::{
    Scenario, Step,
    action::Outcome,
    keys::Keys,
    pacing::{Next, Pacing},
};
use crate::screen::Screen;

/// Plays scenarios in a cluster.
pub struct Player {
    /// A client of the cluster.
    pub client: Client,
    pub clock: SharedClock,
    /// What leads there, for the commands that are shown.
    pub kubeconfig: PathBuf,
    /// How fast the cluster's time runs.
    pub speed: f64,
    /// What it is shown on.
    pub screen: Screen,
}

/// How long a consequence may take, in the cluster's time: longer than a report is trusted.
const CONSEQUENCE_MAX: Duration = Duration::from_mins(40);

/// How long it may take at least, in real time: a machine may be slow.
const CONSEQUENCE_REAL_MIN: Duration = Duration::from_mins(1);

/// From one look to the next, in real time.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Plays all steps. On a terminal the cluster stays when the last one is over, until the reader has enough.
pub async fn play(scenario: &Scenario, player: &Player, by_hand: bool) -> Result<()> {
    let mut keys = Keys::listen(by_hand);
    let mut pacing = Pacing::new(keys.as_mut().map(Keys::take), by_hand);
    let reading = Duration::from_secs(scenario.reading_s.into()).mul_f64(scenario.speed / player.speed);
    let stage = Stage::of_stdout();
    print(&format!("{}\n", stage.bold(&scenario.title)));
    let paused = |paused| {
        let says = if paused { "paused; p: goes on, enter: the next step, q: the end" } else { "goes on" };
        print(&stage.faint(says));
    };
    for (index, step) in scenario.steps.iter().enumerate() {
        if pacing.waits() {
            print(&stage.faint("enter: the next step, q: the end"));
        }
        // Before the first there is nothing to read.
        if (index > 0 || pacing.waits()) && pacing.linger(reading, paused).await == Next::Quit {
            return Ok(());
        }
        let heading = format!("{} of {}  {}", index + 1, scenario.steps.len(), step.title);
        print(&format!("\n{}  {}\n", player.clock.now().strftime("%H:%M:%S"), stage.bold(&heading)));
        tokio::select! {
            biased;
            () = pacing.enough() => return Ok(()),
            done = player.perform(step, &stage) => done.with_context(|| heading.clone())?,
        }
    }
    if !pacing.waits() && pacing.linger(reading, paused).await == Next::Quit {
        return Ok(());
    }
    print(&format!("\n{}", paragraphs(&scenario.end, player.screen)));
    if stage.is_terminal {
        print("The cluster stays until you press q or ctrl-C.");
        pacing.enough().await;
    }
    Ok(())
}

impl Player {
    async fn perform(&self, step: &Step, stage: &Stage) -> Result<()> {
        print(&format!("{}\n", paragraphs(&step.says, self.screen)));
        let mut conditions = Vec::new();
        for condition in &step.until {
            conditions.push((condition, condition.before(&self.client).await?));
        }
        for act in &step.acts {
            stage.command(&act.action.command());
            match act.perform(&self.client).await? {
                Outcome::Done(text) => printed(&text),
                Outcome::Refused(message) => printed(&format!("Error from server: {message}")),
            }
        }
        let begin = Instant::now();
        let patience = CONSEQUENCE_MAX.div_f64(self.speed).max(CONSEQUENCE_REAL_MIN);
        for (condition, before) in conditions {
            loop {
                match condition.look(&self.client, before.as_deref()).await? {
                    Ok(says) => break print(&format!("  {} {says}", stage.bold("✓"))),
                    Err(instead) if begin.elapsed() > patience => {
                        bail!("it does not come about within {} s: {instead}", patience.as_secs())
                    }
                    Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
                }
            }
        }
        if !step.until.is_empty() {
            print("");
        }
        for show in &step.show {
            stage.command(&show.command());
            printed(&show.print(&self.client, &self.kubeconfig, self.screen.beside(4)).await?);
        }
        Ok(())
    }
}

/// Where the reader looks.
struct Stage {
    is_terminal: bool,
    styled: bool,
}

impl Stage {
    fn of_stdout() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        Self { is_terminal, styled: is_terminal && std::env::var_os("NO_COLOR").is_none() }
    }

    fn command(&self, command: &str) {
        let lines = command.replace('\n', "\n    ");
        print(&format!("  $ {}", self.bold(&lines)));
    }

    fn bold(&self, text: &str) -> String {
        if self.styled { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn faint(&self, text: &str) -> String {
        if self.styled { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Text whose paragraphs are apart by empty lines, wrapped for the screen.
fn paragraphs(text: &str, screen: Screen) -> String {
    if screen.columns().is_none() {
        return text.trim_end().to_owned();
    }
    let wrapped = |paragraph: &str| screen.wrapped(&paragraph.split_whitespace().collect::<Vec<_>>().join(" "), "", "");
    text.trim_end().split("\n\n").map(wrapped).collect::<Vec<_>>().join("\n\n")
}

/// Whoever reads may have stopped reading; what happens goes on.
fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{text}").and_then(|()| output.flush());
}

/// What a command prints stands to the right of the command.
fn printed(text: &str) {
    if !text.is_empty() {
        print(&format!("    {}\n", text.trim_end().replace('\n', "\n    ")));
    }
}
