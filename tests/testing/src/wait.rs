//! What a test waits for, and what it shows when that does not come.

use std::time::Duration;

use envtest::yaml;
use http::Request;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, Resource, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Cluster, Failure};

/// How often a test looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What is under way has this long to end before nothing may be written.
const UNDER_WAY: Duration = Duration::from_secs(1);

impl Cluster {
    /// Waits until an object is as it should be, and gives it. `what` says how it should be, such as `has three servers`:
    /// the error shows it with the object as it was last, its events, and what the operator logged in this thread.
    pub async fn until<K>(&self, api: &Api<K>, name: &str, what: &str, is_so: impl Fn(&K) -> bool) -> Result<K, Failure>
    where
        K: Resource + DeserializeOwned,
    {
        let look = |object: Option<&Value>| -> serde_json::Result<Option<K>> {
            let object = object.cloned().map(serde_json::from_value::<K>).transpose()?;
            Ok(object.filter(|object| is_so(object)))
        };
        self.look_until((api.resource_url(), name), what, look).await
    }

    /// Waits until an object is gone.
    pub async fn until_gone<K: Resource>(&self, api: &Api<K>, name: &str) -> Result<(), Failure> {
        let look = |object: Option<&Value>| Ok(object.is_none().then_some(()));
        self.look_until((api.resource_url(), name), "is gone", look).await
    }

    /// Lets this much time pass.
    pub async fn pass(&self, span: Duration) {
        self.clock.sleep(span).await;
    }

    /// Lets what is under way end, and then this much time pass, in which nothing may be written. The error shows what was.
    pub async fn quiet(&self, span: Duration) -> Result<(), Failure> {
        self.pass(UNDER_WAY).await;
        let before = self.server.with_core(|core| core.store.revision());
        self.pass(span).await;
        let written = self.written_after(before);
        if written.is_empty() {
            return Ok(());
        }
        let failure = Failure::new(format!("within {span:?} nothing was to be written"));
        Err(failure.showing("what was written", written.join("\n")).showing("the operator's log", self.log.text()))
    }

    async fn look_until<T>(
        &self,
        (url, name): (&str, &str),
        what: &str,
        look: impl Fn(Option<&Value>) -> serde_json::Result<Option<T>>,
    ) -> Result<T, Failure> {
        let deadline = self.clock.moment() + self.patience;
        loop {
            let seen = self.seen(url, name).await;
            let obstacle = match &seen {
                Err(error) => format!(": {error}"),
                Ok(object) => match look(object.as_ref()) {
                    Ok(Some(found)) => return Ok(found),
                    Ok(None) => String::new(),
                    Err(error) => format!(": {error}"),
                },
            };
            if self.clock.moment() >= deadline {
                let plural = url.rsplit('/').next().unwrap_or_default();
                let what = format!(
                    "{plural} {name}: it did not come true within {:?} that it {what}{obstacle}",
                    self.patience
                );
                let failure = Failure::new(what).showing("the object", shown(seen.ok().flatten()));
                let failure = failure.showing("its events", self.events(name).await);
                return Err(failure.showing("the operator's log", self.log.text()));
            }
            self.clock.sleep(LOOK_AGAIN).await;
        }
    }

    /// An object as it is; none where there is none.
    async fn seen(&self, url: &str, name: &str) -> Result<Option<Value>, kube::Error> {
        let request = Request::get(format!("{url}/{name}")).body(Vec::new()).map_err(kube::Error::HttpError)?;
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The events about objects of this name.
    async fn events(&self, name: &str) -> String {
        let events: Api<Event> = Api::all(self.client());
        let listed = match events.list(&ListParams::default()).await {
            Ok(listed) => listed.items,
            Err(error) => return format!("they cannot be listed: {error}"),
        };
        let about =
            |event: &&Event| event.regarding.as_ref().is_some_and(|regarding| regarding.name.as_deref() == Some(name));
        listed.iter().filter(about).map(line).collect::<Vec<_>>().join("\n")
    }

    /// What was written after a revision, oldest last within its collection.
    fn written_after(&self, revision: u64) -> Vec<String> {
        self.server.with_core(|core| {
            let mut written = Vec::new();
            for id in core.store.collection_ids() {
                let name = core.store.collection_name(id);
                // What is forgotten already was written all the same.
                let Ok(changes) = core.store.collection(id).changes_after(revision) else {
                    written.push(format!("{name}: more than the server remembers"));
                    continue;
                };
                written.extend(changes.map(|change| format!("{:?} {name} {}", change.kind, change.key)));
            }
            written
        })
    }
}

/// An object as a person reads it: without what is recorded of its managers.
fn shown(object: Option<Value>) -> String {
    let Some(mut object) = object else { return "there is none".to_owned() };
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    yaml::to_text(&object)
}

fn line(event: &Event) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let kind = event.regarding.as_ref().and_then(|regarding| regarding.kind.clone()).unwrap_or_default();
    format!("{} {} of the {kind}: {}", text(&event.type_), text(&event.reason), text(&event.note))
}
