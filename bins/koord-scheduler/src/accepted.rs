//! Flags of the original that have no effect. They are taken, so that existing Deployments keep working, where nothing that a
//! user relies on is lost without them. One that asks for something else than what happens anyway is named at start;
//! `docs/scheduler.md` has all of them.

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};

/// Flags with the same reason.
struct Accepted {
    /// Those with a value.
    values: &'static str,
    /// Those that may stand without a value.
    switches: &'static str,
    /// Texts that ask for what happens anyway.
    anyway: &'static [&'static str],
    /// Why they have no effect.
    why: &'static str,
}

const ACCEPTED: &[Accepted] = &[
    Accepted {
        values: "cert-dir",
        switches: "",
        anyway: &[""],
        why: "a certificate that the program makes is kept in memory alone",
    },
    Accepted {
        values: "",
        switches: "permit-address-sharing permit-port-sharing",
        anyway: &["false"],
        why: "a port that another program has is never shared",
    },
    Accepted {
        values: "authentication-kubeconfig authorization-kubeconfig",
        switches: "",
        anyway: &[""],
        why: "who may read what at the secure port is asked of the API server that pods are bound at",
    },
    Accepted {
        values: "",
        switches: "authentication-skip-lookup authentication-tolerate-lookup-failure",
        anyway: &["true"],
        why: "authorities of client certificates are those of the flags alone; nothing is looked up in the cluster",
    },
    Accepted { values: "kube-api-content-type", switches: "", anyway: &["application/json"], why: "requests are JSON" },
    Accepted {
        values: "emulated-version min-compatibility-version",
        switches: "emulation-forward-compatible",
        anyway: &["", "false"],
        why: "no earlier version is emulated: what the program does follows from its own version, its gates and what the API server serves",
    },
    Accepted { values: "show-hidden-metrics-for-version", switches: "", anyway: &[""], why: "no metric is hidden" },
    Accepted {
        values: "async-log-queue-length log-flush-frequency log-json-info-buffer-size log-text-info-buffer-size logging-format",
        switches: "async-log log-json-split-stream log-text-split-stream",
        anyway: &["", "false", "0", "text", "5s"],
        why: "logs are lines of text that are written at once",
    },
    Accepted {
        values: "",
        switches: "contention-profiling",
        anyway: &["false", "true"],
        why: "profiles are taken from outside",
    },
    Accepted {
        values: "debug-diagnosis-queue-size debug-diagnosis-worker-count",
        switches: "debug-diagnosis debug-diagnosis-blocking",
        anyway: &["false"],
        why: "diagnoses are kept, not logged: koordctl why POD --history shows them",
    },
    Accepted {
        values: "scheduling-drop-unhandled-timeout",
        switches: "",
        anyway: &[],
        why: "nothing that is monitored is dropped",
    },
    Accepted {
        values: "",
        switches: "enable-network-topology-manager",
        anyway: &["true"],
        why: "the network counts where awareNetworkTopology of Coscheduling says so",
    },
];

/// Flags that have a second name of one letter.
const SHORT: [(&str, &str); 1] = [("debug-diagnosis", "d")];

/// The command with these flags, which its help does not show.
pub(crate) fn add(command: Command) -> Command {
    let hidden = |name: &'static str| {
        let short = SHORT.iter().filter(|(long, _)| *long == name).map(|(_, short)| *short);
        Arg::new(name).long(name).aliases(short).hide(true).allow_hyphen_values(true)
    };
    let values = ACCEPTED.iter().flat_map(|accepted| accepted.values.split_whitespace());
    let values = values.map(|name| hidden(name).action(ArgAction::Set));
    let switches = ACCEPTED.iter().flat_map(|accepted| accepted.switches.split_whitespace());
    let switches = switches.map(|name| {
        let switch = hidden(name).num_args(0..=1).require_equals(true).default_missing_value("true");
        switch.value_parser(koord_program::flags::switch)
    });
    command.args(values).args(switches)
}

/// The flags that ask for something which does not happen, each with the reason.
pub(crate) fn without_effect(given: &ArgMatches) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for Accepted { values, switches, anyway, why } in ACCEPTED {
        let value = |name: &'static str| (name, given.get_one::<String>(name).cloned());
        let switch = |name: &'static str| (name, given.get_one::<bool>(name).map(ToString::to_string));
        let values = values.split_whitespace().map(value);
        for (name, text) in values.chain(switches.split_whitespace().map(switch)) {
            let is_given = given.value_source(name) == Some(ValueSource::CommandLine);
            if is_given && text.is_some_and(|text| !anyway.contains(&text.as_str())) {
                found.push((name, *why));
            }
        }
    }
    found
}
