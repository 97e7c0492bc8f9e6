//! Disks as the node's programs print them, where /sys shows none.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use koord_koordlet_system::{CommandOutput, Disks};

/// A program that takes longer is ended, and counts as one that prints nothing.
const RUN_MAX: Duration = Duration::from_secs(2);
/// What a program prints beyond this is not read.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The disks, partitions, volume groups and mounts that the programs of the path print. One that is missing or fails prints nothing.
pub fn disks_by_programs() -> Disks {
    let [lsblk, vgs, lvs, findmnt] = [
        printed("lsblk", &["-P", "-o", "NAME,TYPE,MAJ:MIN"]),
        printed("vgs", &["--noheadings", "-o", "vg_name,pv_count,pv_name"]),
        printed("lvs", &["--noheadings", "-o", "lv_name,vg_name"]),
        printed("findmnt", &["-P", "-o", "TARGET,SOURCE"]),
    ];
    Disks::of_commands(CommandOutput { lsblk: &lsblk, vgs: &vgs, lvs: &lvs, findmnt: &findmnt })
}

/// What a program prints within its time.
fn printed(program: &str, arguments: &[&str]) -> String {
    let command =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = match command {
        Ok(child) => child,
        Err(error) => {
            tracing::debug!(program, %error, "disks are looked for without a program");
            return String::new();
        }
    };
    let Some(output) = child.stdout.take() else { return String::new() };
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // What was read before an error is as good as a shorter output.
        let _ = output.take(OUTPUT_BYTES_MAX).read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(None) if began.elapsed() < RUN_MAX => thread::sleep(LOOK_AGAIN),
            Ok(status) => break status,
            Err(_) => break None,
        }
    };
    let Some(status) = status else {
        tracing::warn!(program, "a program that prints disks does not end; it is killed");
        // The reader is not waited for: children of the program may hold the pipe.
        let _ = child.kill();
        let _ = child.wait();
        return String::new();
    };
    let text = reader.join().unwrap_or_default();
    if status.success() { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_counts_when_it_ends_well_and_in_time() {
        assert_eq!(printed("echo", &["vda"]), "vda\n");
        assert_eq!(printed("sh", &["-c", "echo vda; exit 3"]), "");
        assert_eq!(printed("no-such-program", &[]), "");
        let began = Instant::now();
        assert_eq!(printed("sleep", &["60"]), "");
        assert!(began.elapsed() < RUN_MAX * 5, "{:?}", began.elapsed());
    }

    #[test]
    fn a_program_that_prints_more_than_is_read_is_ended() {
        let began = Instant::now();
        assert_eq!(printed("yes", &[]), "");
        assert!(began.elapsed() < RUN_MAX * 5, "{:?}", began.elapsed());
    }
}
