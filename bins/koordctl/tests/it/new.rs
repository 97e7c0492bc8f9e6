//! `koordctl new operator`: what is written, what is refused, and that nothing of others is touched.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use koord_resource::yaml;
use serde_json::Value;

use crate::program::{fails, folder, koordctl, koordctl_with_little_room};

/// A checkout of the library: this one.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The smallest operator.
const SHOP: [&str; 7] = ["new", "operator", "shop-operator", "--kind=Shop", "--group=example.com", "--in", "shop"];

/// What it has without flags, and with all of them.
const NO_FLAGS: &[&str] = &[];
const EVERYTHING: [&str; 3] = ["--webhooks", "--cluster", "--version=v1alpha1"];

/// The files of an operator without webhooks, sorted.
const FILES: [&str; 14] = [
    ".dockerignore",
    ".github/workflows/ci.yaml",
    ".gitignore",
    "Cargo.toml",
    "Containerfile",
    "README.md",
    "config/kustomization.yaml",
    "config/sample.yaml",
    "rustfmt.toml",
    "src/controller.rs",
    "src/lib.rs",
    "src/main.rs",
    "src/shop.rs",
    "tests/operator.rs",
];

/// koordctl in this folder.
fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    koordctl().current_dir(folder).args(arguments).output().unwrap()
}

/// Writes the smallest operator, with more flags, and gives its folder.
#[track_caller]
fn made(name: &str, more: &[&str]) -> PathBuf {
    let folder = folder(name);
    let output = run_in(&folder, &[&SHOP[..], more].concat());
    assert!(output.status.success(), "{output:?}");
    folder.join("shop")
}

/// The paths of all files below a folder, sorted.
fn files_below(folder: &Path) -> Vec<String> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

fn read(project: &Path, file: &str) -> String {
    fs::read_to_string(project.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

// === what is written ===

#[test]
fn an_operator_has_these_files() {
    assert_eq!(files_below(&made("new-plain", NO_FLAGS)), FILES);
    let with_webhooks = files_below(&made("new-webhooks", &["--webhooks"]));
    assert_eq!(with_webhooks, [&FILES[..13], &["src/webhooks.rs"], &FILES[13..]].concat());
}

#[test]
fn a_dry_run_prints_the_files_and_writes_none() {
    let folder = folder("new-dry-run");
    let output = run_in(&folder, &[&SHOP[..], &["--dry-run"]].concat());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().collect::<Vec<_>>(), FILES.map(|file| format!("shop/{file}")));
    assert!(files_below(&folder).is_empty() && !folder.join("shop").exists());
}

/// `docs/library.md` begins with what is printed.
#[test]
fn the_guide_shows_what_is_printed() {
    let guide = fs::read_to_string(Path::new(CHECKOUT).join("docs/library.md")).unwrap();
    let (_, rest) = guide.split_once("\n```text\n$ koordctl ").unwrap();
    let (line, rest) = rest.split_once('\n').unwrap();
    let (shown, _) = rest.split_once("…\n```").unwrap();
    let output = run_in(&folder("new-guide"), &line.split(' ').collect::<Vec<_>>());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(shown.starts_with("15 files") && printed.starts_with(shown.trim_end()), "{printed}");
}

#[test]
fn every_file_is_what_its_name_says() {
    for (name, more) in [("new-read-plain", NO_FLAGS), ("new-read-all", &EVERYTHING)] {
        let project = made(name, more);
        for file in files_below(&project) {
            let text = read(&project, &file);
            let ending = Path::new(&file).extension().and_then(|ending| ending.to_str());
            match ending {
                Some("rs") => drop(syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}\n{text}"))),
                Some("yaml") => assert_eq!(yaml::documents(&text).unwrap().len(), 1, "{file}"),
                _ => {}
            }
            let is_left = |line: &&str| {
                line.contains("{{") && !line.contains("{{ ")
                    || ["+webhooks|", "-webhooks|"].iter().any(|mark| line.contains(mark))
            };
            assert_eq!(text.lines().find(is_left), None, "{file}");
        }
    }
}

#[test]
fn flags_decide_what_the_kind_is() {
    let plain = read(&made("new-namespaced", &["--namespaced"]), "src/shop.rs");
    let root = "#[koord(group = \"example.com\", version = \"v1\", scope = \"Namespaced\", status)]\n";
    assert!(plain.contains(root) && !plain.contains("admission"), "{plain}");
    let project = made("new-cluster", &EVERYTHING);
    let kind = read(&project, "src/shop.rs");
    for words in ["version = \"v1alpha1\"", "scope = \"Cluster\"", "/validate-shop", "vshop.example.com"] {
        assert!(kind.contains(words), "{words}: {kind}");
    }
    assert!(read(&project, "tests/operator.rs").contains("Api::<Shop>::all(cluster.client())"));
    assert!(read(&project, "config/sample.yaml").contains("apiVersion: example.com/v1alpha1\nkind: Shop\n"));
}

#[test]
fn the_library_comes_from_where_the_command_line_says() {
    let dependency = |name: &str, more: &[&str]| {
        let manifest = read(&made(name, more), "Cargo.toml");
        let mut lines = manifest.lines().filter(|line| line.starts_with("koord = "));
        lines.next().unwrap().to_owned()
    };
    let own = env!("CARGO_PKG_VERSION");
    let expected = format!("koord = {{ version = \"{own}\", features = [\"program\"] }}");
    assert_eq!(dependency("new-version", NO_FLAGS), expected);
    let git = dependency("new-git", &["--source=git=https://git.example.com/k.git", "--webhooks"]);
    assert_eq!(git, "koord = { git = \"https://git.example.com/k.git\", features = [\"program\", \"webhook\"] }");
    let path = dependency("new-path", &["--source", &format!("path={CHECKOUT}")]);
    assert!(path.starts_with("koord = { path = \"/") && path.contains("/api/koord\", features"), "{path}");
}

/// Features of a dev-dependency would have cargo compile the library again for `cargo run`.
#[test]
fn tests_and_program_share_one_build_and_an_image_does_without_the_cluster_of_the_tests() {
    let project = made("new-features", &["--webhooks"]);
    let manifest = read(&project, "Cargo.toml");
    let features = "\n[features]\n";
    assert!(
        manifest.contains(features) && manifest.contains("\ndefault = [\"testing\"]\ntesting = [\"koord/testing\"]\n"),
        "{manifest}"
    );
    assert!(!manifest.contains("dev-dependencies"), "{manifest}");
    assert!(read(&project, "Containerfile").contains("cargo build --release --locked --no-default-features\n"));
    let page = read(&project, "README.md");
    for variable in ["ENABLE_WEBHOOKS", "WEBHOOK_HOST", "WEBHOOK_CERT_DIR"] {
        assert!(page.contains(&format!("| `{variable}` |")), "{variable}: {page}");
    }
    assert!(!read(&made("new-features-plain", NO_FLAGS), "README.md").contains("WEBHOOK"), "it has none");
}

// === what is refused ===

#[test]
fn names_that_cannot_be_are_refused_with_a_remedy() {
    let folder = folder("new-names");
    for (arguments, remedy) in [
        (["Shop", "Shop", "example.com", "v1"], "such as shop-operator"),
        (["serde", "Shop", "example.com", "v1"], "such as serde-operator"),
        (["match", "Shop", "example.com", "v1"], "such as match-operator"),
        (["shop", "shop", "example.com", "v1"], "such as Shop"),
        (["shop", "Type", "example.com", "v1"], "TypeRequest is free"),
        (["shop", "Status", "example.com", "v1"], "StatusRequest is free"),
        (["shop", "Store", "example.com", "v1"], "StoreRequest is free"),
        (["shop", "Shop", "example", "v1"], "such as shop.example.com"),
        (["shop", "Shop", "shop.k8s.io", "v1"], "for Kubernetes"),
        (["shop", "Shop", "example.com", "1"], "v1beta1"),
    ] {
        let [name, kind, group, version] = arguments;
        let flags = ["--kind", kind, "--group", group, "--version", version];
        let output = run_in(&folder, &[&["new", "operator", name], &flags[..]].concat());
        let text = fails(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(remedy), "{arguments:?}: {text}");
    }
    let text = fails(&run_in(&folder, &[&SHOP[..], &["--cluster", "--namespaced"]].concat()));
    assert!(text.contains("cannot be used with"), "{text}");
    let text = fails(&run_in(&folder, &[&SHOP[..], &["--source=path=."]].concat()));
    assert!(text.contains(". is no checkout of the library"), "{text}");
    assert!(files_below(&folder).is_empty());
}

#[test]
fn nothing_of_others_is_overwritten() {
    let folder = folder("new-occupied");
    let project = folder.join("shop");
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/lib.rs"), "// mine").unwrap();
    fs::write(project.join("LICENSE"), "mine").unwrap();
    for more in [NO_FLAGS, &["--dry-run"]] {
        let text = fails(&run_in(&folder, &[&SHOP[..], more].concat()));
        assert!(text.contains("there already: shop/src/lib.rs; name another folder with --in DIR"), "{text}");
    }
    assert_eq!(files_below(&project), ["LICENSE", "src/lib.rs"]);

    fs::remove_file(project.join("src/lib.rs")).unwrap();
    assert!(run_in(&folder, &SHOP).status.success());
    assert_eq!(read(&project, "LICENSE"), "mine");
    let text = fails(&run_in(&folder, &SHOP));
    assert!(text.contains("(14 in all)"), "{text}");
}

#[test]
fn a_disk_that_is_full_leaves_nothing_behind() {
    let folder = folder("new-full");
    let output = koordctl_with_little_room(1).current_dir(&folder).args(SHOP).output().unwrap();
    let text = fails(&output);
    assert!(text.contains("nothing is written: shop/.github/workflows/ci.yaml cannot be written"), "{text}");
    assert!(!folder.join("shop").exists());
}

// === what becomes of it ===

/// Runs a command in a project, and gives what it prints.
#[track_caller]
fn succeeds(project: &Path, program: &OsStr, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.current_dir(project).args(arguments);
    // All operators share what is compiled of the library.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("operators");
    let output = command.env("CARGO_TARGET_DIR", target).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{arguments:?} in {}:\n{}{}",
        project.display(),
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// The smallest operator and one with everything, whose names are long, and kinds that are called as types of the library are: what CI does with
/// each, and what is installed.
#[test]
#[ignore = "compiles three operators and the library with them, which takes minutes; .ci/nightly runs it"]
fn operators_pass_their_own_ci() {
    let home = tempfile::tempdir().unwrap();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    for (name, kind, more) in [
        ("shop", "Value", NO_FLAGS),
        ("front-operator", "Service", &EVERYTHING[..1]),
        ("colocation-profile-operator", "ClusterColocationProfile", &EVERYTHING[..]),
    ] {
        let (kind_flag, source) = (format!("--kind={kind}"), format!("--source=path={CHECKOUT}"));
        let flags = ["new", "operator", name, &kind_flag, "--group=scheduling.example.com", &source];
        let output = run_in(home.path(), &[&flags[..], more].concat());
        assert!(output.status.success(), "{output:?}");
        let project = home.path().join(name);
        // The versions that the library is tested with.
        fs::copy(Path::new(CHECKOUT).join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
        let run = |arguments: &[&str]| succeeds(&project, &cargo, arguments);
        run(&["fmt", "--check"]);
        run(&["clippy", "--all-targets", "--", "-D", "warnings"]);
        run(&["test"]);

        let printed = run(&["run", "--quiet", "--", "manifests"]);
        let manifests = yaml::documents(&printed).unwrap();
        let named = |kind: &str| manifests.iter().filter(|manifest| manifest["kind"] == kind).count();
        assert_eq!((named("CustomResourceDefinition"), named("Deployment")), (1, 1), "{printed}");
        assert_eq!(named("ValidatingWebhookConfiguration"), usize::from(!more.is_empty()), "{printed}");
        fs::write(project.join(format!("config/{name}.yaml")), &printed).unwrap();
        let Some(kubectl) = env::var_os("KUBECTL") else { continue };
        let installed = yaml::documents(&succeeds(&project, &kubectl, &["kustomize", "config"])).unwrap();
        let deployment: &Value = installed.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(*image, format!("{name}:v0.1.0"));
    }
}
