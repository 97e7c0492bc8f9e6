//! The images: what their Containerfiles say, held against the workloads and the scripts that they call.
//! What the scripts build is started by `.ci/nightly`.

use std::{
    collections::BTreeSet,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use integration::{installed::repository, skipped};
use serde_json::Value;

use crate::suite::on_the_embedded_server;

const MANAGER: &str = "images/koord-manager.Containerfile";
const KOORDLET: &str = "images/koordlet.Containerfile";
/// The most that the program of koordlet may have: it is pulled by every node.
const KOORDLET_BYTES_MAX: u64 = 15_000_000;
/// Each Containerfile with the Deployment or DaemonSet that starts its image.
const IMAGES: [(&str, &str); 4] = [
    (MANAGER, "config/manager/manager.yaml"),
    ("images/koord-scheduler.Containerfile", "config/scheduler/scheduler.yaml"),
    ("images/koord-descheduler.Containerfile", "config/descheduler/descheduler.yaml"),
    (KOORDLET, "config/koordlet/koordlet.yaml"),
];

/// Instructions with their arguments; lines that end in a backslash go on.
fn instructions(file: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(repository(file)).unwrap();
    let text = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let (instruction, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?} says nothing"));
            (instruction.to_owned(), rest.trim().to_owned())
        })
        .collect()
}

#[test]
fn each_image_is_what_its_workload_starts() {
    for (file, manifest) in IMAGES {
        is_what_it_starts(file, manifest);
    }
}

fn is_what_it_starts(file: &str, manifest: &str) {
    let known = ["ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "LABEL", "USER", "EXPOSE", "ENTRYPOINT"];
    let all = instructions(file);
    for (instruction, rest) in &all {
        assert!(known.contains(&instruction.as_str()), "{instruction} {rest}");
    }
    let last = |wanted: &str| all.iter().rfind(|(name, _)| name == wanted).map(|(_, rest)| rest.as_str()).unwrap();
    assert_eq!(last("FROM"), "scratch", "nothing but the program");
    let manifest = std::fs::read_to_string(repository(manifest)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&manifest).unwrap();
    let kind = if file == KOORDLET { "DaemonSet" } else { "Deployment" };
    let workload = documents.into_iter().find(|document| document["kind"] == kind).unwrap();
    let pod = &workload["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(serde_json::from_str::<Value>(last("ENTRYPOINT")).unwrap(), container["command"]);
    let (user, group) = last("USER").split_once(':').unwrap();
    let (user, group): (u32, u32) = (user.parse().unwrap(), group.parse().unwrap());
    assert_eq!((&pod["securityContext"]["runAsUser"], user == group), (&user.into(), true));
    // The kubelet can check that a number is not root, but not a name. Files of cgroups belong to root.
    assert_eq!(user == 0, file == KOORDLET, "{file}");
    let exposed: BTreeSet<u64> = last("EXPOSE").split(' ').map(|port| port.parse().unwrap()).collect();
    for port in container["ports"].as_array().unwrap() {
        assert!(exposed.contains(&port["containerPort"].as_u64().unwrap()), "{port}");
    }
    for label in ["title", "description", "licenses", "version", "revision"] {
        assert!(last("LABEL").contains(&format!("org.opencontainers.image.{label}=")), "{label}");
    }
}

#[test]
fn images_are_made_by_scripts_of_this_repository_from_no_named_registry() {
    let mut called = BTreeSet::new();
    for (instruction, rest) in IMAGES.iter().flat_map(|(file, _)| instructions(file)) {
        match instruction.as_str() {
            "RUN" => called.extend(rest.split(' ').filter(|word| word.starts_with("images/")).map(str::to_owned)),
            "FROM" | "ARG" => {
                let image = rest.split([' ', '=']).find(|word| word.contains('/') && !word.starts_with("--"));
                let host = image.and_then(|image| image.split('/').next()).unwrap_or_default();
                assert!(!host.contains(['.', ':']), "{rest} names a registry");
            }
            _ => {}
        }
    }
    assert_eq!(called.iter().map(String::as_str).collect::<Vec<_>>(), ["images/build", "images/tools"]);
    for script in called.iter().map(String::as_str).chain(["images/sbom"]) {
        let mode = std::fs::metadata(repository(script)).unwrap().permissions().mode();
        assert!(mode & 0o111 != 0, "{script} is not executable");
    }
}

#[test]
fn the_bill_of_materials_names_what_is_linked_and_nothing_else() {
    let made = || {
        let mut command = Command::new(repository("images/sbom"));
        command.args(["x86_64-unknown-linux-musl", "koord-manager"]).env("SOURCE_DATE_EPOCH", "86400");
        command.output()
    };
    let Ok(first) = made() else {
        skipped("the bill of materials", "no python3");
        return;
    };
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert_eq!(first.stdout, made().unwrap().stdout, "the same lock file gives the same bytes");
    let bill: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(bill["metadata"]["timestamp"], "1970-01-02T00:00:00Z");
    let lock = std::fs::read_to_string(repository("Cargo.lock")).unwrap();
    let mut references = BTreeSet::from([bill["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    let mut names = BTreeSet::new();
    for component in bill["components"].as_array().unwrap() {
        let text = |field: &str| component[field].as_str().unwrap_or_else(|| panic!("no {field}: {component}"));
        assert!(lock.contains(&format!("name = \"{}\"\nversion = \"{}\"", text("name"), text("version"))));
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        let ours = text("name").starts_with("koord-");
        assert_eq!(component["hashes"][0]["content"].is_string(), !ours, "{component}");
        assert!(references.insert(text("bom-ref")), "{component} stands twice");
        names.insert(text("name"));
    }
    for linked in ["rustls", "ring", "kube-client", "koord-webhook-handlers", "opentelemetry-otlp"] {
        assert!(names.contains(linked), "{linked} is missing");
    }
    for not_linked in ["syn", "serde_derive", "koord-apiserver", "trybuild", "windows-sys", "openssl-sys"] {
        assert!(!names.contains(not_linked), "{not_linked} is not linked");
    }
    for edge in bill["dependencies"].as_array().unwrap() {
        for to in edge["dependsOn"].as_array().unwrap() {
            assert!(references.contains(to.as_str().unwrap()), "{to}");
        }
    }
}

/// A folder that `images/build` has filled, named in `KOORD_IMAGE`.
fn built() -> Option<PathBuf> {
    let folder = std::env::var_os("KOORD_IMAGE").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if folder.is_none() {
        skipped("a built image", "KOORD_IMAGE names no folder that images/build has filled");
    }
    folder
}

/// The program of the image that was built, by the Containerfile that would start it.
fn program_of(root: &Path) -> (&'static str, &'static str) {
    let known = IMAGES.map(|(file, _)| (file, file.trim_start_matches("images/").trim_end_matches(".Containerfile")));
    known.into_iter().find(|(_, program)| root.join(program).is_file()).expect("no program of an image")
}

/// Of a program in ELF: whether it wants an interpreter, which is what dynamic linking begins with. Panics on what is no program of 64 bits.
fn is_static(program: &[u8]) -> bool {
    assert_eq!(&program[..6], b"\x7fELF\x02\x01", "an ELF file of 64 bits, little-endian");
    let number =
        |at: usize, bytes: usize| program[at..at + bytes].iter().rfold(0, |all, byte| all << 8 | usize::from(*byte));
    let (table, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    assert!(count > 0);
    let interpreter = 3;
    (0..count).all(|entry| number(table + entry * size, 4) != interpreter)
}

#[test]
fn what_was_built_is_what_the_image_says() {
    let Some(out) = built() else { return };
    let root = out.join("root");
    let (file, program) = program_of(&root);
    let mut found = Vec::new();
    let mut times = BTreeSet::new();
    for entry in std::fs::read_dir(&root).unwrap() {
        let entry = entry.unwrap();
        let about = entry.metadata().unwrap();
        found.push((entry.file_name().into_string().unwrap(), about.permissions().mode() & 0o7777));
        times.insert(about.modified().unwrap());
    }
    found.sort();
    let expected = [("LICENSE", 0o644), ("NOTICE", 0o644), (program, 0o755), ("sbom.cdx.json", 0o644), ("tmp", 0o1777)];
    assert_eq!(found, expected.map(|(name, mode)| (name.to_owned(), mode)));
    let all = instructions(file);
    let entrypoint = all.iter().rfind(|(name, _)| name == "ENTRYPOINT").map(|(_, rest)| rest).unwrap();
    let entrypoint: [String; 1] = serde_json::from_str(entrypoint).unwrap();
    assert!(root.join(entrypoint[0].trim_start_matches('/')).is_file(), "{entrypoint:?}");

    // One time in everything, and the SBOM states it.
    assert_eq!(times.len(), 1, "{times:?}");
    let time = jiff::Timestamp::try_from(*times.first().unwrap()).unwrap();
    let bill = std::fs::read(root.join("sbom.cdx.json")).unwrap();
    assert_eq!(bill, std::fs::read(out.join("sbom.cdx.json")).unwrap());
    let bill: Value = serde_json::from_slice(&bill).unwrap();
    assert_eq!(bill["metadata"]["timestamp"], time.to_string());
    assert_eq!(bill["metadata"]["component"]["name"], program);

    // Nothing of this machine is in the programs.
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or(format!("{}/.cargo", std::env::var("HOME").unwrap()));
    let repository = repository("").canonicalize().unwrap().display().to_string();
    let in_root = format!("root/{program}");
    if file == KOORDLET {
        let bytes = std::fs::metadata(root.join(program)).unwrap().len();
        assert!(bytes <= KOORDLET_BYTES_MAX, "{bytes} bytes");
    }
    let others = ["koordctl"].into_iter().filter(|program| out.join(program).exists());
    for program in [in_root.as_str(), program].into_iter().chain(others) {
        let bytes = std::fs::read(out.join(program)).unwrap();
        assert!(is_static(&bytes), "{program} is linked dynamically");
        for path in [cargo_home.as_str(), &repository] {
            let found = bytes.windows(path.len()).position(|window| window == path.as_bytes());
            let around =
                found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(40)..(at + 120).min(bytes.len())]));
            assert_eq!(around, None, "{program} holds a path of this machine");
        }
    }
}

/// In its own file system and as its own user where that may be done (as root), else simply as a program.
#[test]
fn what_was_built_leads_with_nothing_around_it() {
    let Some(out) = built() else { return };
    let (file, program) = program_of(&out.join("root"));
    if file == KOORDLET {
        return skipped("starting the image", "koordlet has no Lease: tests/node starts it on a node");
    }
    let machine = std::fs::read(out.join("root").join(program)).unwrap()[0x12];
    if machine != (if cfg!(target_arch = "x86_64") { 62 } else { 183 }) {
        return skipped("starting the image", "it is built for another machine");
    }
    let all = instructions(file);
    let user = all.iter().rfind(|(name, _)| name == "USER").map(|(_, rest)| rest).unwrap();
    let id = Command::new("id").arg("-u").output().unwrap();
    let is_root = id.stdout.trim_ascii() == b"0";
    on_the_embedded_server(|scene| {
        let root = tempfile::tempdir().unwrap();
        let copied = Command::new("cp").arg("-a").arg(out.join("root/.")).arg(root.path()).status().unwrap();
        assert!(copied.success());
        std::fs::copy(scene.kubeconfig(), root.path().join("kubeconfig")).unwrap();
        for (path, mode) in [("", 0o755), ("kubeconfig", 0o644)] {
            std::fs::set_permissions(root.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let (mut command, kubeconfig) = if is_root {
            let mut command = Command::new("chroot");
            command.arg(format!("--userspec={user}")).arg(root.path()).arg(format!("/{program}"));
            (command, "/kubeconfig".to_owned())
        } else {
            skipped("the image as its own file system and user", "only root may change them");
            (Command::new(root.path().join(program)), root.path().join("kubeconfig").display().to_string())
        };
        let (lease, quiet): (_, &[&str]) = match file {
            MANAGER => (
                "koordinator-manager",
                &[
                    "--controllers=none",
                    "--feature-gates=WebhookFramework=false",
                    "--metrics-addr=0",
                    "--health-probe-addr=0",
                ],
            ),
            _ => ("image", &["--leader-elect-resource-name=image", "--port=0", "--secure-port=0"]),
        };
        let namespace =
            if file == MANAGER { "--leader-election-namespace" } else { "--leader-elect-resource-namespace" };
        let mut started = command
            .arg(format!("--kubeconfig={kubeconfig}"))
            .arg(format!("{namespace}={}", scene.namespace))
            .args(quiet)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .spawn()
            .unwrap();
        let holder = || scene.run(&["get", "lease", lease, "-o", "jsonpath={.spec.holderIdentity}"], None);
        scene.comes_true("it leads", || holder().stdout.contains('_'));
        let ended = Command::new("kill").arg(started.id().to_string()).status().unwrap();
        assert!(ended.success());
        assert!(started.wait().unwrap().success(), "SIGTERM is a request, and it follows");
        assert_eq!(holder().stdout, "", "it has given its lease back");
    });
}
