//! What the macros say about mistakes, one small file per mistake, by theme.
//!
//! `TRYBUILD=overwrite cargo test -p koord-resource --test ui` writes what is said now; read it before you commit it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The compiler whose layout of messages the expected texts show.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn mistakes_are_pointed_at() {
    let cases = trybuild::TestCases::new();
    let compiler =
        Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())).arg("--version").output();
    let version = String::from_utf8(compiler.unwrap().stdout).unwrap();
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    if version.starts_with(COMPILER) {
        cases.compile_fail(written.join("*/*.rs"));
    } else {
        // Another compiler words the frame of a message otherwise; that the mistakes are refused is still checked.
        cases.compile_fail(without_texts(&written).join("*/*.rs"));
    }
}

fn without_texts(written: &Path) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui");
    for theme in fs::read_dir(written).unwrap().map(|theme| theme.unwrap().path()) {
        let folder = copy.join(theme.file_name().unwrap());
        fs::create_dir_all(&folder).unwrap();
        for case in fs::read_dir(&theme).unwrap().map(|case| case.unwrap().path()) {
            if case.extension().is_some_and(|extension| extension == "rs") {
                fs::copy(&case, folder.join(case.file_name().unwrap())).unwrap();
            }
        }
    }
    copy
}
