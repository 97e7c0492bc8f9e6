//! charts/koordinator with a real helm: what it renders, what it installs, and how a cluster gets from the original's chart to it and back.

mod descheduler;
mod drills;
mod evictions;
mod install;
mod koordlet;
mod render;
mod replaced;

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use integration::{Helm, installed::repository};
use serde_json::Value;

use crate::place::{Embedded, Real};

/// The folder of the chart, as an argument.
fn chart() -> String {
    repository("charts/koordinator").display().to_string()
}

/// An embedded server and a helm that talks to it; none without helm or kubectl.
async fn embedded(folder: &Path) -> Option<(Embedded, Helm)> {
    let server = Embedded::start(folder).await.unwrap()?;
    let helm = Helm::find(&server.kubeconfig, folder).unwrap()?;
    Some((server, helm))
}

/// The same with a real kube-apiserver; none where none was built, either.
async fn real(folder: &Path) -> Option<(Real, Helm)> {
    let real = Real::start(folder).await.unwrap()?;
    let helm = Helm::find(&real.server.kubeconfig, folder).unwrap()?;
    Some((real, helm))
}

/// A file of tests/data, as an argument.
fn data(name: &str) -> String {
    repository("tests/data").join(name).display().to_string()
}

/// The original's chart as it was written down, with the definitions that it brings.
fn original_chart(folder: &Path) -> String {
    let chart = folder.join("original-chart");
    let templates = chart.join("templates");
    fs::create_dir_all(&templates).unwrap();
    let written = repository("tests/data/original-chart");
    for name in ["Chart.yaml", "values.yaml"] {
        fs::copy(written.join(name), chart.join(name)).unwrap();
    }
    for from in [written.join("templates"), repository("tests/data/crds")] {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), templates.join(entry.file_name())).unwrap();
        }
    }
    chart.display().to_string()
}

/// The objects that `helm template` prints.
fn rendered(helm: &Helm, more: &[&str]) -> Result<Vec<Value>> {
    let chart = chart();
    let text = helm.run(&[&["template", "koordinator", &chart, "--kube-version=1.34"], more].concat())?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).context("what helm prints is no YAML")?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

/// The entries of both configurations.
fn entries(objects: &[Value]) -> impl Iterator<Item = &Value> {
    objects.iter().flat_map(|object| object["webhooks"].as_array().into_iter().flatten())
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
