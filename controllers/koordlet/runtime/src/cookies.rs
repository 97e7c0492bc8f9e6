//! Core scheduling by the calls of the kernel: which processes may share a core.

use std::{io, thread};

use koord_koordlet_hooks::CookieChange;
use rustix::{
    io::Errno,
    process::Pid,
    thread::{
        CoreSchedulingScope, core_scheduling_cookie, create_core_scheduling_cookie, gettid,
        pull_core_scheduling_cookie, push_core_scheduling_cookie,
    },
};

/// Core scheduling of a node.
pub trait CoreScheduling: Send {
    /// Whether the kernel schedules cores.
    ///
    /// # Errors
    ///
    /// It does not, with the reason.
    fn probe(&self) -> Result<(), String>;

    /// The cookie of a process, 0 for none; `None` of one that has ended.
    fn cookie(&self, process: u32) -> Option<u64>;

    /// Changes cookies. Processes that end meanwhile are no error.
    ///
    /// # Errors
    ///
    /// The kernel refuses, with the process.
    fn change(&mut self, change: &CookieChange) -> Result<(), String>;
}

/// Core scheduling of this machine, by `prctl(PR_SCHED_CORE)`.
///
/// Cookies are handed on by a thread that takes the cookie of one process and gives it to others. Each change has a thread of its own, which ends with it: no
/// other thread of the agent ever has a cookie.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelCookies;

impl CoreScheduling for KernelCookies {
    fn probe(&self) -> Result<(), String> {
        match core_scheduling_cookie(gettid(), CoreSchedulingScope::Thread) {
            Ok(_) => Ok(()),
            Err(Errno::NODEV) => Err("the CPUs have no sibling threads (SMT) that could share a core".to_owned()),
            Err(Errno::INVAL) => Err("the kernel is built without CONFIG_SCHED_CORE".to_owned()),
            Err(error) => Err(format!("prctl(PR_SCHED_CORE): {}", io::Error::from(error))),
        }
    }

    fn cookie(&self, process: u32) -> Option<u64> {
        core_scheduling_cookie(pid(process)?, CoreSchedulingScope::Thread).ok()
    }

    fn change(&mut self, change: &CookieChange) -> Result<(), String> {
        let change = change.clone();
        let thread = thread::Builder::new().name("core scheduling".to_owned()).spawn(move || match change {
            CookieChange::Create { first, others, .. } => {
                if is_alive(first, pid(first).map_or(Err(Errno::SRCH), create))? {
                    hand_on(first, &others)?;
                }
                Ok(())
            }
            CookieChange::Share { from, to, .. } => hand_on(from, &to),
            CookieChange::Clear { processes } => {
                let own = core_scheduling_cookie(gettid(), CoreSchedulingScope::Thread);
                if own != Ok(0) {
                    return Err("the agent itself has a cookie, so that it can take none away".to_owned());
                }
                push(&processes)
            }
        });
        let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the thread that changes cookies panicked".to_owned()))
    }
}

fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().and_then(Pid::from_raw)
}

fn create(process: Pid) -> Result<(), Errno> {
    create_core_scheduling_cookie(process, CoreSchedulingScope::ThreadGroup)
}

/// Gives the cookie of one process to others.
fn hand_on(from: u32, to: &[u32]) -> Result<(), String> {
    let pulled =
        pid(from).map_or(Err(Errno::SRCH), |pid| pull_core_scheduling_cookie(pid, CoreSchedulingScope::Thread));
    if is_alive(from, pulled)? { push(to) } else { Ok(()) }
}

/// Gives the cookie of this thread to all threads of these processes.
fn push(to: &[u32]) -> Result<(), String> {
    for process in to {
        let pushed = pid(*process)
            .map_or(Err(Errno::SRCH), |pid| push_core_scheduling_cookie(pid, CoreSchedulingScope::ThreadGroup));
        is_alive(*process, pushed)?;
    }
    Ok(())
}

/// Whether a process was there for a call.
fn is_alive(process: u32, result: Result<(), Errno>) -> Result<bool, String> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(format!(
            "the kernel refuses a core-scheduling cookie for process {process}: {}",
            io::Error::from(error)
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(Command::new("sleep").arg("60").spawn().unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_group_shares_a_cookie_that_the_agent_does_not_have() {
        let mut kernel = KernelCookies;
        if let Err(reason) = kernel.probe() {
            programs::skipped("cookies of core scheduling", &reason);
            return;
        }
        let sleepers = [Sleeper::start(), Sleeper::start(), Sleeper::start()];
        let ids = sleepers.each_ref().map(|sleeper| sleeper.0.id());
        let cookies = |kernel: &KernelCookies| ids.map(|id| kernel.cookie(id).unwrap());
        assert_eq!(cookies(&kernel), [0, 0, 0]);
        let [first, second, third] = ids;
        kernel.change(&CookieChange::Create { group: "a".into(), first, others: vec![second] }).unwrap();
        let [one, other, none] = cookies(&kernel);
        assert!(one != 0 && one == other && none == 0, "{one} {other} {none}");
        kernel.change(&CookieChange::Share { group: "a".into(), from: second, to: vec![third] }).unwrap();
        assert_eq!(cookies(&kernel), [one; 3]);
        kernel.change(&CookieChange::Clear { processes: vec![first, third] }).unwrap();
        assert_eq!(cookies(&kernel), [0, one, 0]);
        assert_eq!(kernel.cookie(std::process::id()), Some(0));
    }

    #[test]
    fn processes_that_have_ended_are_no_error() {
        let mut ended = Command::new("true").spawn().unwrap();
        let id = ended.id();
        ended.wait().unwrap();
        let mut kernel = KernelCookies;
        assert_eq!(kernel.cookie(id), None);
        if kernel.probe().is_ok() {
            assert_eq!(kernel.change(&CookieChange::Clear { processes: vec![id, 0] }), Ok(()));
            assert_eq!(kernel.change(&CookieChange::Share { group: "a".into(), from: id, to: vec![id] }), Ok(()));
        }
    }
}
