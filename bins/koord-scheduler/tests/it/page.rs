//! The commands of koord-scheduler on docs/scheduler.md: those that run it run until it is ready, the others end well.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use programs::{Running, free};

use crate::{
    program::{Server, program},
    replicas::is_ready,
};

/// The repository, in which the commands are typed.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The arguments of every command of the program on the page.
fn commands() -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/scheduler.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    let of = |block: String| {
        let words = block.strip_prefix("koord-scheduler ")?.replace('"', "");
        assert_eq!(words.trim().lines().count(), 1, "a block of its own for each command: {block}");
        Some(words.split_whitespace().map(str::to_owned).collect())
    };
    blocks.filter_map(of).collect()
}

/// The program as the page calls it, with a home of its own.
fn called(server: &Server, arguments: &[String]) -> Command {
    let home = server.kubeconfig().parent().unwrap().to_owned();
    let mut program = program();
    program.args(arguments.iter().map(|word| word.replace("$HOME", &home.display().to_string())));
    program.current_dir(ROOT).env("HOME", &home).env("KUBECONFIG", server.kubeconfig()).stderr(Stdio::null());
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_on_the_page_work() {
    let server = Server::start().await;
    let (mut served, mut written) = (0, 0);
    for mut arguments in commands() {
        if let Some(at) = arguments.iter().position(|word| word == "--port") {
            // The page's port may be taken here, and nothing outside needs to reach this one.
            let port = free();
            arguments[at + 1] = port.port().to_string();
            let here = ["--address=127.0.0.1", "--secure-port=0", "--leader-elect=false"].map(str::to_owned);
            let mut running = Running(called(&server, &[&arguments[..], &here[..]].concat()).spawn().unwrap());
            is_ready(&mut running, port).await;
            assert_eq!(running.terminate(), Some(0), "{arguments:?}");
            served += 1;
        } else {
            assert!(called(&server, &arguments).status().unwrap().success(), "{arguments:?}");
            let file = arguments.iter().find_map(|word| word.strip_prefix("$HOME/")).unwrap();
            let text = std::fs::read_to_string(server.kubeconfig().with_file_name(file)).unwrap();
            assert!(text.contains("kind: KubeSchedulerConfiguration"), "{text}");
            written += 1;
        }
    }
    assert!(served >= 2 && written >= 2, "{served} {written}");
}
