//! Options of `simulate`.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::Args;
use jiff::Timestamp;
use koord_program::flags::{span, time};

use super::shared::AnswerArgs;

/// Options of `simulate`.
#[derive(Clone, Debug, Args)]
pub struct SimulateArgs {
    /// Files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input
    #[arg(short, long, value_name = "FILE")]
    pub filename: Vec<PathBuf>,
    /// Files with further objects, such as pods that come to the cluster
    #[arg(long, value_name = "FILE")]
    pub add: Vec<PathBuf>,
    /// A trace whose nodes and pods are played: openb=FOLDER, openb=FOLDER/NAME such as openb=data/cpu100, or openb=FILE. Nodes of files replace
    /// those of the trace
    #[arg(long, value_name = "openb=PATH")]
    pub trace: Option<TraceArg>,
    /// So many nodes of the trace, taken evenly from its list [default: all]
    #[arg(long, value_name = "COUNT", requires = "trace", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: Option<u32>,
    /// So many pods of the trace, the first that come [default: all]
    #[arg(long, value_name = "COUNT", requires = "trace", value_parser = clap::value_parser!(u32).range(1..))]
    pub pods: Option<u32>,
    /// Pods of the trace come shuffled, one every 10 ms, and stay, until they request this part of all its GPUs, such as 130%. Without it they
    /// come and go at the times of the trace
    #[arg(long, value_name = "PERCENT", requires = "trace")]
    pub demand: Option<Percent>,
    /// Seed of shuffled pods, and of the choice among nodes that are equally good
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// When the simulation ends, such as 2h30m of its own time [default: when every pod has its node, or 15 minutes after the last pod has come or
    /// ended]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub until: Option<Duration>,
    /// A configuration of the scheduler, KubeSchedulerConfiguration; several are compared on the same pods. Without it the one that Koordinator
    /// ships
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Feature gates of the scheduler
    #[arg(long, value_name = "GATE=BOOL,...", default_value = "")]
    pub feature_gates: String,
    /// Write a report with plots, one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Overwrite the report
    #[arg(long, requires = "report")]
    pub force: bool,
    /// The time of day at which it begins, such as 2026-01-02T03:04:05Z; without it that of the first pod of files, or now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub answer: AnswerArgs,
}

/// A trace: its family, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceArg(pub PathBuf);

impl FromStr for TraceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("openb", path)) if !path.is_empty() => Ok(Self(path.into())),
            None if text != "openb" => Err(format!("there is no trace {text:?}, but openb; write openb=FOLDER")),
            Some((family, _)) if family != "openb" => {
                Err(format!("there is no trace {family:?}, but openb; write openb=FOLDER"))
            }
            _ => Err("say where its files are: openb=FOLDER, with openb_node_list_all_node.csv in it".to_owned()),
        }
    }
}

/// A share in percent, with or without the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u32);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
        let percent = number.filter(|percent| (1..=1000).contains(percent));
        percent.map(Self).ok_or_else(|| "a whole number of percent from 1 to 1000, such as 130%".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_and_percentages_are_read_or_refused_with_the_remedy() {
        assert_eq!("openb=a/b".parse(), Ok(TraceArg("a/b".into())));
        let error = |text: &str| text.parse::<TraceArg>().unwrap_err();
        assert_eq!(error("alibaba"), "there is no trace \"alibaba\", but openb; write openb=FOLDER");
        assert_eq!(error("alibaba=x"), "there is no trace \"alibaba\", but openb; write openb=FOLDER");
        assert!(error("openb").starts_with("say where its files are: openb=FOLDER"));
        assert!(error("openb=").starts_with("say where its files are: openb=FOLDER"));
        assert_eq!(("130%".parse(), "5".parse()), (Ok(Percent(130)), Ok(Percent(5))));
        for text in ["", "0", "-1", "much", "1001%"] {
            assert!(text.parse::<Percent>().unwrap_err().ends_with("such as 130%"), "{text}");
        }
    }
}
