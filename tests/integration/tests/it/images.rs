//! The image of koord-manager: what its Containerfile says, held against the Deployment and the scripts that it calls.
//! What the scripts build is started by `.ci/run`.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _, process::Command};

use integration::{installed::repository, skipped};
use serde_json::Value;

const FILE: &str = "images/koord-manager.Containerfile";

/// Instructions with their arguments; lines that end in a backslash go on.
fn instructions() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(repository(FILE)).unwrap();
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
fn the_image_is_what_the_deployment_starts() {
    let known = ["ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "LABEL", "USER", "EXPOSE", "ENTRYPOINT"];
    let all = instructions();
    for (instruction, rest) in &all {
        assert!(known.contains(&instruction.as_str()), "{instruction} {rest}");
    }
    let last = |wanted: &str| all.iter().rfind(|(name, _)| name == wanted).map(|(_, rest)| rest.as_str()).unwrap();
    assert_eq!(last("FROM"), "scratch", "nothing but the program");
    let manifest = std::fs::read_to_string(repository("config/manager/manager.yaml")).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&manifest).unwrap();
    let deployment = documents.into_iter().find(|document| document["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(serde_json::from_str::<Value>(last("ENTRYPOINT")).unwrap(), container["command"]);
    let (user, group) = last("USER").split_once(':').unwrap();
    // The kubelet can tell that a number is not root; a name it cannot.
    assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    let exposed: BTreeSet<u64> = last("EXPOSE").split(' ').map(|port| port.parse().unwrap()).collect();
    for port in container["ports"].as_array().unwrap() {
        assert!(exposed.contains(&port["containerPort"].as_u64().unwrap()), "{port}");
    }
    for label in ["title", "description", "licenses", "version", "revision"] {
        assert!(last("LABEL").contains(&format!("org.opencontainers.image.{label}=")), "{label}");
    }
}

#[test]
fn the_image_is_made_by_scripts_of_this_repository_from_no_named_registry() {
    let mut called = BTreeSet::new();
    for (instruction, rest) in instructions() {
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
    for linked in ["rustls", "ring", "kube-client", "koord-webhooks", "opentelemetry-otlp"] {
        assert!(names.contains(linked), "{linked} is missing");
    }
    for not_linked in ["syn", "serde_derive", "envtest", "trybuild", "windows-sys", "openssl-sys"] {
        assert!(!names.contains(not_linked), "{not_linked} is not linked");
    }
    for edge in bill["dependencies"].as_array().unwrap() {
        for to in edge["dependsOn"].as_array().unwrap() {
            assert!(references.contains(to.as_str().unwrap()), "{to}");
        }
    }
}
