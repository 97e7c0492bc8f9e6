//! The reference of all commands, from their own definitions.

use std::fmt::Write as _;

use clap::Command;

use crate::command;

/// Every command's help, as Markdown.
pub fn page() -> String {
    let mut root = command("koordctl");
    root.build();
    let mut page = String::new();
    describe(&mut root, &mut page);
    page
}

fn describe(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing into a String cannot fail.
    let _ = write!(page, "## {name}\n\n```text\n{}\n```\n\n", help.join("\n").trim_end());
    for subcommand in command.get_subcommands_mut().filter(|subcommand| subcommand.get_name() != "help") {
        describe(subcommand, page);
    }
}
