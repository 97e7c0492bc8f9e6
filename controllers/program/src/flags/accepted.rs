//! Flags that a program takes without an effect, because another program that it stands in for has them.

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};

use super::switch;

/// Flags that are taken and have no effect, all for the same reason.
///
/// Names are separated by spaces; a second name of a flag follows its name and `|`. The help of the program does not show them.
#[derive(Clone, Copy, Debug)]
pub struct AcceptedFlags {
    /// Those with a value.
    pub values: &'static str,
    /// Those that are true or false, and may stand without a value.
    pub switches: &'static str,
    /// Values that ask for what happens anyway.
    pub anyway: &'static [&'static str],
    /// Why they have no effect.
    pub why: &'static str,
}

impl AcceptedFlags {
    /// Where certificates that a program makes are kept.
    pub const CERTIFICATES: Self = Self {
        values: "cert-dir",
        switches: "",
        anyway: &[""],
        why: "a certificate that the program makes is kept in memory alone",
    };
    /// Whether another program may have the same address or port.
    pub const SHARED_PORTS: Self = Self {
        values: "",
        switches: "permit-address-sharing permit-port-sharing",
        anyway: &["false"],
        why: "a port that another program has is never shared",
    };
    /// Metrics that components of Kubernetes hide before they are removed.
    pub const HIDDEN_METRICS: Self =
        Self { values: "show-hidden-metrics-for-version", switches: "", anyway: &[""], why: "no metric is hidden" };
    /// How components of Kubernetes log.
    pub const LOGS: Self = Self {
        values: "log-flush-frequency log-json-info-buffer-size log-text-info-buffer-size logging-format",
        switches: "log-json-split-stream log-text-split-stream",
        anyway: &["", "false", "0", "text", "5s"],
        why: "logs are lines of text that are written at once",
    };
}

/// The command with these flags.
pub fn add(command: Command, table: &[AcceptedFlags]) -> Command {
    let values = table.iter().flat_map(|accepted| accepted.values.split_whitespace());
    let values = values.map(|names| hidden(names).action(ArgAction::Set));
    let switches = table.iter().flat_map(|accepted| accepted.switches.split_whitespace());
    let switches = switches.map(|names| {
        hidden(names).num_args(0..=1).require_equals(true).default_missing_value("true").value_parser(switch)
    });
    command.args(values).args(switches)
}

fn hidden(names: &'static str) -> Arg {
    let (name, aliases) = names.split_once('|').unwrap_or((names, ""));
    let aliases = aliases.split('|').filter(|alias| !alias.is_empty());
    Arg::new(name).long(name).aliases(aliases).hide(true).allow_hyphen_values(true)
}

/// The flags that were given and ask for something which does not happen, each with the reason. A program says so at start.
pub fn without_effect(table: &[AcceptedFlags], given: &ArgMatches) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for AcceptedFlags { values, switches, anyway, why } in table {
        let first = |names: &'static str| names.split_once('|').map_or(names, |(name, _)| name);
        let value = |name: &'static str| (name, given.get_one::<String>(name).cloned());
        let switch = |name: &'static str| (name, given.get_one::<bool>(name).map(ToString::to_string));
        let values = values.split_whitespace().map(first).map(value);
        for (name, text) in values.chain(switches.split_whitespace().map(first).map(switch)) {
            let is_given = given.value_source(name) == Some(ValueSource::CommandLine);
            if is_given && text.is_some_and(|text| !anyway.contains(&text.as_str())) {
                found.push((name, *why));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[AcceptedFlags] = &[
        AcceptedFlags { values: "cert-dir", switches: "", anyway: &[""], why: "certificates are in memory" },
        AcceptedFlags { values: "", switches: "verbose|v fast", anyway: &["false"], why: "there is one way" },
    ];

    fn said(line: &str) -> Result<Vec<&'static str>, clap::error::ErrorKind> {
        let command = add(Command::new("program"), TABLE);
        let given = command.try_get_matches_from(format!("program {line}").split_whitespace());
        let found = without_effect(TABLE, &given.map_err(|error| error.kind())?);
        Ok(found.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn flags_are_taken_and_named_where_they_ask_for_something() {
        assert_eq!(said(""), Ok(vec![]));
        assert_eq!(said("--cert-dir /certs --fast"), Ok(vec!["cert-dir", "fast"]));
        assert_eq!(said("--v=true --fast=false"), Ok(vec!["verbose"]));
        assert_eq!(said("--cert-dir="), Ok(vec![]));
        assert_eq!(said("--fast=soon"), Err(clap::error::ErrorKind::ValueValidation));
        assert_eq!(said("--slow"), Err(clap::error::ErrorKind::UnknownArgument));
    }
}
