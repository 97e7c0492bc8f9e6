//! What a step shows: the command that a reader could type, and what it prints.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::object::{Object, Place};
use crate::{Cli, screen::Screen};

/// Something to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Show {
    /// A field of an object.
    Field(Place),
    /// What a command of koordctl says.
    Koordctl(String),
    /// The events about an object.
    Events(Object),
}

impl Show {
    pub fn command(&self) -> String {
        match self {
            Show::Field(place) => place.command(),
            Show::Koordctl(words) => format!("koordctl {words}"),
            Show::Events(object) => {
                format!("kubectl {}events --for={}/{}", object.namespace_flag(), object.kind_word(), object.name())
            }
        }
    }

    pub async fn print(&self, client: &Client, kubeconfig: &Path, screen: Screen) -> Result<String> {
        match self {
            Show::Field(place) => Ok(place.read(client).await?.unwrap_or_default()),
            Show::Koordctl(words) => {
                let arguments = ["koordctl"].into_iter().chain(words.split(' ')).map(std::ffi::OsString::from);
                let kubeconfig = ["--kubeconfig".into(), kubeconfig.as_os_str().to_owned()];
                let cli =
                    Cli::try_parse_from(arguments.chain(kubeconfig)).with_context(|| format!("koordctl {words}"))?;
                Ok(Box::pin(crate::run_on(cli, screen)).await?.text)
            }
            Show::Events(object) => {
                let events = events(client, object).await?;
                let lines: Vec<String> = events.iter().map(|event| screen.wrapped(&event.line(), "", "    ")).collect();
                Ok(lines.join("\n"))
            }
        }
    }
}

/// An event, as far as a reader wants to know.
pub(super) struct Event {
    type_: String,
    pub(super) reason: String,
    message: String,
}

impl Event {
    fn line(&self) -> String {
        format!("{}  {}  {}", self.type_, self.reason, self.message)
    }
}

/// The events about an object. Those about objects without a namespace are in the default one.
pub(super) async fn events(client: &Client, object: &Object) -> Result<Vec<Event>> {
    let namespace = Object::new("event", object.namespace(), "")?.siblings_path();
    let path = format!("{namespace}?fieldSelector=involvedObject.name={}", object.name());
    let list: Value = client.request(http::Request::get(path).body(Vec::new())?).await?;
    let events = list["items"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let about = events.filter(|event| {
        event["involvedObject"]["kind"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(object.kind_word()))
    });
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    Ok(about
        .map(|event| Event {
            type_: text(event, "type"),
            reason: text(event, "reason"),
            message: text(event, "message"),
        })
        .collect())
}
