//! `koordctl up` when nothing is in the way.

use crate::program::{Up, folder, koordctl};

#[test]
fn a_cluster_comes_up_tells_what_to_try_and_leaves_nothing_behind() {
    let kubeconfig = folder("up").join("koord.kubeconfig");
    let mut up = Up::start(&kubeconfig, &[]);
    assert!(up.greeting.contains(&format!("export KUBECONFIG={}", kubeconfig.display())), "{}", up.greeting);
    assert_eq!(up.greeting.lines().filter(|line| line.starts_with("  kubectl ")).count(), 5);
    let version = koordctl().args(["version", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(text.contains("server v1.34"), "{text}");
    let equal =
        koordctl().args(["crd", "diff", "--profile=hardened", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert!(equal.status.success() && equal.stdout.is_empty(), "{equal:?}");
    let different = koordctl().args(["crd", "diff", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert!(!different.status.success() && !different.stdout.is_empty(), "{different:?}");
    assert!(up.end());
    assert!(!kubeconfig.exists());
}

#[test]
fn time_runs_as_fast_as_it_is_told_to() {
    let kubeconfig = folder("speed").join("koord.kubeconfig");
    let up = Up::start(&kubeconfig, &["--speed=100", "--no-manager"]);
    assert!(up.greeting.contains("100 times as fast"), "{}", up.greeting);
}
