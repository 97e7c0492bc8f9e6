//! The programs as processes, as tests start them: with nothing around them, and not for longer than the test. The crate knows no
//! program. Read first: [`alone`] (before it starts), [`Running`] (while it runs).
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::{
    io::Write as _,
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

mod ports;

pub use ports::free;

/// Reports on the terminal that a test cannot run here; `.ci/steps.sh` counts these lines.
pub fn skipped(what: &str, why: &str) {
    // Not through the print macros: the test harness captures their output, and the test would count as passed.
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}: {}", why.replace('\n', " "));
}

/// A program with nothing around it: no kubeconfig, no home, no pod, no input.
pub fn alone(program: &str) -> Command {
    let mut program = Command::new(program);
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| ["KUBE", "WEBHOOK"].iter().any(|of| name.to_string_lossy().starts_with(of))) {
        program.env_remove(name);
    }
    program.env("HOME", "/nonexistent").stdin(Stdio::null());
    program
}

/// A program that does not outlive its test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Asks it to end, and waits for its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }
}

/// Checks that a program ends with this code, and that each of these is in what it says on its standard error.
#[track_caller]
pub fn ends(program: &mut Command, code: i32, says: &[&str]) {
    let output = program.output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    for words in says {
        assert!(printed.contains(words), "{words:?} is not in {printed:?}");
    }
    assert_eq!(output.status.code(), Some(code), "{printed}");
}

/// The body of a GET; none where it is not answered with 200.
pub async fn answer(address: SocketAddr, path: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.starts_with("HTTP/1.1 200").then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_alone_and_does_not_outlive_its_test() {
        ends(alone("sh").args(["-c", "echo \"$HOME\" >&2; exit 3"]), 3, &["/nonexistent"]);
        let mut sleeps = Running(alone("sleep").arg("600").spawn().unwrap());
        let pid = rustix::process::Pid::from_child(&sleeps.0);
        assert_eq!(sleeps.terminate(), None, "a signal has ended it");
        let other = Running(alone("sleep").arg("600").spawn().unwrap());
        let other_pid = rustix::process::Pid::from_child(&other.0);
        drop(other);
        assert!([pid, other_pid].iter().all(|pid| rustix::process::test_kill_process(*pid).is_err()));
    }
}
