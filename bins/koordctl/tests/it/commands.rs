//! The commands beside `up`.

use std::process::Command;

use crate::program::{PROGRAM, koordctl};

#[test]
fn completion_is_a_script() {
    for shell in ["bash", "zsh", "fish"] {
        let output = koordctl().args(["completion", shell]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("koordctl"), "{shell}");
    }
}

/// What bash offers after these words, with the script loaded.
fn bash_offers(words: &str) -> String {
    let script = format!(
        "source <({PROGRAM} completion bash)\nCOMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         _koordctl koordctl \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"\necho \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    assert_eq!(bash_offers("koordctl u"), "up");
    assert_eq!(bash_offers("koordctl up --no"), "--nodes --no-manager");
    assert_eq!(bash_offers("koordctl up --profile h"), "hardened");
    assert_eq!(bash_offers("koordctl crd a"), "apply");
}
