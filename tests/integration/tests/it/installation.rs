//! `kubectl apply -k config/default`, and koord-manager at work with nothing but the rights that this gives it.

use std::{ffi::OsStr, path::Path};

use anyhow::{Result, ensure};
use clap::Parser as _;
use integration::installed::{Reach, repository};

use crate::place::{Embedded, Place, Real, folder};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_installation_works_with_exactly_its_rights() {
    let folder = folder("installation");
    let Some(embedded) = Embedded::start(&folder).await.unwrap() else { return };
    let place = &embedded.place;
    install(place);
    definitions(place, &embedded.kubeconfig).await.unwrap();
    let mut user = String::new();
    for gates in ["", "AllAlpha=true"] {
        let works = place.works(gates, Reach::Service(embedded.port)).await;
        user = works.unwrap_or_else(|error| panic!("{gates:?}: {error:#}"));
        if gates.is_empty() {
            // What the manager has filled in is none of kubectl's business.
            let before = place.configurations();
            install(place);
            assert_eq!(place.configurations(), before);
        }
    }
    embedded.compare_rights(&user);
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_installation_works_on_a_real_server() {
    let Some(real) = Real::start(&folder("real-installation")).await.unwrap() else { return };
    let place = &real.place;
    install(place);
    definitions(place, &real.server.kubeconfig).await.unwrap();
    place.works("", Reach::Loopback).await.unwrap();
}

pub(crate) fn install(place: &Place) {
    let folder = repository("config/default").display().to_string();
    place.run(&["apply", "-k", &folder], None).unwrap();
}

/// `koordctl crd` and `version` on what is installed; it ends with the hardened definitions.
async fn definitions(place: &Place, kubeconfig: &Path) -> Result<()> {
    let koordctl = async |arguments: &[&str]| {
        let arguments = ["koordctl"].iter().chain(arguments).copied().map(OsStr::new);
        let arguments = arguments.chain([OsStr::new("--kubeconfig"), kubeconfig.as_os_str()]);
        koordctl::run_on(koordctl::Cli::try_parse_from(arguments)?, koordctl::screen::Screen::ENDLESS).await
    };
    let version = koordctl(&["version"]).await?;
    ensure!(version.text.contains("server v1."), "{}", version.text);
    let equal = koordctl(&["crd", "diff"]).await?;
    ensure!(equal.code == 0 && equal.text.is_empty(), "{}", equal.text);
    let different = koordctl(&["crd", "diff", "--profile=hardened"]).await?;
    ensure!(different.code == 1 && different.text.contains("reservations.scheduling.koordinator.sh"));
    for (profile, changes) in [("compatible", false), ("hardened", true), ("hardened", false)] {
        let applied = koordctl(&["crd", "apply", "--profile", profile]).await?;
        ensure!(applied.text.lines().any(|line| line.ends_with(" changed")) == changes, "{profile}: {}", applied.text);
    }
    ensure!(koordctl(&["crd", "diff", "--profile=hardened"]).await?.code == 0);
    place.run(&["delete", "crd", "podgroups.scheduling.sigs.k8s.io"], None)?;
    let lacking = koordctl(&["crd", "diff", "--profile=hardened"]).await?;
    ensure!(lacking.text.contains("podgroups.scheduling.sigs.k8s.io: the cluster lacks it"), "{}", lacking.text);
    let applied = koordctl(&["crd", "apply", "--profile=hardened"]).await?;
    ensure!(applied.text.contains("podgroups.scheduling.sigs.k8s.io created"), "{}", applied.text);
    Ok(())
}
