//! Whatever is wrong on the command line is said at once, with what would be right, and leaves nothing behind.

use std::net::TcpListener;

use crate::program::{Up, fails, folder, koordctl};

#[test]
fn every_wrong_flag_is_named_with_what_would_be_right() {
    let folder = folder("bad-input");
    let at = |name: &str| folder.join(name).display().to_string();
    std::fs::write(at("file"), "precious").unwrap();
    std::fs::create_dir_all(at("other")).unwrap();
    std::fs::write(at("other/objects.redb"), "no database").unwrap();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();

    let (in_file, below_file) = (at("file"), at("file/x"));
    let (folder_as_file, other) = (at("other"), at("other"));
    let table: &[(&[&str], &[&str])] = &[
        // numbers and words
        (&["up", "--port=70000"], &["'70000' for '--port", "from 0 to 65535"]),
        (&["up", "--port=https"], &["'https' for '--port", "from 0 to 65535"]),
        (&["up", "--nodes=many"], &["'many' for '--nodes", "from 0 to 20000"]),
        (&["up", "--nodes=-1"], &["'-1' for '--nodes", "from 0 to 20000"]),
        (&["up", "--nodes=20001"], &["'20001' for '--nodes", "from 0 to 20000"]),
        (&["up", "--seed=one"], &["'one' for '--seed", "a whole number"]),
        (&["up", "--speed=0"], &["'0' for '--speed", "from 0.01 to 10000"]),
        (&["up", "--speed=NaN"], &["'NaN' for '--speed", "from 0.01 to 10000"]),
        (&["up", "--speed=fast"], &["'fast' for '--speed", "such as 1, 60 or 0.5"]),
        (&["up", "--profile=strict"], &["'strict' for '--profile", "compatible, hardened"]),
        (&["up", "--kubeconfig="], &["a value is required for '--kubeconfig <FILE>'"]),
        (&["up", "--data-dir="], &["a value is required for '--data-dir <FOLDER>'"]),
        (&["up", "--node=3"], &["unexpected argument '--node'", "'--nodes'"]),
        (&["up", "ten"], &["unexpected argument 'ten'", "Usage: koordctl up"]),
        (&["upp"], &["unrecognized subcommand 'upp'", "'up'"]),
        (&["up", "--feature-gates=DeclaredWebhook=true"], &["--feature-gates", "did you mean DeclaredWebhooks?"]),
        (&["up", "--feature-gates=DeclaredWebhooks"], &["--feature-gates", "Name=true or Name=false"]),
        // places
        (&["up", &format!("--port={port}")], &[&format!("port {port}"), "in use", "--port"]),
        (&["up", &format!("--kubeconfig={in_file}")], &[&in_file, "exists already", "--force"]),
        (&["up", &format!("--kubeconfig={below_file}"), "--force"], &["cannot write", &below_file]),
        (&["up", &format!("--kubeconfig={folder_as_file}"), "--force"], &[&folder_as_file, "is a folder"]),
        (&["up", "--kubeconfig=/proc/koord"], &["cannot write", "/proc/koord"]),
        (&["up", &format!("--data-dir={in_file}")], &["cannot make the data directory", &in_file]),
        (&["up", "--data-dir=/proc/koord"], &["cannot make the data directory", "/proc/koord"]),
        (&["up", &format!("--data-dir={other}")], &["objects.redb", "Not a redb database", "--data-dir"]),
        // inputs
        (&["lint", "-f", "/dev/zero"], &["/dev/zero cannot be read", "longer than 256 MiB"]),
        // other commands
        (&["crd", "diff", "--kubeconfig=/nonexistent"], &["the kubeconfig /nonexistent cannot be read"]),
        (&["crd", "apply", &format!("--kubeconfig={in_file}")], &["the kubeconfig", &in_file]),
        (&["crd", "diff", "--profile=strict"], &["'strict' for '--profile", "compatible, hardened"]),
        (&["crd"], &["Usage: koordctl crd", "diff", "apply"]),
        (&["completion", "tcsh"], &["'tcsh' for '<SHELL>'", "bash", "zsh", "fish"]),
        (&[], &["Usage: koordctl", "up"]),
    ];
    for (arguments, says) in table {
        let mut command = koordctl();
        command.current_dir(&folder).env("HOME", &folder).args(*arguments);
        if arguments.first() == Some(&"up") && arguments.iter().all(|argument| !argument.starts_with("--port")) {
            command.arg("--port=0");
        }
        let text = fails(&command.output().unwrap());
        for words in *says {
            assert!(text.contains(words), "{arguments:?} does not say {words:?}, but:\n{text}");
        }
        assert!(!text.contains('✓'), "{arguments:?} begins before its error:\n{text}");
        let error_line = text.lines().next().unwrap_or_default();
        let (_, cause) = error_line.rsplit_once(": ").unwrap_or_default();
        assert!(cause.is_empty() || error_line.matches(cause).count() == 1, "reported twice: {error_line}");
    }
    assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "precious");
    let mut left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["file", "other"], "something is left behind");
}

#[test]
fn a_kubeconfig_that_exists_is_replaced_when_forced() {
    let kubeconfig = folder("forced").join("mine");
    std::fs::write(&kubeconfig, "precious").unwrap();
    let mut up = Up::start(&kubeconfig, &["--force", "--no-manager"]);
    assert!(std::fs::read_to_string(&kubeconfig).unwrap().contains("https://127.0.0.1:"));
    assert!(up.end());
}
