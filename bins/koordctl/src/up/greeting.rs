//! What to try next: five commands that work in the cluster that has just come up.

use std::{fmt::Write as _, net::SocketAddr, path::Path};

use super::{node_agent::best_effort_folder, scheduler::ASKED};
use crate::{cli::UpArgs, screen::Screen};

/// Where the parts of the cluster are.
pub struct Place<'a> {
    /// URL of the API server.
    pub server: &'a str,
    /// The kubeconfig that leads there.
    pub kubeconfig: &'a Path,
    /// Where the scheduler answers over HTTP.
    pub scheduler: Option<SocketAddr>,
    /// Where koordlet answers over HTTP.
    pub node_agent: Option<SocketAddr>,
}

/// The text that is printed when everything runs.
pub fn greeting(args: &UpArgs, at: &Place<'_>, ahead: bool, screen: Screen) -> String {
    let Place { server, kubeconfig, scheduler, node_agent } = *at;
    let mut text = format!("\nA cluster with {} hollow nodes runs at {server}.\n", args.nodes);
    if args.no_manager {
        text.push_str("koord-manager is not part of it (--no-manager).\n");
    }
    if let Some(address) = scheduler.filter(|address| *address != ASKED) {
        let _ = writeln!(
            text,
            "koord-scheduler answers at http://{address}: koordctl queue list --scheduler http://{address}"
        );
    }
    if let Some((folder, address)) = args.node_agent.as_ref().zip(node_agent) {
        let file = best_effort_folder(folder).join("cpu.max");
        let _ = writeln!(
            text,
            "koordlet runs on hollow-0, on files in {}: cat {}; koordctl node status hollow-0 --address {address}",
            folder.display(),
            file.display()
        );
    }
    if (args.speed() - 1.0).abs() > f64::EPSILON {
        let _ = writeln!(text, "Its time runs {} times as fast as yours.", args.speed());
    }
    if ahead {
        text.push_str("It is ahead of yours, because it never runs backwards: ages are shown as <invalid>.\n");
    }
    let _ = write!(
        text,
        "\nTry, in another terminal:\n\n  export KUBECONFIG={}\n",
        shell_word(&kubeconfig.display().to_string())
    );
    let commands = commands(args);
    let widest =
        commands.iter().map(|(command, says)| command.len().max(58) + says.len() + 5).max().unwrap_or_default();
    let is_narrow = screen.columns().is_some_and(|columns| widest > columns);
    for (command, says) in commands {
        let _ = if is_narrow {
            writeln!(text, "  # {says}\n  {command}")
        } else {
            writeln!(text, "  {command:<58} # {says}")
        };
    }
    text.push_str("\nctrl-C ends it.\n");
    text
}

/// Commands that work, and what they show. Those about nodes only where there are some.
pub fn commands(args: &UpArgs) -> Vec<(&'static str, &'static str)> {
    let mut commands = vec![("kubectl api-resources --api-group=scheduling.koordinator.sh", "what Koordinator adds")];
    if args.nodes > 0 {
        commands.push(("kubectl get nodes", "machines that are not there"));
        commands.push(if args.no_manager {
            ("kubectl describe node hollow-0", "one of them")
        } else {
            ("kubectl get nodeslos,nodemetrics", "made by koord-manager, reported by the nodes")
        });
        commands.push(if args.no_scheduler {
            ("kubectl run web --image=nginx --overrides='{\"spec\":{\"nodeName\":\"hollow-0\"}}'", "a pod that runs")
        } else {
            ("kubectl run web --image=nginx", "a pod that koord-scheduler places")
        });
    } else {
        commands.push(("kubectl get crds", "the definitions that are served"));
        commands.push(("kubectl get priorityclasses", "Koordinator's priorities"));
        commands.push(("kubectl -n koordinator-system get configmaps", "its configuration"));
    }
    commands.push(("kubectl explain reservation.spec", "every field is explained"));
    commands
}

/// A word as a shell reads it back.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(more: &[&str]) -> UpArgs {
        let arguments = ["koordctl", "up"].iter().chain(more);
        let Command::Up(args) = Cli::try_parse_from(arguments).unwrap().command else { panic!("not up") };
        args
    }

    #[test]
    fn there_are_five_commands_whatever_runs() {
        for more in [&[][..], &["--nodes=0"], &["--no-manager"], &["--nodes=0", "--no-manager"]] {
            assert_eq!(commands(&args(more)).len(), 5, "{more:?}");
        }
    }

    #[test]
    fn a_path_with_a_space_can_be_pasted() {
        let at = Place {
            server: "https://127.0.0.1:6443",
            kubeconfig: Path::new("/home/me/my cluster/koord's"),
            scheduler: Some(ASKED),
            node_agent: None,
        };
        let text = greeting(&args(&[]), &at, false, Screen::ENDLESS);
        assert!(text.contains(r"export KUBECONFIG='/home/me/my cluster/koord'\''s'"), "{text}");
        assert!(!text.contains("times as fast") && !text.contains("--scheduler"));
        let elsewhere = Place { scheduler: Some(SocketAddr::from(([127, 0, 0, 1], 20251))), ..at };
        let text = greeting(&args(&[]), &elsewhere, false, Screen::ENDLESS);
        assert!(text.contains("koordctl queue list --scheduler http://127.0.0.1:20251"), "{text}");
        let at = Place { server: "", kubeconfig: Path::new("k"), scheduler: None, node_agent: None };
        let of = |more: &[&str], ahead, screen| greeting(&args(more), &at, ahead, screen);
        assert!(of(&["--speed=60"], false, Screen::ENDLESS).contains("60 times as fast"));
        assert!(of(&[], true, Screen::ENDLESS).contains("ahead of yours"));
        // A command that is longer than the terminal still stands alone on its line.
        let narrow = of(&[], false, Screen::of(80));
        assert!(narrow.contains("\n  # machines that are not there\n  kubectl get nodes\n"), "{narrow}");
    }
}
