//! The commands beside `up`.

use crate::program::koordctl;

#[test]
fn completion_is_a_script() {
    for shell in ["bash", "zsh", "fish"] {
        let output = koordctl().args(["completion", shell]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("koordctl"), "{shell}");
    }
}
