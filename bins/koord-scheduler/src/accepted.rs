//! Flags of the original that have no effect. They are taken, so that existing Deployments keep working, where nothing that a
//! user relies on is lost without them; `docs/scheduler.md` says of each what happens instead.

use clap::{Arg, ArgAction, Command};

/// Flags with a value.
const VALUES: &str = "\
    cert-dir \
    http2-max-streams-per-connection \
    authentication-kubeconfig authorization-kubeconfig \
    kube-api-content-type emulated-version min-compatibility-version \
    show-hidden-metrics-for-version \
    async-log-queue-length log-flush-frequency log-json-info-buffer-size log-text-info-buffer-size logging-format \
    debug-diagnosis-queue-size debug-diagnosis-worker-count \
    scheduling-drop-unhandled-timeout";

/// Flags that may stand without a value.
const SWITCHES: &str = "\
    disable-http2-serving permit-address-sharing permit-port-sharing \
    authentication-skip-lookup authentication-tolerate-lookup-failure \
    async-log contention-profiling emulation-forward-compatible log-json-split-stream log-text-split-stream \
    debug-diagnosis debug-diagnosis-blocking enable-network-topology-manager";

/// Flags that have a second name of one letter.
const SHORT: [(&str, &str); 1] = [("debug-diagnosis", "d")];

/// The command with these flags, which its help does not show.
pub(crate) fn add(command: Command) -> Command {
    let hidden = |name: &'static str| {
        let short = SHORT.iter().filter(|(long, _)| *long == name).map(|(_, short)| *short);
        Arg::new(name).long(name).aliases(short).hide(true).allow_hyphen_values(true)
    };
    let values = VALUES.split_whitespace().map(|name| hidden(name).action(ArgAction::Set));
    let switches = SWITCHES.split_whitespace().map(|name| {
        let switch = hidden(name).num_args(0..=1).require_equals(true).default_missing_value("true");
        switch.value_parser(koord_program::flags::switch)
    });
    command.args(values).args(switches)
}
