//! A library with the interface of NVIDIA's management library (NVML) for tests of programs that load it: its GPUs, processes, events and faults are what a
//! test says.
//!
//! The crate is both the library, which is loaded as a file, and what tests script it with. Read first: [`FakeNvml`], one copy of the library with a state of
//! its own; [`Scenario`], that state.
//!
//! It knows nothing of who loads it. Structures and numbers are declared from NVIDIA's documentation of the interface, apart from those that are tested.
// A library that is loaded through C has no other interface, and a test ends where the file cannot be loaded.
#![allow(unsafe_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

mod exports;
mod scenario;

use std::{
    ffi::{CString, c_char},
    fs,
    path::{Path, PathBuf},
};

pub use scenario::{Code, Event, Gpu, Process, Sample, Scenario};

/// A copy of the library in a file of its own, so that tests beside each other share no state.
#[derive(Debug)]
pub struct FakeNvml {
    path: PathBuf,
    library: libloading::Library,
    _folder: tempfile::TempDir,
}

impl FakeNvml {
    /// Copies and loads the library, and sets its state.
    pub fn new(scenario: &Scenario) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvidia-ml.so.1");
        fs::copy(built(), &path).unwrap_or_else(|error| panic!("{}: {error}", built().display()));
        // SAFETY: the library is the one of this crate; nothing runs when it is loaded.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        let fake = Self { path, library, _folder: folder };
        fake.set(scenario);
        fake
    }

    /// The file to load.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the state. Programs that have loaded the library see it at their next call.
    pub fn set(&self, scenario: &Scenario) {
        let text = CString::new(serde_json::to_string(scenario).unwrap()).unwrap();
        // SAFETY: the function has this signature in `exports`, and copies what it needs of the text.
        unsafe {
            let set: libloading::Symbol<'_, unsafe extern "C" fn(*const c_char) -> i32> =
                self.library.get(b"fake_nvml_set").unwrap();
            assert_eq!(set(text.as_ptr()), 0, "the scenario is read");
        }
    }

    /// How many sessions are open: calls of `nvmlInit` without their `nvmlShutdown`.
    pub fn sessions(&self) -> i32 {
        // SAFETY: the function has this signature in `exports`.
        unsafe {
            let sessions: libloading::Symbol<'_, unsafe extern "C" fn() -> i32> =
                self.library.get(b"fake_nvml_sessions").unwrap();
            sessions()
        }
    }
}

/// The library as cargo has built it, beside the program of the test.
fn built() -> PathBuf {
    let name = format!("{}fake_nvml{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    std::env::current_exe().unwrap().parent().unwrap().join(name)
}
